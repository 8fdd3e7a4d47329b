// Matrix products of the model in fp32: C (+)= A B for operands with any strides, so a transpose is
// only another view. Operands are packed in tiles of kTileRows x depth and depth x kTileCols; one
// thread computes an element from first to last product, so its bits never depend on the threads.
#pragma once

#include <cstdint>
#include <vector>

namespace dsattn::demo {

struct Matrix {
  const float* data = nullptr;
  int64_t rows = 0;
  int64_t cols = 0;
  int64_t row_stride = 0;
  int64_t col_stride = 1;
};

/// A row-major matrix without gaps.
inline Matrix matrix(const std::vector<float>& data, int64_t rows, int64_t cols) {
  return {data.data(), rows, cols, cols, 1};
}

inline Matrix transposed(const Matrix& m) {
  return {m.data, m.cols, m.rows, m.col_stride, m.row_stride};
}

/// c[rows of a, cols of b], row-major without gaps. Needs a.cols == b.rows.
void matmul(const Matrix& a, const Matrix& b, std::vector<float>& c, bool accumulate, int threads);

}  // namespace dsattn::demo
