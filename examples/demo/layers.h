// The model's elementwise layers, forward and backward, on row-major fp32 arrays. Rows are shared
// out among threads; sums over rows are taken over fixed blocks of rows and then over the blocks,
// so results never depend on the number of threads.
#pragma once

#include <cstdint>
#include <vector>

namespace dsattn::demo {

/// A block of columns [first, first + width) of rows that are `stride` wide.
struct Columns {
  int64_t stride = 0;
  int64_t first = 0;
  int64_t width = 0;
};

/// y = x / rms(x) * gain over the columns of each row; other columns of y stay as they are.
void rms_norm(int64_t rows, Columns cols, const float* x, const float* gain, float* y, int threads);

/// dx += the gradient (dx = it, without `accumulate`); dgain += the gain's.
void rms_norm_backward(int64_t rows, Columns cols, const float* x, const float* gain,
                       const float* dy, float* dx, bool accumulate, std::vector<float>& dgain,
                       int threads);

/// Rotary positions: turns pairs (i, i + width / 2) of a head's columns by angles that grow with
/// the row's position, row % context.
class Rotation {
 public:
  Rotation(int64_t context, int64_t width);

  /// Angle per position of pair `pair` of width / 2: wavelengths from 2 pi positions to about twice
  /// the context.
  static double rate(int64_t context, int64_t width, int64_t pair);

  /// x is [rows, heads, head_width]; the columns turned start at `first`. sign = -1 is the inverse,
  /// which is also the gradient.
  void apply(int64_t rows, int64_t heads, int64_t head_width, int64_t first, float sign, float* x,
             int threads) const;

 private:
  int64_t context_;
  int64_t half_;
  std::vector<float> cosine_;  // [context, half]
  std::vector<float> sine_;
};

/// y = max(x, 0)^2, and dx = dy * 2 max(x, 0).
void squared_relu(int64_t count, const float* x, float* y, int threads);
void squared_relu_backward(int64_t count, const float* x, const float* dy, float* dx, int threads);

/// Mean of -ln softmax(logits)[target] over rows; logits are replaced by the gradient of that mean.
double cross_entropy(int64_t rows, int64_t classes, float* logits, const uint8_t* targets,
                     int threads);

/// Adds a bias to each row of x[rows, cols].
void add_bias(int64_t rows, int64_t cols, const float* bias, float* x, int threads);

/// out[cols] += the sum over rows of x[rows, cols].
void add_row_sums(int64_t rows, int64_t cols, const float* x, std::vector<float>& out, int threads);

}  // namespace dsattn::demo
