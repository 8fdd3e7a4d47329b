// Matrix kernels for AVX2 with FMA: 4 rows by 16 columns of sums in eight registers. A bf16 pair
// is split into two floats (a shift, a mask) and costs two multiply-adds.
#include <immintrin.h>

#include <cstring>

#include "cpu/gemm.h"
#include "cpu/gemm_kernels.h"

namespace dsattn::cpu {
namespace {

constexpr int64_t kTileRows = 4;
constexpr int64_t kLanes = 8;
constexpr int64_t kHalf = 2 * kLanes;  // columns of one tile: half a panel

struct Tile {
  __m256 sum[kTileRows][2];

  void load(const float* c, int64_t ldc, bool accumulate) {
    for (int64_t r = 0; r < kTileRows; ++r) {
      for (int64_t v = 0; v < 2; ++v) {
        sum[r][v] = accumulate ? _mm256_loadu_ps(c + r * ldc + v * kLanes) : _mm256_setzero_ps();
      }
    }
  }
  void store(float* c, int64_t ldc) const {
    for (int64_t r = 0; r < kTileRows; ++r) {
      for (int64_t v = 0; v < 2; ++v) _mm256_storeu_ps(c + r * ldc + v * kLanes, sum[r][v]);
    }
  }
};

inline __m256 low_float(__m256i pairs) { return _mm256_castsi256_ps(_mm256_slli_epi32(pairs, 16)); }
inline __m256 high_float(__m256i pairs) {
  return _mm256_castsi256_ps(_mm256_and_si256(pairs, _mm256_set1_epi32(-65536)));
}
inline __m256i load_pairs(const bf16* p) {
  return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(p));
}
inline __m256i broadcast_pair(const bf16* p) {
  int32_t pair;
  std::memcpy(&pair, p, sizeof(pair));
  return _mm256_set1_epi32(pair);
}

// b: the tile's first column in its panel.
void multiply(int64_t k, const bf16* a, int64_t lda, const bf16* b, Tile& tile) {
  Tile t = tile;
  for (int64_t i = 0; i < k; i += 2, b += 2 * kPanel) {
    const __m256i pairs[2] = {load_pairs(b), load_pairs(b + 2 * kLanes)};
    const __m256 low[2] = {low_float(pairs[0]), low_float(pairs[1])};
    const __m256 high[2] = {high_float(pairs[0]), high_float(pairs[1])};
    for (int64_t r = 0; r < kTileRows; ++r) {
      const __m256i factors = broadcast_pair(a + r * lda + i);
      for (int64_t v = 0; v < 2; ++v) {
        t.sum[r][v] = _mm256_fmadd_ps(low_float(factors), low[v], t.sum[r][v]);
        t.sum[r][v] = _mm256_fmadd_ps(high_float(factors), high[v], t.sum[r][v]);
      }
    }
  }
  tile = t;
}

void multiply(int64_t k, const float* a, int64_t lda, const float* b, Tile& tile) {
  Tile t = tile;
  for (int64_t i = 0; i < k; ++i, b += kPanel) {
    const __m256 row[2] = {_mm256_loadu_ps(b), _mm256_loadu_ps(b + kLanes)};
    for (int64_t r = 0; r < kTileRows; ++r) {
      const __m256 factor = _mm256_set1_ps(a[r * lda + i]);
      for (int64_t v = 0; v < 2; ++v) t.sum[r][v] = _mm256_fmadd_ps(factor, row[v], t.sum[r][v]);
    }
  }
  tile = t;
}

template <class T>
void gemm(int64_t m, int64_t n, int64_t k, const T* a, int64_t lda, const T* b, float* c,
          int64_t ldc, bool accumulate) {
  constexpr int64_t kWidth = sizeof(T) == 2 ? 2 : 1;  // elements of B per column and k step
  for (int64_t column = 0; column < n; column += kHalf) {
    const T* panel = b + column / kPanel * kPanel * k + column % kPanel * kWidth;
    for (int64_t row = 0; row < m; row += kTileRows) {
      Tile tile;
      tile.load(c + row * ldc + column, ldc, accumulate);
      multiply(k, a + row * lda, lda, panel, tile);
      tile.store(c + row * ldc + column, ldc);
    }
  }
}

}  // namespace

void gemm_bf16_avx2(int64_t m, int64_t n, int64_t k, const bf16* a, int64_t lda, const bf16* b,
                    float* c, int64_t ldc, bool accumulate) {
  gemm(m, n, k, a, lda, b, c, ldc, accumulate);
}

void gemm_f32_avx2(int64_t m, int64_t n, int64_t k, const float* a, int64_t lda, const float* b,
                   float* c, int64_t ldc, bool accumulate) {
  gemm(m, n, k, a, lda, b, c, ldc, accumulate);
}

}  // namespace dsattn::cpu
