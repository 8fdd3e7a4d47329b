// The CPU engine's matrix products: C[M, N] (+)= A[M, K] * B[K, N] with fp32 sums, one thread,
// operands that fit a cache. Every kernel adds the products of one element in ascending k with the
// same grouping whatever M and N are, so an element's bits depend on its row and column alone.
//
// B is packed in panels of kPanel columns. bf16: [N / kPanel][K / 2][kPanel][2] (pairs along K, as
// the matrix units read them); f32: [N / kPanel][K][kPanel]. Callers pad with zeros:
// M % kRows == 0, N % kPanel == 0, K % kDepth == 0. gemm_<isa>.cc hold the kernels.
#pragma once

#include <cstdint>

#include "base/float16.h"
#include "dsattn/ops.h"

namespace dsattn::cpu {

inline constexpr int64_t kRows = 16;   // M granularity
inline constexpr int64_t kPanel = 32;  // N granularity
inline constexpr int64_t kDepth = 32;  // K granularity

/// Index into a packed bf16 B of element (k, n), K = its padded depth.
constexpr int64_t packed_index_bf16(int64_t k, int64_t n, int64_t depth) {
  return (n / kPanel) * depth * kPanel + (k / 2) * kPanel * 2 + (n % kPanel) * 2 + k % 2;
}

/// Index into a packed f32 B of element (k, n).
constexpr int64_t packed_index_f32(int64_t k, int64_t n, int64_t depth) {
  return (n / kPanel) * depth * kPanel + k * kPanel + n % kPanel;
}

/// The kernels of one instruction set. accumulate = false overwrites C.
struct Gemm {
  CpuIsa isa;
  void (*bf16_kernel)(int64_t m, int64_t n, int64_t k, const bf16* a, int64_t lda, const bf16* b,
                      float* c, int64_t ldc, bool accumulate);
  void (*f32_kernel)(int64_t m, int64_t n, int64_t k, const float* a, int64_t lda, const float* b,
                     float* c, int64_t ldc, bool accumulate);

  /// Same call for both element types.
  void operator()(int64_t m, int64_t n, int64_t k, const bf16* a, int64_t lda, const bf16* b,
                  float* c, int64_t ldc, bool accumulate) const {
    bf16_kernel(m, n, k, a, lda, b, c, ldc, accumulate);
  }
  void operator()(int64_t m, int64_t n, int64_t k, const float* a, int64_t lda, const float* b,
                  float* c, int64_t ldc, bool accumulate) const {
    f32_kernel(m, n, k, a, lda, b, c, ldc, accumulate);
  }
};

/// The kernels for `limit` or the best below it that this machine has (kAuto: the best).
const Gemm& gemm_for(CpuIsa limit);

/// The best instruction set this machine (and its operating system) offers.
CpuIsa detect_cpu_isa();

}  // namespace dsattn::cpu
