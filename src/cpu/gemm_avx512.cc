// Matrix kernels for AVX-512 without bf16 instructions: a bf16 pair is split into two floats (a
// shift, a mask) and costs two multiply-adds.
#include "cpu/gemm_avx512_tile.h"
#include "cpu/gemm_kernels.h"

namespace dsattn::cpu {
namespace {

inline __m512 low_float(__m512i pairs) { return _mm512_castsi512_ps(_mm512_slli_epi32(pairs, 16)); }
inline __m512 high_float(__m512i pairs) {
  return _mm512_castsi512_ps(_mm512_and_si512(pairs, _mm512_set1_epi32(-65536)));
}

void multiply_bf16(int64_t k, const bf16* a, int64_t lda, const bf16* b, Tile& tile) {
  Tile t = tile;
  for (int64_t i = 0; i < k; i += 2, b += 2 * kPanel) {
    const __m512i pairs[2] = {_mm512_loadu_si512(b), _mm512_loadu_si512(b + 2 * kLanes)};
    const __m512 low[2] = {low_float(pairs[0]), low_float(pairs[1])};
    const __m512 high[2] = {high_float(pairs[0]), high_float(pairs[1])};
    for (int64_t r = 0; r < kTileRows; ++r) {
      const __m512i factors = broadcast_pair(a + r * lda + i);
      for (int64_t v = 0; v < 2; ++v) {
        t.sum[r][v] = _mm512_fmadd_ps(low_float(factors), low[v], t.sum[r][v]);
        t.sum[r][v] = _mm512_fmadd_ps(high_float(factors), high[v], t.sum[r][v]);
      }
    }
  }
  tile = t;
}

void multiply_f32(int64_t k, const float* a, int64_t lda, const float* b, Tile& tile) {
  Tile t = tile;
  for (int64_t i = 0; i < k; ++i, b += kPanel) {
    const __m512 row[2] = {_mm512_loadu_ps(b), _mm512_loadu_ps(b + kLanes)};
    for (int64_t r = 0; r < kTileRows; ++r) {
      const __m512 factor = _mm512_set1_ps(a[r * lda + i]);
      for (int64_t v = 0; v < 2; ++v) t.sum[r][v] = _mm512_fmadd_ps(factor, row[v], t.sum[r][v]);
    }
  }
  tile = t;
}

}  // namespace

void gemm_bf16_avx512(int64_t m, int64_t n, int64_t k, const bf16* a, int64_t lda, const bf16* b,
                      float* c, int64_t ldc, bool accumulate) {
  for_each_tile(m, n, k, a, lda, b, c, ldc, accumulate, multiply_bf16);
}

void gemm_f32_avx512(int64_t m, int64_t n, int64_t k, const float* a, int64_t lda, const float* b,
                     float* c, int64_t ldc, bool accumulate) {
  for_each_tile(m, n, k, a, lda, b, c, ldc, accumulate, multiply_f32);
}

}  // namespace dsattn::cpu
