// Views, names, DLPack exchange, and the 16-bit types.
#include "dsattn/tensor.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>

#include "base/float16.h"
#include "dsattn/dlpack.h"

namespace dsattn {
namespace {

TEST(TensorView, ContiguousStridesAndNames) {
  float data[24];
  const TensorView view(data, DType::kF32, {2, 3, 4});
  EXPECT_EQ(view.stride(0), 12);
  EXPECT_EQ(view.stride(1), 4);
  EXPECT_EQ(view.stride(2), 1);
  EXPECT_TRUE(view.is_contiguous());
  EXPECT_EQ(view.numel(), 24);
  EXPECT_EQ(to_string(view), "(2, 3, 4) F32 on cpu");
  EXPECT_EQ(to_string(TensorView()), "absent");
}

TEST(TensorView, StrideOfSizeOneDimensionIsIgnored) {
  TensorView view(nullptr, DType::kF32, {1, 4});
  view.strides[0] = 999;
  EXPECT_TRUE(view.is_contiguous());
}

TEST(DLPack, RoundTripKeepsEverything) {
  bf16 data[24];
  TensorView view(data, DType::kBF16, {2, 3});
  view.strides = {12, 1};
  const DLTensor tensor = to_dlpack(view);
  EXPECT_EQ(tensor.dtype.code, kDLBfloat);
  auto back = from_dlpack(tensor);
  ASSERT_TRUE(back);
  EXPECT_EQ(back->data, data);
  EXPECT_EQ(back->dtype, DType::kBF16);
  EXPECT_EQ(back->shape, view.shape);
  EXPECT_EQ(back->strides, view.strides);
}

TEST(DLPack, NullStridesAndByteOffset) {
  float data[8];
  int64_t shape[2] = {2, 3};
  DLTensor tensor{};
  tensor.data = data;
  tensor.device = {kDLCPU, 0};
  tensor.ndim = 2;
  tensor.dtype = {kDLFloat, 32, 1};
  tensor.shape = shape;
  tensor.byte_offset = 8;
  auto view = from_dlpack(tensor);
  ASSERT_TRUE(view);
  EXPECT_EQ(view->data, data + 2);
  EXPECT_EQ(view->stride(0), 3);
}

TEST(DLPack, RejectsWhatWeCannotView) {
  int64_t shape[5] = {1, 1, 1, 1, -1};
  DLTensor tensor{};
  tensor.device = {kDLCPU, 0};
  tensor.dtype = {kDLFloat, 32, 1};
  tensor.shape = shape;
  tensor.ndim = 5;
  EXPECT_EQ(from_dlpack(tensor).error().code, ErrorCode::kInvalidShape);
  tensor.ndim = 1;
  tensor.shape = shape + 4;
  EXPECT_EQ(from_dlpack(tensor).error().code, ErrorCode::kInvalidShape);
  tensor.shape = shape;
  tensor.dtype = {kDLFloat, 32, 4};
  EXPECT_EQ(from_dlpack(tensor).error().code, ErrorCode::kInvalidDType);
  tensor.dtype = {kDLFloat, 32, 1};
  tensor.device = {kDLVulkan, 0};
  EXPECT_EQ(from_dlpack(tensor).error().code, ErrorCode::kInvalidDevice);
}

TEST(Float16, EveryBitPatternSurvivesTheRoundTrip) {
  for (uint32_t bits = 0; bits < 65536; ++bits) {
    const auto pattern = static_cast<uint16_t>(bits);
    const float as_f16 = to_float(f16{pattern});
    const float as_bf16 = to_float(bf16{pattern});
    if (!std::isnan(as_f16)) {
      EXPECT_EQ(to_f16(as_f16).bits, pattern);
    }
    if (!std::isnan(as_bf16)) {
      EXPECT_EQ(to_bf16(as_bf16).bits, pattern);
    }
    EXPECT_EQ(std::isnan(to_float(to_f16(as_f16))), std::isnan(as_f16));
    EXPECT_EQ(std::isnan(to_float(to_bf16(as_bf16))), std::isnan(as_bf16));
  }
}

/// Rounding against the definition: nearest representable, ties to the even pattern.
template <class T>
void expect_nearest_even(T (*convert)(float)) {
  uint32_t state = 12345;
  for (int i = 0; i < 200000; ++i) {
    state = state * 1664525u + 1013904223u;
    const float x = std::bit_cast<float>((state & 0x7FFFFFFFu) % 0x7F800000u);
    const T rounded = convert(x);
    const float here = to_float(rounded);
    if (std::isinf(here) || rounded.bits == 0) continue;
    const double error = std::fabs(static_cast<double>(here) - x);
    for (int step : {-1, 1}) {
      const float other = to_float(T{static_cast<uint16_t>(rounded.bits + step)});
      if (std::isinf(other)) continue;
      const double other_error = std::fabs(static_cast<double>(other) - x);
      ASSERT_LE(error, other_error) << x;
      if (error == other_error) {
        ASSERT_EQ(rounded.bits % 2, 0) << x;
      }
    }
  }
}

TEST(Float16, RoundsToNearestEven) {
  expect_nearest_even<bf16>(to_bf16);
  expect_nearest_even<f16>(to_f16);
  EXPECT_EQ(to_f16(65519.0f).bits, 0x7BFF);
  EXPECT_EQ(to_f16(65520.0f).bits, 0x7C00);
  EXPECT_EQ(to_f16(-65520.0f).bits, 0xFC00);
  EXPECT_EQ(to_bf16(std::numeric_limits<float>::max()).bits, 0x7F80);
}

}  // namespace
}  // namespace dsattn
