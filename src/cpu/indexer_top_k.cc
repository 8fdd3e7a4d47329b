// indexer_top_k on the CPU (contract section 4): each row through a TopK.
#include "cpu/cpu.h"
#include "cpu/top_k.h"

namespace dsattn::cpu {
namespace {

int threads_for(const IndexerTopKArgs& args, const ExecContext& ctx) {
  return static_cast<int>(std::clamp<int64_t>(args.scores.size(0), 1, thread_count(ctx)));
}

int64_t scratch_bytes(const IndexerTopKArgs& args) {
  Carver carver(nullptr);
  TopK(args.topk_idxs.size(1), carver);
  return carver.used();
}

}  // namespace

int64_t workspace_bytes(const IndexerTopKArgs& args, const ExecContext& ctx) {
  return threads_for(args, ctx) * scratch_bytes(args);
}

Result<void> run(const IndexerTopKArgs& args, const ExecContext& ctx) {
  const IndexMath& math = index_math(ctx.cpu_isa);
  const int64_t width = args.scores.size(1);
  const int64_t bytes = scratch_bytes(args);
  const auto row = [&](int64_t t, int thread) {
    Carver carver(static_cast<char*>(ctx.workspace) + thread * bytes);
    TopK best(args.topk_idxs.size(1), carver);
    int64_t length = width;
    if (args.seq_lens.defined()) {
      const int32_t given = args.seq_lens.ptr<const int32_t>()[t * args.seq_lens.stride(0)];
      length = std::clamp<int64_t>(given, 0, width);
    }
    best.add(math, args.scores.ptr<const float>() + t * args.scores.stride(0), length, 0);
    float* values = args.topk_values.defined()
                        ? args.topk_values.ptr<float>() + t * args.topk_values.stride(0)
                        : nullptr;
    best.write(args.order, 0, args.topk_idxs.ptr<int32_t>() + t * args.topk_idxs.stride(0), values);
  };
  if (parallel_for(args.scores.size(0), threads_for(args, ctx), ctx, 0, 1, row)) return {};
  return fail(ErrorCode::kCancelled, "indexer_top_k was cancelled");
}

}  // namespace dsattn::cpu
