// The sums of one 8 x 32 tile of C in sixteen AVX-512 registers, shared by the AVX-512 kernels.
// Only files compiled with AVX-512 options include this; everything here is local to the file.
#pragma once

#include <immintrin.h>

#include <cstring>

#include "cpu/gemm.h"

namespace dsattn::cpu {
namespace {

constexpr int64_t kTileRows = 8;
constexpr int64_t kLanes = 16;

struct Tile {
  __m512 sum[kTileRows][2];

  void load(const float* c, int64_t ldc, bool accumulate) {
    for (int64_t r = 0; r < kTileRows; ++r) {
      for (int64_t v = 0; v < 2; ++v) {
        sum[r][v] = accumulate ? _mm512_loadu_ps(c + r * ldc + v * kLanes) : _mm512_setzero_ps();
      }
    }
  }
  void store(float* c, int64_t ldc) const {
    for (int64_t r = 0; r < kTileRows; ++r) {
      for (int64_t v = 0; v < 2; ++v) _mm512_storeu_ps(c + r * ldc + v * kLanes, sum[r][v]);
    }
  }
};

inline __m512i broadcast_pair(const bf16* p) {
  int32_t pair;
  std::memcpy(&pair, p, sizeof(pair));
  return _mm512_set1_epi32(pair);
}

// Calls multiply(k, a, lda, panel, tile) for every tile of C.
template <class T, class Multiply>
void for_each_tile(int64_t m, int64_t n, int64_t k, const T* a, int64_t lda, const T* b, float* c,
                   int64_t ldc, bool accumulate, const Multiply& multiply) {
  for (int64_t column = 0; column < n; column += kPanel) {
    for (int64_t row = 0; row < m; row += kTileRows) {
      Tile tile;
      tile.load(c + row * ldc + column, ldc, accumulate);
      multiply(k, a + row * lda, lda, b + column * k, tile);
      tile.store(c + row * ldc + column, ldc);
    }
  }
}

}  // namespace
}  // namespace dsattn::cpu
