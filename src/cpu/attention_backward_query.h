// Phase 1 of the backward: one query's dq, its d_sink terms, and the dS and P that phase 2 needs.
#pragma once

#include "cpu/attention_backward_plan.h"

namespace dsattn::cpu {

template <class T>
class QueryGradient {
 public:
  QueryGradient(const SparseAttentionBackwardArgs& args, const ExecContext& ctx,
                const BackwardPlan& plan, const Chunk<T>& chunk)
      : args_(args),
        size_(args),
        gemm_(gemm_for(ctx.cpu_isa)),
        math_(attention_math<T>(ctx.cpu_isa)),
        scale_(softmax_scale_of(args)),
        plan_(plan),
        chunk_(chunk) {}

  /// Fills the chunk's entry i with the next slots of query t; with the last ones, writes dq.
  void segment(int64_t t, int64_t i, const BackwardScratch<T>& s) const;

 private:
  using E = ProductType<T>;

  void start(int64_t t, int64_t i, const BackwardScratch<T>& s) const;
  void start_head(int64_t t, int64_t i, int64_t h, const BackwardScratch<T>& s) const;
  void add_block(const int32_t* ids, int64_t n, bool accumulate, E* rows,
                 const BackwardScratch<T>& s) const;
  void write_dq(int64_t t, bool any, const BackwardScratch<T>& s) const;

  const SparseAttentionBackwardArgs& args_;
  AttentionSizes size_;
  const Gemm& gemm_;
  const AttentionMath<T>& math_;
  float scale_;
  const BackwardPlan& plan_;
  const Chunk<T>& chunk_;
};

}  // namespace dsattn::cpu
