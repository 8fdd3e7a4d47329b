// A tensor that owns its memory: contiguous, 64-byte aligned, on the CPU. Copies are cheap and
// share the memory (as arrays do in Python); clone() copies the elements.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "dsattn/result.h"
#include "dsattn/tensor.h"

namespace dsattn {

inline constexpr size_t kStorageAlignment = 64;

class OwnedTensor {
 public:
  OwnedTensor() = default;

  /// A zero-filled tensor. Errors: kInvalidShape (rank above kMaxRank, negative extents, a size
  /// beyond 64 bits), kInternal (not enough memory).
  static Result<OwnedTensor> make(DType dtype, std::span<const int64_t> shape) {
    if (shape.size() > kMaxRank) {
      return fail(ErrorCode::kInvalidShape, std::to_string(shape.size()) +
                                                " dimensions, expected at most " +
                                                std::to_string(kMaxRank));
    }
    int64_t bytes = size_bytes(dtype);
    int64_t reach = bytes;  // as if no extent were 0, so that strides cannot overflow either
    for (int64_t extent : shape) {
      if (extent < 0) return fail(ErrorCode::kInvalidShape, "a negative dimension");
      bytes *= extent == 0 ? 0 : 1;
      if (__builtin_mul_overflow(reach, extent == 0 ? 1 : extent, &reach)) {
        return fail(ErrorCode::kInvalidShape, "a shape beyond 64 bits");
      }
    }
    if (bytes != 0) bytes = reach;
    OwnedTensor tensor;
    tensor.view_.dtype = dtype;
    tensor.view_.rank = static_cast<int>(shape.size());
    for (size_t i = 0; i < shape.size(); ++i) tensor.view_.shape[i] = shape[i];
    tensor.view_.set_contiguous_strides();
    if (!tensor.allocate(static_cast<size_t>(bytes))) {
      return fail(ErrorCode::kInternal, "cannot allocate " + std::to_string(bytes) + " bytes");
    }
    return tensor;
  }

  bool defined() const { return view_.defined(); }
  DType dtype() const { return view_.dtype; }
  int64_t numel() const { return view_.numel(); }
  const TensorView& view() const { return view_; }
  std::span<const int64_t> shape() const {
    return {view_.shape.data(), static_cast<size_t>(view_.rank)};
  }

  std::span<std::byte> bytes() { return {storage_.get(), size_}; }
  std::span<const std::byte> bytes() const { return {storage_.get(), size_}; }

  /// The elements, for a T that matches dtype().
  template <class T>
  std::span<T> elements() {
    return {view_.ptr<T>(), size_ / sizeof(T)};
  }
  template <class T>
  std::span<const T> elements() const {
    return {view_.ptr<const T>(), size_ / sizeof(T)};
  }

  Result<OwnedTensor> clone() const {
    Result<OwnedTensor> copy = make(dtype(), shape());
    if (copy && size_ > 0) std::memcpy(copy->storage_.get(), storage_.get(), size_);
    return copy;
  }

 private:
  bool allocate(size_t size) {
    size_ = size;
    if (size == 0) return true;
    const size_t padded = (size + kStorageAlignment - 1) / kStorageAlignment * kStorageAlignment;
    if (padded < size) return false;
    auto* memory = static_cast<std::byte*>(std::aligned_alloc(kStorageAlignment, padded));
    if (memory == nullptr) return false;
    std::memset(memory, 0, padded);
    storage_ = std::shared_ptr<std::byte>(memory, [](std::byte* p) { std::free(p); });
    view_.data = memory;
    return true;
  }

  TensorView view_;
  size_t size_ = 0;
  std::shared_ptr<std::byte> storage_;
};

}  // namespace dsattn
