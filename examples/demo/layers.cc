// Elementwise layers; every sum has one order, whatever the number of threads.
#include "layers.h"

#include <algorithm>
#include <cmath>

namespace dsattn::demo {
namespace {

constexpr float kEpsilon = 1e-6f;
constexpr int64_t kBlockRows = 64;  // rows of one partial sum

float inverse_rms(const float* x, int64_t width) {
  float sum = 0.0f;
  for (int64_t i = 0; i < width; ++i) sum += x[i] * x[i];
  return 1.0f / std::sqrt(sum / static_cast<float>(width) + kEpsilon);
}

int64_t block_count(int64_t rows) { return (rows + kBlockRows - 1) / kBlockRows; }

// One row of rms_norm_backward; dgain is the block's partial sum.
void norm_row_backward(int64_t width, const float* x, const float* gain, const float* dy, float* dx,
                       bool accumulate, float* dgain) {
  const float scale = inverse_rms(x, width);
  float dot = 0.0f;
  for (int64_t i = 0; i < width; ++i) {
    dgain[i] += dy[i] * x[i] * scale;
    dot += dy[i] * gain[i] * x[i];
  }
  dot *= scale * scale / static_cast<float>(width);
  for (int64_t i = 0; i < width; ++i) {
    const float grad = scale * (dy[i] * gain[i] - x[i] * dot);
    dx[i] = accumulate ? dx[i] + grad : grad;
  }
}

void add_blocks(int64_t blocks, int64_t width, const std::vector<float>& partial,
                std::vector<float>& out) {
  for (int64_t b = 0; b < blocks; ++b) {
    for (int64_t i = 0; i < width; ++i) out[size_t(i)] += partial[size_t(b * width + i)];
  }
}

}  // namespace

void rms_norm(int64_t rows, Columns cols, const float* x, const float* gain, float* y,
              int threads) {
#pragma omp parallel for schedule(static) num_threads(threads)
  for (int64_t r = 0; r < rows; ++r) {
    const float* from = x + r * cols.stride + cols.first;
    float* to = y + r * cols.stride + cols.first;
    const float scale = inverse_rms(from, cols.width);
    for (int64_t i = 0; i < cols.width; ++i) to[i] = from[i] * scale * gain[i];
  }
}

void rms_norm_backward(int64_t rows, Columns cols, const float* x, const float* gain,
                       const float* dy, float* dx, bool accumulate, std::vector<float>& dgain,
                       int threads) {
  const int64_t blocks = block_count(rows);
  std::vector<float> partial(size_t(blocks * cols.width), 0.0f);
#pragma omp parallel for schedule(static) num_threads(threads)
  for (int64_t b = 0; b < blocks; ++b) {
    for (int64_t r = b * kBlockRows; r < std::min(rows, (b + 1) * kBlockRows); ++r) {
      const int64_t at = r * cols.stride + cols.first;
      norm_row_backward(cols.width, x + at, gain, dy + at, dx + at, accumulate,
                        partial.data() + b * cols.width);
    }
  }
  add_blocks(blocks, cols.width, partial, dgain);
}

Rotation::Rotation(int64_t context, int64_t width)
    : context_(context), half_(width / 2), cosine_(size_t(context * half_)), sine_(cosine_.size()) {
  for (int64_t i = 0; i < half_; ++i) {
    for (int64_t t = 0; t < context; ++t) {
      const double angle = static_cast<double>(t) * rate(context, width, i);
      cosine_[size_t(t * half_ + i)] = static_cast<float>(std::cos(angle));
      sine_[size_t(t * half_ + i)] = static_cast<float>(std::sin(angle));
    }
  }
}

double Rotation::rate(int64_t context, int64_t width, int64_t pair) {
  const auto last = static_cast<double>(std::max<int64_t>(1, width / 2 - 1));
  return std::pow(static_cast<double>(context) / 3.0, -static_cast<double>(pair) / last);
}

void Rotation::apply(int64_t rows, int64_t heads, int64_t head_width, int64_t first, float sign,
                     float* x, int threads) const {
#pragma omp parallel for schedule(static) num_threads(threads)
  for (int64_t r = 0; r < rows; ++r) {
    const float* c = cosine_.data() + r % context_ * half_;
    const float* s = sine_.data() + r % context_ * half_;
    for (int64_t h = 0; h < heads; ++h) {
      float* lo = x + (r * heads + h) * head_width + first;
      float* hi = lo + half_;
      for (int64_t i = 0; i < half_; ++i) {
        const float a = lo[i];
        const float b = hi[i];
        lo[i] = a * c[i] - sign * b * s[i];
        hi[i] = sign * a * s[i] + b * c[i];
      }
    }
  }
}

void squared_relu(int64_t count, const float* x, float* y, int threads) {
#pragma omp parallel for schedule(static) num_threads(threads)
  for (int64_t i = 0; i < count; ++i) {
    const float positive = std::max(x[i], 0.0f);
    y[i] = positive * positive;
  }
}

void squared_relu_backward(int64_t count, const float* x, const float* dy, float* dx, int threads) {
#pragma omp parallel for schedule(static) num_threads(threads)
  for (int64_t i = 0; i < count; ++i) dx[i] = dy[i] * 2.0f * std::max(x[i], 0.0f);
}

void add_bias(int64_t rows, int64_t cols, const float* bias, float* x, int threads) {
#pragma omp parallel for schedule(static) num_threads(threads)
  for (int64_t r = 0; r < rows; ++r) {
    for (int64_t i = 0; i < cols; ++i) x[r * cols + i] += bias[i];
  }
}

double cross_entropy(int64_t rows, int64_t classes, float* logits, const uint8_t* targets,
                     int threads) {
  std::vector<double> losses(static_cast<size_t>(rows));
  const float weight = 1.0f / static_cast<float>(rows);
#pragma omp parallel for schedule(static) num_threads(threads)
  for (int64_t r = 0; r < rows; ++r) {
    float* row = logits + r * classes;
    const float top = *std::max_element(row, row + classes);
    const float target_logit = row[targets[r]];
    float sum = 0.0f;
    for (int64_t i = 0; i < classes; ++i) {
      row[i] = std::exp(row[i] - top);
      sum += row[i];
    }
    losses[size_t(r)] = std::log(static_cast<double>(sum)) + static_cast<double>(top) -
                        static_cast<double>(target_logit);
    for (int64_t i = 0; i < classes; ++i) row[i] *= weight / sum;
    row[targets[r]] -= weight;
  }
  double total = 0.0;
  for (double loss : losses) total += loss;
  return total / static_cast<double>(rows);
}

void add_row_sums(int64_t rows, int64_t cols, const float* x, std::vector<float>& out,
                  int threads) {
  const int64_t blocks = block_count(rows);
  std::vector<float> partial(size_t(blocks * cols), 0.0f);
#pragma omp parallel for schedule(static) num_threads(threads)
  for (int64_t b = 0; b < blocks; ++b) {
    float* sums = partial.data() + b * cols;
    for (int64_t r = b * kBlockRows; r < std::min(rows, (b + 1) * kBlockRows); ++r) {
      for (int64_t i = 0; i < cols; ++i) sums[i] += x[r * cols + i];
    }
  }
  add_blocks(blocks, cols, partial, out);
}

}  // namespace dsattn::demo
