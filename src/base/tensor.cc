// Names and texts of tensors, element types, devices and errors.
#include "dsattn/tensor.h"

#include <fmt/format.h>

#include "dsattn/result.h"

namespace dsattn {

std::string_view to_string(ErrorCode code) {
  switch (code) {
    case ErrorCode::kInvalidShape:
      return "invalid shape";
    case ErrorCode::kInvalidDType:
      return "invalid dtype";
    case ErrorCode::kInvalidStride:
      return "invalid stride";
    case ErrorCode::kInvalidDevice:
      return "invalid device";
    case ErrorCode::kInvalidValue:
      return "invalid value";
    case ErrorCode::kMissingTensor:
      return "missing tensor";
    case ErrorCode::kWorkspaceTooSmall:
      return "workspace too small";
    case ErrorCode::kUnsupported:
      return "unsupported";
    case ErrorCode::kUnavailable:
      return "unavailable";
    case ErrorCode::kCancelled:
      return "cancelled";
    case ErrorCode::kIo:
      return "input/output error";
    case ErrorCode::kInternal:
      return "internal error";
  }
  return "unknown error";
}

std::string_view to_string(DType dtype) {
  switch (dtype) {
    case DType::kNone:
      return "none";
    case DType::kBF16:
      return "BF16";
    case DType::kF16:
      return "F16";
    case DType::kF32:
      return "F32";
    case DType::kF64:
      return "F64";
    case DType::kI32:
      return "I32";
  }
  return "unknown";
}

std::string to_string(Device device) {
  if (device.type == DeviceType::kCpu) return "cpu";
  return fmt::format("cuda:{}", device.index);
}

std::string to_string(const TensorView& view) {
  if (!view.defined()) return "absent";
  return fmt::format("({}) {} on {}",
                     fmt::join(view.shape.begin(), view.shape.begin() + view.rank, ", "),
                     to_string(view.dtype), to_string(view.device));
}

}  // namespace dsattn
