// TensorView: a strided, typed, device-tagged view of memory that somebody else owns.
// Next: dlpack.h (exchange with frameworks), ops.h (the operations).
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>

namespace dsattn {

/// Element types. kNone marks an absent (optional) tensor.
enum class DType : uint8_t { kNone, kBF16, kF16, kF32, kF64, kI32 };

/// Bytes of one element; 0 for kNone.
constexpr int64_t size_bytes(DType dtype) {
  switch (dtype) {
    case DType::kBF16:
    case DType::kF16:
      return 2;
    case DType::kF32:
    case DType::kI32:
      return 4;
    case DType::kF64:
      return 8;
    case DType::kNone:
      break;
  }
  return 0;
}

/// The name used in messages and in files: "BF16", "F16", "F32", "F64", "I32", "none".
std::string_view to_string(DType dtype);

enum class DeviceType : uint8_t { kCpu, kCuda };

/// Where the memory lives. `index` is the CUDA ordinal; 0 on the CPU.
struct Device {
  DeviceType type = DeviceType::kCpu;
  int32_t index = 0;
  friend bool operator==(const Device&, const Device&) = default;
};

/// "cpu" or "cuda:0".
std::string to_string(Device device);

inline constexpr int kMaxRank = 4;

/// A view of `rank` dimensions. Strides are in elements and 64-bit; the stride of a dimension of
/// size 1 is never looked at. A default-constructed view is an absent tensor; a view with a zero
/// dimension is present and may have null data.
struct TensorView {
  void* data = nullptr;
  DType dtype = DType::kNone;
  Device device;
  int rank = 0;
  std::array<int64_t, kMaxRank> shape{};
  std::array<int64_t, kMaxRank> strides{};

  TensorView() = default;

  /// A contiguous (row-major) view.
  TensorView(void* data_in, DType dtype_in, std::initializer_list<int64_t> shape_in,
             Device device_in = {})
      : data(data_in), dtype(dtype_in), device(device_in) {
    rank = static_cast<int>(shape_in.size() < kMaxRank ? shape_in.size() : kMaxRank);
    int i = 0;
    for (int64_t extent : shape_in) {
      if (i < rank) shape[static_cast<size_t>(i++)] = extent;
    }
    set_contiguous_strides();
  }

  bool defined() const { return dtype != DType::kNone; }

  int64_t size(int dim) const { return shape[static_cast<size_t>(dim)]; }
  int64_t stride(int dim) const { return strides[static_cast<size_t>(dim)]; }

  /// Number of elements; 1 for a scalar (rank 0).
  int64_t numel() const {
    int64_t n = 1;
    for (int i = 0; i < rank; ++i) n *= size(i);
    return n;
  }

  bool is_contiguous() const {
    int64_t expected = 1;
    for (int i = rank - 1; i >= 0; --i) {
      if (size(i) != 1 && stride(i) != expected) return false;
      expected *= size(i);
    }
    return true;
  }

  void set_contiguous_strides() {
    int64_t step = 1;
    for (int i = rank - 1; i >= 0; --i) {
      strides[static_cast<size_t>(i)] = step;
      step *= size(i);
    }
  }

  /// Typed access for code that has checked dtype and device.
  template <class T>
  T* ptr() const {
    return static_cast<T*>(data);
  }
};

/// "(Sq=4, H=64, D=576) BF16 on cpu"-style text for messages: "(4, 64, 576) BF16 on cpu".
std::string to_string(const TensorView& view);

}  // namespace dsattn
