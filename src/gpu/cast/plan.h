// How the cast kernel is launched: plain data, for a GPU and a simulator alike.
#pragma once

#include <string>

#include "dsattn/result.h"
#include "dsattn/tensor.h"
#include "plan/plan.h"

namespace dsattn::gpu::cast {

/// Appends to `plan` a kernel that rounds src to dst's type. Buffers src_buffer and dst_buffer of
/// the plan start where the views' data do.
/// src: [rows, cols] F32; dst: [rows, cols] BF16 or F16; rank 1 or 2, unit innermost stride, row
/// strides >= cols (dst: rows must not overlap) and >= 0 (src). Returns the node's index, or -1
/// where there is nothing to do (an empty tensor).
/// Errors: kInvalidShape, kInvalidDType, kInvalidStride.
Result<int> append(plan::LaunchPlan& plan, const TensorView& src, int src_buffer,
                   const TensorView& dst, int dst_buffer, std::vector<int> after = {});

/// A plan of that one kernel with the buffers "src" (0) and "dst" (1).
Result<plan::LaunchPlan> make_plan(std::string arch, const TensorView& src, const TensorView& dst);

}  // namespace dsattn::gpu::cast
