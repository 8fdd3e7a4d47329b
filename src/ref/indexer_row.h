// One query row of the lightning indexer: scores forwards, gradients backwards.
#pragma once

#include <cstdint>
#include <vector>

#include "dsattn/ops.h"
#include "ref/access.h"
#include "ref/keys.h"

namespace dsattn::ref {

/// Below this probability the published loss clips: e^-100.
inline constexpr double kClip = 3.720075976020836e-44;

/// Scores of one row (contract section 3). A score depends on its query, key and weights alone.
class IndexerRow {
 public:
  explicit IndexerRow(const IndexerInputs& inputs);

  /// Reads index_q[t] and index_w[t] and forms the scores of the keys.
  void load(int64_t t, const Keys& keys);

  const std::vector<double>& scores() const { return scores_; }

  /// ln predict[i] over the loaded keys: stays finite where predict underflows.
  void log_predict(std::vector<double>& log_predict) const;

 protected:
  const double* q(int64_t h) const { return q_.data() + h * width_; }

  IndexerInputs inputs_;
  int64_t heads_;
  int64_t width_;
  std::vector<double> q_;    // [Hi, 128]
  std::vector<double> w_;    // [Hi]
  std::vector<double> key_;  // [128]

 private:
  std::vector<double> scores_;
};

/// Adds up the gradients of coeff / N * sum_rows KL(target || predict) (contract section 6).
class IndexerGradientRow : public IndexerRow {
 public:
  IndexerGradientRow(const IndexerInputs& inputs, const IndexerGradients& gradients);

  /// Gradients of row t, whose predict and target are given per key; writes d_index_q[t] and
  /// d_index_w[t]. Row t must be loaded.
  void add(int64_t t, const Keys& keys, const std::vector<double>& predict,
           const std::vector<double>& target);

  /// Writes d_index_k.
  void finish() const { d_key_.store(gradients_.d_index_k); }

  /// coeff / N: what the sum of the rows' KL is multiplied by.
  double loss_factor() const { return loss_factor_; }

 private:
  void score_gradients(const std::vector<double>& predict, const std::vector<double>& target);

  IndexerGradients gradients_;
  double loss_factor_;
  double grad_loss_;
  std::vector<double> d_score_;  // X, per key
  std::vector<double> d_q_;      // [Hi, 128]
  std::vector<double> d_w_;      // [Hi]
  RowSums d_key_;                // [Skv, 128]
};

}  // namespace dsattn::ref
