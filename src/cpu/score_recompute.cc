// predict and target over sparse or dense rows, and the dense log-sum-exp (contract section 5).
#include <fmt/format.h>

#include "cpu/attention_target.h"
#include "cpu/cpu.h"

namespace dsattn::cpu {
namespace {

/// Runs row(t, scratch) for every query with a Scratch per thread, made by Scratch(args, ctx,
/// carver).
template <class Scratch, class Args>
Result<void> for_each_query(int64_t queries, const Args& args, const ExecContext& ctx,
                            const char* name, void (Scratch::*row)(int64_t)) {
  Carver counter(nullptr);
  Scratch(args, ctx, counter);
  const auto threads = static_cast<int>(std::clamp<int64_t>(queries, 1, thread_count(ctx)));
  const bool done = parallel_for(queries, threads, ctx, 0, 1, [&](int64_t t, int thread) {
    Carver carver(static_cast<char*>(ctx.workspace) + thread * counter.used());
    Scratch scratch(args, ctx, carver);
    (scratch.*row)(t);
  });
  if (done) return {};
  return fail(ErrorCode::kCancelled, fmt::format("{} was cancelled", name));
}

template <class Scratch, class Args>
int64_t bytes_for(int64_t queries, const Args& args, const ExecContext& ctx) {
  Carver counter(nullptr);
  Scratch(args, ctx, counter);
  return std::clamp<int64_t>(queries, 1, thread_count(ctx)) * counter.used();
}

template <class Args>
struct PredictRow {
  const Args& args;
  const AttentionMath<bf16>& math;
  const IndexMath& index;
  RowReader reader;
  RowKeys keys;
  KeyBlock block;
  IndexQuery query;
  float* scores;

  PredictRow(const Args& a, const ExecContext& ctx, Carver& carver)
      : args(a),
        math(attention_math<bf16>(ctx.cpu_isa)),
        index(index_math(ctx.cpu_isa)),
        reader(a, a.index_q.size(0), a.index_k.size(0)),
        keys(row_capacity(a, a.index_k.size(0)) + 1, carver),
        block(carver),
        query(a, ctx.cpu_isa, carver),
        scores(carver.take<float>(padded_row(row_capacity(a, a.index_k.size(0))))) {}

  void run(int64_t t) {
    reader.load(t, keys);
    query.load(t);
    score_row(math, args.index_k, keys, block, query, scores);
    softmax_row(index, scores, keys.n, scores);
    scatter_row(keys, scores, args.predict, t);
  }
};

template <class T, class Args>
struct TargetRow {
  const Args& args;
  RowReader reader;
  RowKeys keys;
  TensorView no_sink;
  AttentionTarget<T> attention;
  float* target;

  TargetRow(const Args& a, const ExecContext& ctx, Carver& carver)
      : args(a),
        reader(a, a.q.size(0), a.kv.size(0)),
        keys(row_capacity(a, a.kv.size(0)) + 1, carver),
        attention(a, a.lse, sink_view(a), ctx.cpu_isa, carver),
        target(carver.take<float>(padded_row(row_capacity(a, a.kv.size(0))))) {}

  const TensorView& sink_view(const Args& a) const {
    if constexpr (std::is_same_v<Args, DenseAttentionLseArgs>) {
      return no_sink;
    } else {
      return a.sink;
    }
  }

  void run(int64_t t) {
    reader.load(t, keys);
    if constexpr (std::is_same_v<Args, DenseAttentionLseArgs>) {
      attention.log_sum_exp(t, keys, args.lse.template ptr<float>() + t * args.lse.stride(0));
    } else {
      attention.run(t, keys, target);
      scatter_row(keys, target, args.target, t);
    }
  }
};

template <class Args>
int64_t target_bytes(const Args& args, const ExecContext& ctx) {
  return args.q.dtype == DType::kBF16 ? bytes_for<TargetRow<bf16, Args>>(args.q.size(0), args, ctx)
                                      : bytes_for<TargetRow<f16, Args>>(args.q.size(0), args, ctx);
}

template <class Args>
Result<void> run_target(const Args& args, const ExecContext& ctx, const char* name) {
  if (args.q.dtype == DType::kBF16) {
    using Row = TargetRow<bf16, Args>;
    return for_each_query<Row>(args.q.size(0), args, ctx, name, &Row::run);
  }
  using Row = TargetRow<f16, Args>;
  return for_each_query<Row>(args.q.size(0), args, ctx, name, &Row::run);
}

template <class Args>
Result<void> run_predict(const Args& args, const ExecContext& ctx, const char* name) {
  using Row = PredictRow<Args>;
  return for_each_query<Row>(args.index_q.size(0), args, ctx, name, &Row::run);
}

}  // namespace

int64_t workspace_bytes(const SparseIndexerScoresArgs& args, const ExecContext& ctx) {
  return bytes_for<PredictRow<SparseIndexerScoresArgs>>(args.index_q.size(0), args, ctx);
}
int64_t workspace_bytes(const DenseIndexerScoresArgs& args, const ExecContext& ctx) {
  return bytes_for<PredictRow<DenseIndexerScoresArgs>>(args.index_q.size(0), args, ctx);
}
int64_t workspace_bytes(const SparseAttentionScoresArgs& args, const ExecContext& ctx) {
  return target_bytes(args, ctx);
}
int64_t workspace_bytes(const DenseAttentionScoresArgs& args, const ExecContext& ctx) {
  return target_bytes(args, ctx);
}
int64_t workspace_bytes(const DenseAttentionLseArgs& args, const ExecContext& ctx) {
  return target_bytes(args, ctx);
}

Result<void> run(const SparseIndexerScoresArgs& args, const ExecContext& ctx) {
  return run_predict(args, ctx, "sparse_indexer_scores");
}
Result<void> run(const DenseIndexerScoresArgs& args, const ExecContext& ctx) {
  return run_predict(args, ctx, "dense_indexer_scores");
}
Result<void> run(const SparseAttentionScoresArgs& args, const ExecContext& ctx) {
  return run_target(args, ctx, "sparse_attention_scores");
}
Result<void> run(const DenseAttentionScoresArgs& args, const ExecContext& ctx) {
  return run_target(args, ctx, "dense_attention_scores");
}
Result<void> run(const DenseAttentionLseArgs& args, const ExecContext& ctx) {
  return run_target(args, ctx, "dense_attention_lse");
}

}  // namespace dsattn::cpu
