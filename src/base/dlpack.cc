#include "dsattn/dlpack.h"

#include <fmt/format.h>

namespace dsattn {
namespace {

DType dtype_of(DLDataType type) {
  if (type.lanes != 1) return DType::kNone;
  if (type.code == kDLBfloat && type.bits == 16) return DType::kBF16;
  if (type.code == kDLFloat && type.bits == 16) return DType::kF16;
  if (type.code == kDLFloat && type.bits == 32) return DType::kF32;
  if (type.code == kDLFloat && type.bits == 64) return DType::kF64;
  if (type.code == kDLInt && type.bits == 32) return DType::kI32;
  return DType::kNone;
}

DLDataType dl_type_of(DType dtype) {
  const auto bits = static_cast<uint8_t>(8 * size_bytes(dtype));
  uint8_t code = kDLFloat;
  if (dtype == DType::kBF16) code = kDLBfloat;
  if (dtype == DType::kI32) code = kDLInt;
  return {code, bits, 1};
}

}  // namespace

Result<TensorView> from_dlpack(const DLTensor& tensor) {
  if (tensor.ndim < 0 || tensor.ndim > kMaxRank) {
    return fail(ErrorCode::kInvalidShape,
                fmt::format("DLTensor has {} dimensions, expected 0 to {}", tensor.ndim, kMaxRank));
  }
  TensorView view;
  view.dtype = dtype_of(tensor.dtype);
  if (!view.defined()) {
    return fail(ErrorCode::kInvalidDType,
                fmt::format("DLTensor has type code {}, {} bits, {} lanes; expected one lane of "
                            "BF16, F16, F32, F64 or I32",
                            tensor.dtype.code, tensor.dtype.bits, tensor.dtype.lanes));
  }
  const bool on_host =
      tensor.device.device_type == kDLCPU || tensor.device.device_type == kDLCUDAHost;
  const bool on_cuda =
      tensor.device.device_type == kDLCUDA || tensor.device.device_type == kDLCUDAManaged;
  if (!on_host && !on_cuda) {
    return fail(ErrorCode::kInvalidDevice,
                fmt::format("DLTensor lives on DLPack device type {}, expected CPU or CUDA memory",
                            static_cast<int>(tensor.device.device_type)));
  }
  if (on_cuda) view.device = {DeviceType::kCuda, tensor.device.device_id};
  view.rank = tensor.ndim;
  for (int i = 0; i < view.rank; ++i) {
    const auto dim = static_cast<size_t>(i);
    if (tensor.shape[i] < 0) {
      return fail(ErrorCode::kInvalidShape,
                  fmt::format("DLTensor dimension {} is {}, expected >= 0", i, tensor.shape[i]));
    }
    view.shape[dim] = tensor.shape[i];
    if (tensor.strides != nullptr) view.strides[dim] = tensor.strides[i];
  }
  if (tensor.strides == nullptr) view.set_contiguous_strides();
  if (tensor.data != nullptr) view.data = static_cast<char*>(tensor.data) + tensor.byte_offset;
  return view;
}

DLTensor to_dlpack(TensorView& view) {
  DLTensor tensor{};
  tensor.data = view.data;
  tensor.device = view.device.type == DeviceType::kCpu ? DLDevice{kDLCPU, 0}
                                                       : DLDevice{kDLCUDA, view.device.index};
  tensor.ndim = view.rank;
  tensor.dtype = dl_type_of(view.dtype);
  tensor.shape = view.shape.data();
  tensor.strides = view.strides.data();
  return tensor;
}

}  // namespace dsattn
