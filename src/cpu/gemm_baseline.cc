// Matrix kernels in plain C++, for any processor: one row of C and one panel of B at a time, with
// the 32 sums in an array that compilers keep in vector registers.
#include "cpu/gemm.h"
#include "cpu/gemm_kernels.h"

namespace dsattn::cpu {
namespace {

struct RowSums {
  float sum[kPanel];

  RowSums(const float* c, bool accumulate) {
    for (int64_t n = 0; n < kPanel; ++n) sum[n] = accumulate ? c[n] : 0.0f;
  }
  void store(float* c) const {
    for (int64_t n = 0; n < kPanel; ++n) c[n] = sum[n];
  }
};

}  // namespace

void gemm_bf16_baseline(int64_t m, int64_t n, int64_t k, const bf16* a, int64_t lda, const bf16* b,
                        float* c, int64_t ldc, bool accumulate) {
  for (int64_t column = 0; column < n; column += kPanel) {
    const bf16* panel = b + column * k;
    for (int64_t row = 0; row < m; ++row) {
      float* target = c + row * ldc + column;
      RowSums sums(target, accumulate);
      for (int64_t i = 0; i < k; i += 2) {
        const float low = to_float(a[row * lda + i]);
        const float high = to_float(a[row * lda + i + 1]);
        const bf16* pairs = panel + i * kPanel;
        for (int64_t j = 0; j < kPanel; ++j) {
          sums.sum[j] += low * to_float(pairs[2 * j]);
          sums.sum[j] += high * to_float(pairs[2 * j + 1]);
        }
      }
      sums.store(target);
    }
  }
}

void gemm_f32_baseline(int64_t m, int64_t n, int64_t k, const float* a, int64_t lda, const float* b,
                       float* c, int64_t ldc, bool accumulate) {
  for (int64_t column = 0; column < n; column += kPanel) {
    const float* panel = b + column * k;
    for (int64_t row = 0; row < m; ++row) {
      float* target = c + row * ldc + column;
      RowSums sums(target, accumulate);
      for (int64_t i = 0; i < k; ++i) {
        const float factor = a[row * lda + i];
        for (int64_t j = 0; j < kPanel; ++j) sums.sum[j] += factor * panel[i * kPanel + j];
      }
      sums.store(target);
    }
  }
}

}  // namespace dsattn::cpu
