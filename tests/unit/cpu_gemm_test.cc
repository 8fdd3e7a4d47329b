// The matrix kernels of every instruction set this machine has, against a plain product in double.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>
#include <vector>

#include "cpu/gemm.h"

namespace dsattn::cpu {
namespace {

template <class T>
T element(float x);
template <>
float element<float>(float x) {
  return x;
}
template <>
bf16 element<bf16>(float x) {
  return to_bf16(x);
}

template <class T>
int64_t packed_index(int64_t k, int64_t n, int64_t depth) {
  return sizeof(T) == 2 ? packed_index_bf16(k, n, depth) : packed_index_f32(k, n, depth);
}

template <class T>
struct Operands {
  int64_t m, n, k, lda;
  std::vector<T> a;          // [m, lda], columns beyond k are NaN
  std::vector<T> b;          // packed
  std::vector<double> sum;   // [m, n] exact product
  std::vector<double> size;  // [m, n] sum of the terms' magnitudes

  Operands(int64_t m_in, int64_t n_in, int64_t k_in, uint32_t seed)
      : m(m_in), n(n_in), k(k_in), lda(k_in + 5) {
    std::mt19937 random(seed);
    std::normal_distribution<float> normal;
    a.assign(static_cast<size_t>(m * lda), element<T>(std::numeric_limits<float>::quiet_NaN()));
    b.resize(static_cast<size_t>(k * n));
    for (int64_t i = 0; i < m; ++i) {
      for (int64_t j = 0; j < k; ++j)
        a[static_cast<size_t>(i * lda + j)] = element<T>(normal(random));
    }
    for (T& x : b) x = element<T>(normal(random));
    sum.resize(static_cast<size_t>(m * n));
    size.resize(static_cast<size_t>(m * n));
    for (int64_t i = 0; i < m; ++i) {
      for (int64_t c = 0; c < n; ++c) {
        const auto at = static_cast<size_t>(i * n + c);
        for (int64_t j = 0; j < k; ++j) {
          const double term = to_double(a[static_cast<size_t>(i * lda + j)]) *
                              to_double(b[static_cast<size_t>(packed_index<T>(j, c, k))]);
          sum[at] += term;
          size[at] += std::fabs(term);
        }
      }
    }
  }
};

template <class T>
void expect_product(const Gemm& gemm, int64_t m, int64_t n, int64_t k) {
  const Operands<T> x(m, n, k, static_cast<uint32_t>(m * 7 + n * 3 + k));
  const int64_t ldc = n + 3;
  for (bool accumulate : {false, true}) {
    const float before = accumulate ? 2.5f : std::numeric_limits<float>::quiet_NaN();
    std::vector<float> c(static_cast<size_t>(m * ldc), before);
    gemm(m, n, k, x.a.data(), x.lda, x.b.data(), c.data(), ldc, accumulate);
    for (int64_t i = 0; i < m; ++i) {
      for (int64_t j = 0; j < n; ++j) {
        const auto at = static_cast<size_t>(i * n + j);
        const double expected = x.sum[at] + (accumulate ? 2.5 : 0.0);
        ASSERT_NEAR(c[static_cast<size_t>(i * ldc + j)], expected, 4e-6 * (x.size[at] + 2.5))
            << to_string(gemm.isa) << " " << m << "x" << n << "x" << k << " at " << i << "," << j;
      }
      for (int64_t j = n; j < ldc; ++j) {
        const float beyond = c[static_cast<size_t>(i * ldc + j)];
        ASSERT_TRUE(accumulate ? beyond == before : std::isnan(beyond)) << "wrote past column n";
      }
    }
  }
}

// An element's bits depend on its row of A and column of B, never on the shape around it.
template <class T>
void expect_shape_independent(const Gemm& gemm) {
  const int64_t m = 80, n = 96, k = 160;
  const Operands<T> x(m, n, k, 11);
  std::vector<float> whole(static_cast<size_t>(m * n));
  gemm(m, n, k, x.a.data(), x.lda, x.b.data(), whole.data(), n, false);
  for (int64_t row = 0; row < m; row += kRows) {
    for (int64_t column = 0; column < n; column += kPanel) {
      std::vector<float> part(static_cast<size_t>(kRows * kPanel));
      gemm(kRows, kPanel, k, x.a.data() + row * x.lda, x.lda, x.b.data() + column * k, part.data(),
           kPanel, false);
      for (int64_t i = 0; i < kRows; ++i) {
        for (int64_t j = 0; j < kPanel; ++j) {
          ASSERT_EQ(part[static_cast<size_t>(i * kPanel + j)],
                    whole[static_cast<size_t>((row + i) * n + column + j)])
              << to_string(gemm.isa);
        }
      }
    }
  }
}

class CpuGemm : public testing::TestWithParam<CpuIsa> {
 protected:
  void SetUp() override {
    if (GetParam() > detect_cpu_isa()) GTEST_SKIP() << "not on this machine";
  }
  const Gemm& gemm() const { return gemm_for(GetParam()); }
};

TEST_P(CpuGemm, IsTheOneAskedFor) { EXPECT_EQ(gemm().isa, GetParam()); }

TEST_P(CpuGemm, EqualsPlainProduct) {
  for (int64_t m : {16, 32, 48, 112}) {
    for (int64_t n : {32, 64, 160}) {
      for (int64_t k : {32, 64, 96, 576}) {
        expect_product<bf16>(gemm(), m, n, k);
        expect_product<float>(gemm(), m, n, k);
      }
    }
  }
}

TEST_P(CpuGemm, BitsDoNotDependOnShape) {
  expect_shape_independent<bf16>(gemm());
  expect_shape_independent<float>(gemm());
}

INSTANTIATE_TEST_SUITE_P(Isa, CpuGemm,
                         testing::Values(CpuIsa::kBaseline, CpuIsa::kAvx2, CpuIsa::kAvx512,
                                         CpuIsa::kAvx512Bf16, CpuIsa::kAmx),
                         [](const auto& isa_info) {
                           switch (isa_info.param) {
                             case CpuIsa::kBaseline:
                               return "Baseline";
                             case CpuIsa::kAvx2:
                               return "Avx2";
                             case CpuIsa::kAvx512:
                               return "Avx512";
                             case CpuIsa::kAvx512Bf16:
                               return "Avx512Bf16";
                             default:
                               return "Amx";
                           }
                         });

TEST(CpuGemmChoice, AutoIsTheBestAndALimitHolds) {
  EXPECT_EQ(gemm_for(CpuIsa::kAuto).isa, detect_cpu_isa());
  EXPECT_LE(gemm_for(CpuIsa::kAvx2).isa, CpuIsa::kAvx2);
}

}  // namespace
}  // namespace dsattn::cpu
