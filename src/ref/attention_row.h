// One query row of attention: its scores, and the target that the indexer is trained towards.
#pragma once

#include <cstdint>
#include <vector>

#include "dsattn/ops.h"
#include "ref/keys.h"

namespace dsattn::ref {

/// Softmax scale as all backends round it: the argument, or float(D^-0.5).
double softmax_scale(const AttentionInputs& inputs);

/// sink[h]; -inf if absent.
double sink_of(const TensorView& sink, int64_t h);

/// Holds the queries and scores of one row at a time; memory H x (D + keys).
class AttentionRow {
 public:
  explicit AttentionRow(const AttentionInputs& inputs);

  /// Reads q[t] and forms scale * <q[t, h], kv[key]> for all heads and keys.
  void load(int64_t t, const Keys& keys);

  double scale() const { return scale_; }
  const double* q(int64_t h) const { return q_.data() + h * width_; }
  double* scores(int64_t h) { return scores_.data() + h * keys_; }

  /// target[i] = sum over heads of exp(score - L), L = logaddexp(lse, sink), normalised over the
  /// loaded keys; zeros if nothing is left to normalise.
  void target(int64_t t, const TensorView& lse, const TensorView& sink, double* target);

 private:
  TensorView q_view_;
  TensorView kv_;
  int64_t heads_;
  int64_t width_;
  double scale_;
  int64_t keys_ = 0;
  std::vector<double> q_;       // [H, D]
  std::vector<double> key_;     // [D]
  std::vector<double> scores_;  // [H, keys]
};

}  // namespace dsattn::ref
