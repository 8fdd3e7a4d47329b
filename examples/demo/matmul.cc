// Packing into tiles and the tile kernel.
#include "matmul.h"

#include <omp.h>

#include <algorithm>
#include <cstring>

namespace dsattn::demo {
namespace {

constexpr int64_t kTileRows = 8;
constexpr int64_t kTileCols = 32;
constexpr int64_t kBlockDepth = 256;  // products added in registers before they go to C

// Both kernels: a is [depth][kTileRows], b is [depth][kTileCols], tile is [kTileRows][kTileCols];
// sums stay in registers and every product is added in ascending depth.
#if defined(__x86_64__)
[[gnu::target("avx512f")]] void multiply_wide(int64_t depth, const float* a, const float* b,
                                              float* tile) {
  using Vec [[gnu::vector_size(64), gnu::aligned(4), gnu::may_alias]] = float;
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
const bool has_wide = __builtin_cpu_supports("avx512f");
#endif

// Vectors that every machine has, in blocks of 4 rows and 8 columns.
void multiply_narrow(int64_t depth, const float* a, const float* b, float* tile) {
  using Vec [[gnu::vector_size(16), gnu::aligned(4), gnu::may_alias]] = float;
  for (int64_t at = 0; at < kTileRows * kTileCols; at += 4 * kTileCols) {
    for (int64_t col = 0; col < kTileCols; col += 8) {
      Vec sum[4][2] = {};
      for (int64_t k = 0; k < depth; ++k) {
        const Vec b0 = *reinterpret_cast<const Vec*>(b + k * kTileCols + col);
        const Vec b1 = *reinterpret_cast<const Vec*>(b + k * kTileCols + col + 4);
#pragma GCC unroll 4
        for (int64_t i = 0; i < 4; ++i) {
          const float x = a[k * kTileRows + at / kTileCols + i];
          sum[i][0] += x * b0;
          sum[i][1] += x * b1;
        }
      }
      for (int64_t i = 0; i < 4; ++i) {
        std::memcpy(tile + at + i * kTileCols + col, sum[i], sizeof(sum[i]));
      }
    }
  }
}

void multiply_tile(int64_t depth, const float* a, const float* b, float* tile) {
#if defined(__x86_64__)
  if (has_wide) return multiply_wide(depth, a, b, tile);
#endif
  multiply_narrow(depth, a, b, tile);
}

// Copies lines [first, first + kWidth) of m, zeros past the end: packed[k][i] = m(first + i, k).
template <int64_t kWidth>
void pack(const Matrix& m, int64_t first, float* packed) {
  const int64_t present = std::min(kWidth, m.rows - first);
  const float* base = m.data + first * m.row_stride;
  if (present == kWidth && m.row_stride == 1) {
    for (int64_t k = 0; k < m.cols; ++k) {
      std::memcpy(packed + k * kWidth, base + k * m.col_stride, kWidth * sizeof(float));
    }
  } else if (present == kWidth) {
    for (int64_t k = 0; k < m.cols; ++k) {
#pragma GCC unroll 32
      for (int64_t i = 0; i < kWidth; ++i) {
        packed[k * kWidth + i] = base[i * m.row_stride + k * m.col_stride];
      }
    }
  } else {
    std::fill(packed, packed + m.cols * kWidth, 0.0f);
    for (int64_t k = 0; k < m.cols; ++k) {
      for (int64_t i = 0; i < present; ++i) {
        packed[k * kWidth + i] = base[i * m.row_stride + k * m.col_stride];
      }
    }
  }
}

void store(const float* tile, int64_t rows, int64_t cols, float* c, int64_t stride,
           bool accumulate) {
  for (int64_t i = 0; i < rows; ++i) {
    const float* from = tile + i * kTileCols;
    float* to = c + i * stride;
    if (!accumulate) {
      std::memcpy(to, from, static_cast<size_t>(cols) * sizeof(float));
    } else {
      for (int64_t j = 0; j < cols; ++j) to[j] += from[j];
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
      pack<kTileCols>(b_lines, j * kTileCols, pb + j * kTileCols * depth);
    }
    const int64_t thread = omp_get_thread_num();
    const int64_t team = omp_get_num_threads();
    const int64_t first = row_tiles * thread / team;
    const int64_t last = row_tiles * (thread + 1) / team;
    for (int64_t i = first; i < last; ++i) {
      pack<kTileRows>(a, i * kTileRows, pa + i * kTileRows * depth);
    }
    // A block of B's panel stays in the first cache while the rows pass by.
    for (int64_t k = 0; k < depth; k += kBlockDepth) {
      const int64_t block = std::min(kBlockDepth, depth - k);
      for (int64_t j = 0; j < col_tiles; ++j) {
        for (int64_t i = first; i < last; ++i) {
          alignas(64) float tile[kTileRows * kTileCols];
          multiply_tile(block, pa + (i * depth + k) * kTileRows, pb + (j * depth + k) * kTileCols,
                        tile);
          store(tile, std::min(kTileRows, a.rows - i * kTileRows),
                std::min(kTileCols, n - j * kTileCols), out + i * kTileRows * n + j * kTileCols, n,
                accumulate || k > 0);
        }
      }
    }
  }
}

}  // namespace dsattn::demo
