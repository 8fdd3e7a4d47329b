#include "matmul.h"

#include <algorithm>
#include <cstring>

namespace dsattn::demo {
namespace {

constexpr int64_t kTileRows = 8;
constexpr int64_t kTileCols = 32;

// One register of 16 floats on AVX-512; the compiler splits it on narrower machines.
using Vec [[gnu::vector_size(64), gnu::aligned(4), gnu::may_alias]] = float;

// a: [depth][kTileRows], b: [depth][kTileCols], tile: [kTileRows][kTileCols].
// Sixteen sums stay in registers; every product is added in ascending depth.
[[gnu::target_clones("avx512f", "avx2,fma", "default")]] void multiply_tile(int64_t depth,
                                                                         const float* a,
                                                                         const float* b,
                                                                         float* tile) {
  Vec sum[kTileRows][2] = {};
  for (int64_t k = 0; k < depth; ++k) {
    const Vec b0 = *reinterpret_cast<const Vec*>(b + k * kTileCols);
    const Vec b1 = *reinterpret_cast<const Vec*>(b + k * kTileCols + 16);
#pragma GCC unroll 8
    for (int64_t i = 0; i < kTileRows; ++i) {
      const float x = a[k * kTileRows + i];
      sum[i][0] += x * b0;
      sum[i][1] += x * b1;
    }
  }
  std::memcpy(tile, sum, sizeof(sum));
}

// Copies lines [first, first + width) of m, line by line along `across`, zeros past the end:
// packed[k][i] = m(first + i, k).
void pack(const Matrix& m, int64_t first, int64_t width, float* packed) {
  const int64_t present = std::min(width, m.rows - first);
  const float* base = m.data + first * m.row_stride;
  for (int64_t k = 0; k < m.cols; ++k) {
    const float* from = base + k * m.col_stride;
    float* to = packed + k * width;
    for (int64_t i = 0; i < present; ++i) to[i] = from[i * m.row_stride];
    for (int64_t i = present; i < width; ++i) to[i] = 0.0f;
  }
}

void store(const float* tile, int64_t rows, int64_t cols, float* c, int64_t stride,
           bool accumulate) {
  for (int64_t i = 0; i < rows; ++i) {
    for (int64_t j = 0; j < cols; ++j) {
      float& to = c[i * stride + j];
      to = accumulate ? to + tile[i * kTileCols + j] : tile[i * kTileCols + j];
    }
  }
}

}  // namespace

void matmul(const Matrix& a, const Matrix& b, std::vector<float>& c, bool accumulate, int threads) {
  const int64_t depth = a.cols;
  const int64_t n = b.cols;
  const int64_t row_tiles = (a.rows + kTileRows - 1) / kTileRows;
  const int64_t col_tiles = (n + kTileCols - 1) / kTileCols;
  static thread_local std::vector<float> packed_a;  // kept between calls: no page faults
  static thread_local std::vector<float> packed_b;
  packed_a.resize(std::max(packed_a.size(), size_t(row_tiles * kTileRows * depth)));
  packed_b.resize(std::max(packed_b.size(), size_t(col_tiles * kTileCols * depth)));
  float* const pa = packed_a.data();
  float* const pb = packed_b.data();
  float* const out = c.data();
  const Matrix b_lines = transposed(b);
#pragma omp parallel num_threads(threads)
  {
#pragma omp for schedule(static)
    for (int64_t j = 0; j < col_tiles; ++j) {
      pack(b_lines, j * kTileCols, kTileCols, pb + j * kTileCols * depth);
    }
#pragma omp for schedule(static)
    for (int64_t i = 0; i < row_tiles; ++i) {
      const float* a_tile = pa + i * kTileRows * depth;
      pack(a, i * kTileRows, kTileRows, pa + i * kTileRows * depth);
      alignas(64) float tile[kTileRows * kTileCols];
      for (int64_t j = 0; j < col_tiles; ++j) {
        multiply_tile(depth, a_tile, pb + j * kTileCols * depth, tile);
        store(tile, std::min(kTileRows, a.rows - i * kTileRows),
              std::min(kTileCols, n - j * kTileCols), out + i * kTileRows * n + j * kTileCols, n,
              accumulate);
      }
    }
  }
}

}  // namespace dsattn::demo
