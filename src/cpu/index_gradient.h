// Gradients of the indexer from X = d loss / d score (contract section 6), rows sparse or dense.
//
//   S = index_q index_k^T     dw_h = sum_j X_j relu(S_jh)     A_jh = [S_jh > 0] X_j w_h
//   d_index_q = A^T index_k   d_index_k[id_j] += A_j index_q
//
// Queries come in chunks. Phase 1, parallel over queries: everything of a query; its rows of
// d_index_k go to a buffer. Phase 2, parallel over ranges of keys: each range takes its rows of the
// buffer in query and slot order. So no result depends on the number of threads.
#pragma once

#include "cpu/index_rows.h"

namespace dsattn::cpu {

/// Scratch of one thread for one query's gradients.
class IndexGradient {
 public:
  IndexGradient(const IndexerInputs& inputs, const IndexerGradients& gradients, CpuIsa limit,
                Carver& carver);

  /// The query's scores along the row.
  void score(int64_t t, const RowKeys& row, float* scores);

  /// From x[0..padded_row(n)) (zeros past n): d_index_q[t], d_index_w[t], and the rows of
  /// d_index_k to key_rows [padded_row(n), kIndexDim]. Follows score(t, ...).
  void backward(int64_t t, const RowKeys& row, const float* x, float* key_rows);

 private:
  const IndexerInputs& inputs_;
  const IndexerGradients& gradients_;
  const Gemm& gemm_;
  const AttentionMath<bf16>& math_;
  const IndexMath& index_;
  KeyBlock block_;
  IndexQuery query_;
  bf16* query_packed_;  // B [heads, kIndexDim]
  bf16* keys_packed_;   // B [kKeyBlock, kIndexDim]
  bf16* a_;             // [heads, keys]
  bf16* a_transposed_;  // [keys, heads]
  uint32_t* a_words_;
  float* dq_;   // [heads, kIndexDim]
  double* dw_;  // [heads]
};

/// What one chunk leaves for phase 2.
struct KeyRowBuffer {
  int64_t capacity;  ///< row slots of a query
  int64_t queries;   ///< of a chunk
  float* rows;       ///< [queries, capacity, kIndexDim]
  int32_t* ids;      ///< [queries, capacity]
  int64_t* counts;   ///< [queries]
  double* losses;    ///< [queries]
  float* sums;       ///< [Skv, kIndexDim]

  KeyRowBuffer(int64_t row_capacity, int64_t all_queries, int64_t keys, Carver& carver);
};

/// sums += the rows of `queries` queries, in order. Short beside the chunk's phase 1, so it neither
/// reports progress nor can be cancelled.
void add_key_rows(const KeyRowBuffer& buffer, int64_t queries, int64_t keys, int threads);

/// d_index_k = sums, in its own type.
void store_key_sums(const KeyRowBuffer& buffer, const TensorView& d_index_k);

/// d loss / d score along a row: factor * g, exact or clipped. x may be predict.
void score_gradient(const float* predict, const float* target, int64_t n, bool clipped,
                    double factor, float* x);

/// KL(target || predict) of a row from its scores and their log-sum-exp.
double row_loss(const float* scores, double log_sum, const float* target, int64_t n, bool clipped);

/// sm_scale * coeff / N * grad_loss.
double gradient_factor(const IndexerInputs& inputs, const IndexerGradients& gradients);

/// coeff / N.
double loss_factor(const IndexerInputs& inputs, const IndexerGradients& gradients);

}  // namespace dsattn::cpu
