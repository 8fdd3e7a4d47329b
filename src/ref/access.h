// How the reference reads and writes tensors: any element type and any strides, as doubles.
// Rows go into contiguous buffers once, so that the loops over them stay plain.
#pragma once

#include <cstdint>
#include <vector>

#include "base/float16.h"
#include "dsattn/tensor.h"

namespace dsattn::ref {

/// Element offset of view[index...]; dimensions not named count as 0.
template <class... Index>
int64_t offset_of(const TensorView& view, Index... index) {
  int64_t offset = 0;
  int dim = 0;
  ((offset += static_cast<int64_t>(index) * view.stride(dim++)), ...);
  return offset;
}

/// Calls f(pointer to the view's element type) for the floating types.
template <class F>
void with_float_pointer(const TensorView& view, F&& f) {
  switch (view.dtype) {
    case DType::kBF16:
      return f(view.ptr<bf16>());
    case DType::kF16:
      return f(view.ptr<f16>());
    case DType::kF32:
      return f(view.ptr<float>());
    case DType::kF64:
      return f(view.ptr<double>());
    case DType::kI32:
    case DType::kNone:
      break;
  }
}

inline void round_to(double x, double& out) { out = x; }
template <class T>
void round_to(double x, T& out) {
  out = from_float<T>(static_cast<float>(x));
}

/// row[0..count) = the last dimension of view[index...].
template <class... Index>
void read_row(const TensorView& view, double* row, int64_t count, Index... index) {
  const int64_t begin = offset_of(view, index...);
  const int64_t step = view.stride(view.rank - 1);
  with_float_pointer(view, [&](const auto* data) {
    for (int64_t i = 0; i < count; ++i) row[i] = to_double(data[begin + i * step]);
  });
}

/// view[index..., 0..count) = row, rounded to the view's element type.
template <class... Index>
void write_row(const TensorView& view, const double* row, int64_t count, Index... index) {
  const int64_t begin = offset_of(view, index...);
  const int64_t step = view.stride(view.rank - 1);
  with_float_pointer(view, [&](auto* data) {
    for (int64_t i = 0; i < count; ++i) round_to(row[i], data[begin + i * step]);
  });
}

template <class... Index>
double read(const TensorView& view, Index... index) {
  double value = 0;
  with_float_pointer(view,
                     [&](const auto* data) { value = to_double(data[offset_of(view, index...)]); });
  return value;
}

template <class... Index>
void write(const TensorView& view, double value, Index... index) {
  with_float_pointer(view, [&](auto* data) { round_to(value, data[offset_of(view, index...)]); });
}

template <class... Index>
int64_t read_int(const TensorView& view, Index... index) {
  return view.ptr<const int32_t>()[offset_of(view, index...)];
}

/// A matrix of doubles whose rows are made when first touched: gradients of key rows, of which a
/// call may touch few.
class RowSums {
 public:
  RowSums(int64_t rows, int64_t width)
      : width_(static_cast<size_t>(width)), rows_(static_cast<size_t>(rows)) {}

  double* row(int64_t r) {
    std::vector<double>& sums = rows_[static_cast<size_t>(r)];
    if (sums.empty()) sums.assign(width_, 0.0);
    return sums.data();
  }

  /// Writes every row; untouched ones as zeros.
  void store(const TensorView& out) const {
    const std::vector<double> zeros(width_, 0.0);
    for (size_t r = 0; r < rows_.size(); ++r) {
      const double* sums = rows_[r].empty() ? zeros.data() : rows_[r].data();
      write_row(out, sums, static_cast<int64_t>(width_), r);
    }
  }

 private:
  size_t width_;
  std::vector<std::vector<double>> rows_;
};

}  // namespace dsattn::ref
