// indexer_forward and indexer_forward_top_k on the CPU (contract sections 3 and 4): the same sweep,
// whose scores are stored in the one and offered to a TopK per query in the other.
#include <limits>
#include <vector>

#include "cpu/cpu.h"
#include "cpu/indexer_sweep.h"
#include "cpu/top_k.h"

namespace dsattn::cpu {
namespace {

constexpr float kInf = std::numeric_limits<float>::infinity();
constexpr int64_t kQueryBlock = 32;               // queries that share a packed block of keys
constexpr int64_t kTopKBytes = int64_t{4} << 20;  // candidates of a query block, if k is large

template <class Args>
int threads_for(const Args& args, const ExecContext& ctx, int64_t block) {
  const int64_t blocks = (args.index_q.size(0) + block - 1) / block;
  return static_cast<int>(std::clamp<int64_t>(blocks, 1, thread_count(ctx)));
}

template <class Args>
int64_t sweep_bytes(const Args& args, const ExecContext& ctx) {
  Carver carver(nullptr);
  IndexSweep(args, args, ctx.cpu_isa, carver);
  return carver.used();
}

int64_t top_k_bytes(const IndexerForwardTopKArgs& args) {
  Carver carver(nullptr);
  TopK(args.topk_idxs.size(1), carver);
  return carver.used();
}

int64_t query_block(const IndexerForwardTopKArgs& args) {
  return std::clamp<int64_t>(kTopKBytes / top_k_bytes(args), 1, kQueryBlock);
}

void write_top_k(const IndexerForwardTopKArgs& args, const RowMask& mask, int64_t t, TopK& best) {
  const int64_t shift = args.ids == IdSpace::kLocal ? -mask.row(t).begin : 0;
  float* values = args.topk_values.defined()
                      ? args.topk_values.ptr<float>() + t * args.topk_values.stride(0)
                      : nullptr;
  best.write(args.order, shift, args.topk_idxs.ptr<int32_t>() + t * args.topk_idxs.stride(0),
             values);
}

}  // namespace

int64_t workspace_bytes(const IndexerForwardArgs& args, const ExecContext& ctx) {
  return threads_for(args, ctx, kQueryBlock) * sweep_bytes(args, ctx);
}

Result<void> run(const IndexerForwardArgs& args, const ExecContext& ctx) {
  const int64_t queries = args.index_q.size(0);
  const int64_t bytes = sweep_bytes(args, ctx);
  const auto block = [&](int64_t item, int thread) {
    Carver carver(static_cast<char*>(ctx.workspace) + thread * bytes);
    IndexSweep sweep(args, args, ctx.cpu_isa, carver);
    const int64_t begin = item * kQueryBlock;
    const int64_t end = std::min(begin + kQueryBlock, queries);
    for (int64_t t = begin; t < end; ++t) {
      std::fill_n(args.scores.ptr<float>() + t * args.scores.stride(0), args.scores.size(1), -kInf);
    }
    sweep.run(begin, end, [&](int64_t t, int64_t first, int64_t n, const float* scores) {
      std::copy_n(scores, n, args.scores.ptr<float>() + t * args.scores.stride(0) + first);
    });
  };
  const int64_t blocks = (queries + kQueryBlock - 1) / kQueryBlock;
  if (parallel_for(blocks, threads_for(args, ctx, kQueryBlock), ctx, 0, 1, block)) return {};
  return fail(ErrorCode::kCancelled, "indexer_forward was cancelled");
}

int64_t workspace_bytes(const IndexerForwardTopKArgs& args, const ExecContext& ctx) {
  const int64_t block = query_block(args);
  return threads_for(args, ctx, block) * (sweep_bytes(args, ctx) + block * top_k_bytes(args));
}

Result<void> run(const IndexerForwardTopKArgs& args, const ExecContext& ctx) {
  const int64_t queries = args.index_q.size(0);
  const int64_t size = query_block(args);
  const int64_t bytes = sweep_bytes(args, ctx) + size * top_k_bytes(args);
  const IndexMath& math = index_math(ctx.cpu_isa);
  const auto block = [&](int64_t item, int thread) {
    Carver carver(static_cast<char*>(ctx.workspace) + thread * bytes);
    IndexSweep sweep(args, args, ctx.cpu_isa, carver);
    const int64_t begin = item * size;
    const int64_t end = std::min(begin + size, queries);
    std::vector<TopK> best;  // at most kQueryBlock handles; the candidates lie in the workspace
    for (int64_t t = begin; t < end; ++t) best.emplace_back(args.topk_idxs.size(1), carver);
    sweep.run(begin, end, [&](int64_t t, int64_t first, int64_t n, const float* scores) {
      best[static_cast<size_t>(t - begin)].add(math, scores, n, first);
    });
    for (int64_t t = begin; t < end; ++t) {
      write_top_k(args, sweep.mask(), t, best[static_cast<size_t>(t - begin)]);
    }
  };
  const int64_t blocks = (queries + size - 1) / size;
  if (parallel_for(blocks, threads_for(args, ctx, size), ctx, 0, 1, block)) return {};
  return fail(ErrorCode::kCancelled, "indexer_forward_top_k was cancelled");
}

}  // namespace dsattn::cpu
