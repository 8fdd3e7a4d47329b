// A query's row of keys, sparse (its valid slots) or dense (its visible keys), and what is computed
// along it: indexer scores, predict and target.
#pragma once

#include <type_traits>

#include "base/causal_mask.h"
#include "cpu/index_scores.h"

namespace dsattn::cpu {

/// The keys of one query and the column of each in the operation's [Sq, K] or [Sq, Skv] tensors.
struct RowKeys {
  int64_t n = 0;
  int32_t* ids;
  int32_t* columns;

  RowKeys(int64_t capacity, Carver& carver)
      : ids(carver.take<int32_t>(capacity)), columns(carver.take<int32_t>(capacity)) {}

  void load(const SparseSelection& selection, int64_t rows, int64_t t);
  void load(const RowMask& mask, int64_t t);
};

/// Longest row of a call: K or Skv.
inline int64_t row_capacity(const SparseSelection& selection, int64_t) {
  return selection.topk_idxs.size(1);
}
inline int64_t row_capacity(const CausalMask&, int64_t keys) { return keys; }

/// Loads rows of either kind by t.
class RowReader {
 public:
  RowReader(const SparseSelection& selection, int64_t, int64_t keys)
      : selection_(&selection), mask_(CausalMask{}, 0, 0), keys_(keys) {}
  RowReader(const CausalMask& mask, int64_t queries, int64_t keys)
      : mask_(mask, queries, keys), keys_(keys) {}

  void load(int64_t t, RowKeys& row) const {
    if (selection_ != nullptr) {
      row.load(*selection_, keys_, t);
    } else {
      row.load(mask_, t);
    }
  }

 private:
  const SparseSelection* selection_ = nullptr;
  RowMask mask_;
  int64_t keys_;
};

/// Rows of floats that vector code may overrun up to here.
constexpr int64_t padded_row(int64_t n) { return round_up(n, kKeyBlock); }

/// scores[i] of the row's keys, for i < row.n; block and query are scratch.
void score_row(const AttentionMath<bf16>& math, const TensorView& index_k, const RowKeys& row,
               KeyBlock& block, IndexQuery& query, float* scores);

/// Softmax of scores[0..n) to predict (padded_row(n) floats). Returns the log-sum-exp.
double softmax_row(const IndexMath& math, const float* scores, int64_t n, float* predict);

/// Writes the row of a [Sq, *] tensor: values at their columns, 0 elsewhere.
void scatter_row(const RowKeys& row, const float* values, const TensorView& to, int64_t t);

/// values[i] = row t of `from` at the keys' columns.
void gather_row(const RowKeys& row, const TensorView& from, int64_t t, float* values);

}  // namespace dsattn::cpu
