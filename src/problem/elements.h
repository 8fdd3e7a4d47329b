// Element access to owned tensors by flat index, whatever the type: for generators and checks,
// where clarity counts more than speed.
#pragma once

#include <cstdint>
#include <vector>

#include "base/float16.h"
#include "base/owned_tensor.h"

namespace dsattn {

/// Calls f(span of the tensor's own element type).
template <class Tensor, class F>
void with_elements(Tensor& tensor, F&& f) {
  switch (tensor.dtype()) {
    case DType::kBF16:
      return f(tensor.template elements<bf16>());
    case DType::kF16:
      return f(tensor.template elements<f16>());
    case DType::kF32:
      return f(tensor.template elements<float>());
    case DType::kF64:
      return f(tensor.template elements<double>());
    case DType::kI32:
      return f(tensor.template elements<int32_t>());
    case DType::kNone:
      break;
  }
}

inline double element_to_double(int32_t x) { return x; }
template <class T>
double element_to_double(T x) {
  return to_double(x);
}

inline void store_element(double x, int32_t& to) { to = static_cast<int32_t>(x); }
inline void store_element(double x, double& to) { to = x; }
template <class T>
void store_element(double x, T& to) {
  to = from_float<T>(static_cast<float>(x));
}

/// tensor[i] = f(i), rounded to the element type.
template <class F>
void fill_with(OwnedTensor& tensor, F&& f) {
  with_elements(tensor, [&](auto elements) {
    int64_t i = 0;
    for (auto& element : elements) store_element(f(i++), element);
  });
}

inline std::vector<double> to_doubles(const OwnedTensor& tensor) {
  std::vector<double> values;
  values.reserve(static_cast<size_t>(tensor.numel()));
  with_elements(tensor, [&](auto elements) {
    for (auto element : elements) values.push_back(element_to_double(element));
  });
  return values;
}

/// The tensor with floating elements widened to F64, exactly. I32 stays as it is (shared).
inline Result<OwnedTensor> to_f64(const OwnedTensor& tensor) {
  if (tensor.dtype() == DType::kI32 || tensor.dtype() == DType::kF64) return tensor;
  auto wide = OwnedTensor::make(DType::kF64, tensor.shape());
  if (!wide) return wide;
  const std::vector<double> values = to_doubles(tensor);
  fill_with(*wide, [&](int64_t i) { return values[static_cast<size_t>(i)]; });
  return wide;
}

}  // namespace dsattn
