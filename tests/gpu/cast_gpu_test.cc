// The cast kernel on a GPU against the host's conversion, bit for bit; padding stays untouched.
#include <gtest/gtest.h>

#include <array>
#include <bit>
#include <cmath>
#include <random>

#include "base/float16.h"
#include "device_memory.h"
#include "gpu/cast/plan.h"
#include "gpu/host/gpu_status.h"
#include "gpu/host/run_plan.h"

namespace dsattn::gpu {
namespace {

constexpr uint16_t kUntouched = 0x5A5A;

struct Case {
  int64_t rows, cols, src_stride, dst_stride;
  int64_t src_offset = 0;  // elements: moves the rows off their 16-byte alignment
  int64_t dst_offset = 0;
};

class CastOnGpu : public testing::TestWithParam<Case> {
 protected:
  void SetUp() override {
    status_ = gpu_status();
    if (!status_.available) GTEST_SKIP() << status_.detail;
  }
  GpuStatus status_;
};

// Random bit patterns of every exponent, and the values where rounding is delicate.
std::vector<float> source(size_t size, uint32_t seed) {
  std::mt19937 random(seed);
  const std::array<float, 12> special = {0.0f,     -0.0f,    INFINITY,   -INFINITY,
                                         NAN,      65504.0f, 65519.9f,   65520.0f,
                                         0x1p-24f, 0x1p-25f, 0x1.8p-25f, 3.3895314e38f};
  std::vector<float> values(size);
  for (size_t i = 0; i < size; ++i) {
    values[i] = i % 7 == 0 ? special[(i / 7) % special.size()]
                           : std::bit_cast<float>(static_cast<uint32_t>(random()));
    if (i % 3 == 0) values[i] = std::ldexp(static_cast<float>(random()), -28);  // f16's range
  }
  return values;
}

template <class Half>
Half convert(float x) {
  if constexpr (std::is_same_v<Half, bf16>) {
    return to_bf16(x);
  } else {
    return to_f16(x);
  }
}

template <class Half>
void run_case(const Case& c, const std::string& arch, DType dtype) {
  const auto extent = [&](int64_t stride) {
    return static_cast<size_t>((c.rows - 1) * stride + c.cols);
  };
  const auto src = source(static_cast<size_t>(c.src_offset) + extent(c.src_stride), 17);
  const std::vector<uint16_t> blank(static_cast<size_t>(c.dst_offset) + extent(c.dst_stride) + 8,
                                    kUntouched);
  const DeviceArray<float> device_src(src);
  const DeviceArray<uint16_t> device_dst(blank);

  TensorView from(nullptr, DType::kF32, {c.rows, c.cols});
  from.strides[0] = c.src_stride;
  TensorView to(nullptr, dtype, {c.rows, c.cols});
  to.strides[0] = c.dst_stride;
  const auto plan = cast::make_plan(arch, from, to);
  ASSERT_TRUE(plan) << plan.error().message;
  const std::array<uint64_t, 2> addresses = {
      device_src.address() + 4 * static_cast<uint64_t>(c.src_offset),
      device_dst.address() + 2 * static_cast<uint64_t>(c.dst_offset)};
  const auto ran = run_plan(*plan, addresses);
  ASSERT_TRUE(ran) << ran.error().message;

  std::vector<uint16_t> expected = blank;
  for (int64_t r = 0; r < c.rows; ++r) {
    for (int64_t k = 0; k < c.cols; ++k) {
      const float x = src[static_cast<size_t>(c.src_offset + r * c.src_stride + k)];
      expected[static_cast<size_t>(c.dst_offset + r * c.dst_stride + k)] = convert<Half>(x).bits;
    }
  }
  const auto got = device_dst.read();
  size_t wrong = 0;
  for (size_t i = 0; i < got.size(); ++i) {
    const bool both_nan =
        std::isnan(to_float(Half{got[i]})) && std::isnan(to_float(Half{expected[i]}));
    if (got[i] == expected[i] || both_nan) continue;
    if (++wrong <= 5) ADD_FAILURE() << "element " << i << ": " << got[i] << " != " << expected[i];
  }
  EXPECT_EQ(wrong, 0u);
}

TEST_P(CastOnGpu, Bf16) { run_case<bf16>(GetParam(), status_.arch, DType::kBF16); }
TEST_P(CastOnGpu, F16) { run_case<f16>(GetParam(), status_.arch, DType::kF16); }

INSTANTIATE_TEST_SUITE_P(Sizes, CastOnGpu,
                         testing::Values(Case{1, 1, 1, 1}, Case{3, 5, 5, 5},
                                         Case{1000, 576, 576, 576},   // aligned vectors
                                         Case{129, 512, 576, 520},    // padded rows
                                         Case{77, 1003, 1004, 1008},  // a tail in every row
                                         Case{64, 512, 513, 512},     // rows of odd alignment
                                         Case{64, 512, 512, 512, 1, 0},
                                         Case{64, 512, 512, 512, 0, 3},
                                         Case{16, 7, 0, 7},  // one row, read 16 times
                                         Case{1, 5000001, 5000001, 5000001},
                                         Case{2000003, 3, 3, 3}));

}  // namespace
}  // namespace dsattn::gpu
