// One query's attention over a row of keys, for the indexer's target: S^T = KV Q^T block by block,
//   target[i] = sum_h exp(s[i, h] - L_h), normalised to sum 1,   L = logaddexp(lse, sink).
// The largest s - L of the row, at (s*, L*), is subtracted as (s - s*) - (L - L*): a sink so large
// that s - L would lose s still leaves the row as the formula has it.
#pragma once

#include "cpu/index_rows.h"

namespace dsattn::cpu {

template <class T>
class AttentionTarget {
 public:
  AttentionTarget(const AttentionInputs& inputs, const TensorView& lse, const TensorView& sink,
                  CpuIsa limit, Carver& carver);

  /// target[0..row.n); sums to 1, or is all 0 if nothing is left to normalise.
  void run(int64_t t, const RowKeys& row, float* target);

  /// Log-sum-exp of the row per head, keys only; +inf if the row is empty.
  void log_sum_exp(int64_t t, const RowKeys& row, float* lse);

 private:
  using E = ProductType<T>;

  void load_query(int64_t t);
  int64_t load_scores(const RowKeys& row, int64_t first);
  void load_norms(int64_t t);
  bool choose_base();

  const AttentionInputs& inputs_;
  const TensorView& lse_;
  const TensorView& sink_;
  const Gemm& gemm_;
  const AttentionMath<T>& attention_;
  const IndexMath& math_;
  int64_t heads_, heads_padded_, width_padded_;
  float scale_;
  E* q_;
  E* q_packed_;
  E* keys_;
  float* scores_;    // [kSlotBlock, heads_padded]
  float* max_;       // [heads_padded]
  float* sum_;       // [heads_padded]
  float* rescale_;   // [heads_padded]
  float* shift_;     // [heads_padded]
  double* norm_;     // [heads_padded]
  uint32_t* live_;   // [heads_padded]
  uint32_t* words_;  // weights that log_sum_exp does not need
};

}  // namespace dsattn::cpu
