// The bf16 matrix kernel for AVX512-BF16: one instruction multiplies and adds a pair per lane.
// It treats subnormals as zero.
#include "cpu/gemm_avx512_tile.h"
#include "cpu/gemm_kernels.h"

namespace dsattn::cpu {
namespace {

inline __m512bh as_bf16(__m512i pairs) {
  __m512bh out;
  static_assert(sizeof(out) == sizeof(pairs));
  std::memcpy(&out, &pairs, sizeof(out));
  return out;
}

void multiply(int64_t k, const bf16* a, int64_t lda, const bf16* b, Tile& tile) {
  Tile t = tile;
  for (int64_t i = 0; i < k; i += 2, b += 2 * kPanel) {
    const __m512bh pairs[2] = {as_bf16(_mm512_loadu_si512(b)),
                               as_bf16(_mm512_loadu_si512(b + 2 * kLanes))};
    for (int64_t r = 0; r < kTileRows; ++r) {
      const __m512bh factors = as_bf16(broadcast_pair(a + r * lda + i));
      for (int64_t v = 0; v < 2; ++v) {
        t.sum[r][v] = _mm512_dpbf16_ps(t.sum[r][v], factors, pairs[v]);
      }
    }
  }
  tile = t;
}

}  // namespace

void gemm_bf16_avx512bf16(int64_t m, int64_t n, int64_t k, const bf16* a, int64_t lda,
                          const bf16* b, float* c, int64_t ldc, bool accumulate) {
  for_each_tile(m, n, k, a, lda, b, c, ldc, accumulate, multiply);
}

}  // namespace dsattn::cpu
