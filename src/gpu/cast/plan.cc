// Host half of the cast kernel. No CUDA headers.
#include "gpu/cast/plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "gpu/cast/config.h"

namespace dsattn::gpu::cast {
namespace {

struct Rows {
  int64_t rows, cols, stride;
};

Rows rows_of(const TensorView& view) {
  if (view.rank == 1) return {1, view.size(0), view.size(0)};
  const int64_t stride = view.size(0) == 1 ? view.size(1) : view.stride(0);
  return {view.size(0), view.size(1), stride};
}

Result<void> check(const TensorView& src, const TensorView& dst) {
  if (src.dtype != DType::kF32 || (dst.dtype != DType::kBF16 && dst.dtype != DType::kF16)) {
    return fail(ErrorCode::kInvalidDType,
                fmt::format("cast from {} to {}, expected F32 to BF16 or F16", to_string(src.dtype),
                            to_string(dst.dtype)));
  }
  if (src.rank < 1 || src.rank > 2 || src.rank != dst.rank || src.shape != dst.shape) {
    return fail(ErrorCode::kInvalidShape,
                fmt::format("cast from {} to {}, expected the same rank 1 or 2 and shape",
                            to_string(src), to_string(dst)));
  }
  for (const auto& [name, view, output] :
       {std::tuple{"src", &src, false}, std::tuple{"dst", &dst, true}}) {
    const Rows r = rows_of(*view);
    const bool unit = view->size(view->rank - 1) <= 1 || view->stride(view->rank - 1) == 1;
    if (!unit || r.stride < (output ? r.cols : 0)) {
      return fail(ErrorCode::kInvalidStride,
                  fmt::format("{} has row stride {} and {} innermost stride, expected unit "
                              "innermost stride and row stride >= {}",
                              name, r.stride, unit ? "unit" : "non-unit", output ? r.cols : 0));
    }
  }
  return {};
}

int64_t extent_of(const TensorView& view) {
  const Rows r = rows_of(view);
  return r.rows == 0 || r.cols == 0 ? 0 : (r.rows - 1) * r.stride + r.cols;
}

int64_t ceil_div(int64_t a, int64_t b) { return (a + b - 1) / b; }

// Threads along a row: the power of two that covers its vectors, so that short rows share a block.
int64_t threads_along_row(int64_t vectors) {
  int64_t threads = 1;
  while (threads < vectors && threads < kThreads) threads *= 2;
  return threads;
}

}  // namespace

Result<int> append(plan::LaunchPlan& plan, const TensorView& src, int src_buffer,
                   const TensorView& dst, int dst_buffer, std::vector<int> after) {
  if (auto valid = check(src, dst); !valid) return tl::unexpected(valid.error());
  const Rows from = rows_of(src);
  const Rows to = rows_of(dst);
  if (from.rows == 0 || from.cols == 0) return -1;

  const int64_t vectors = ceil_div(from.cols, kVector);
  const int64_t threads_x = threads_along_row(vectors);
  const int64_t threads_y = kThreads / threads_x;
  plan::KernelNode kernel;
  kernel.module = kModule;
  kernel.entry = dst.dtype == DType::kBF16 ? kEntryBf16 : kEntryF16;
  kernel.grid = {std::min(ceil_div(from.rows, threads_y), kMaxRowBlocks),
                 std::min(ceil_div(vectors, threads_x), kMaxColumnBlocks), 1};
  kernel.block = {threads_x, threads_y, 1};
  plan::Struct params;  // the members of config.h's Params
  params.members = {{plan::BufferRef{src_buffer, 0}},
                    {plan::BufferRef{dst_buffer, 0}},
                    {from.rows},
                    {from.cols},
                    {from.stride},
                    {to.stride}};
  kernel.args.push_back({std::move(params)});
  return plan.add(std::move(kernel), std::move(after));
}

Result<plan::LaunchPlan> make_plan(std::string arch, const TensorView& src, const TensorView& dst) {
  if (auto valid = check(src, dst); !valid) return tl::unexpected(valid.error());
  plan::LaunchPlan plan;
  plan.arch = std::move(arch);
  const int from = plan.add({"src", plan::element_type(src.dtype), {extent_of(src)}});
  const int to = plan.add({"dst", plan::element_type(dst.dtype), {extent_of(dst)}});
  if (auto node = append(plan, src, from, dst, to); !node) return tl::unexpected(node.error());
  return plan;
}

}  // namespace dsattn::gpu::cast
