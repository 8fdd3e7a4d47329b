// Exchange with frameworks: DLTensor <-> TensorView. Neither side takes ownership.
#pragma once

#include <dlpack/dlpack.h>

#include "dsattn/result.h"
#include "dsattn/tensor.h"

namespace dsattn {

/// Views the memory of a DLTensor. Null strides mean contiguous; byte_offset is applied.
/// Errors: kInvalidShape (rank above kMaxRank, negative extent), kInvalidDType (lanes != 1, or a
/// type outside BF16, F16, F32, F64, I32), kInvalidDevice (neither CPU nor CUDA memory).
Result<TensorView> from_dlpack(const DLTensor& tensor);

/// Describes a view as a DLTensor. shape and strides point into `view`, which must outlive it.
DLTensor to_dlpack(TensorView& view);

}  // namespace dsattn
