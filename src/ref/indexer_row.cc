// See indexer_row.h.
#include "ref/indexer_row.h"

#include <algorithm>

#include "ref/numerics.h"

namespace dsattn::ref {

IndexerRow::IndexerRow(const IndexerInputs& inputs)
    : inputs_(inputs),
      heads_(inputs.index_q.size(1)),
      width_(inputs.index_q.size(2)),
      q_(static_cast<size_t>(heads_ * width_)),
      w_(static_cast<size_t>(heads_)),
      key_(static_cast<size_t>(width_)) {}

void IndexerRow::load(int64_t t, const Keys& keys) {
  for (int64_t h = 0; h < heads_; ++h) {
    read_row(inputs_.index_q, q_.data() + h * width_, width_, t, h);
  }
  read_row(inputs_.index_w, w_.data(), heads_, t);
  scores_.clear();
  for (const Key& key : keys) {
    read_row(inputs_.index_k, key_.data(), width_, key.row);
    double sum = 0;
    for (int64_t h = 0; h < heads_; ++h) {
      sum += relu(dot(q(h), key_.data(), width_)) * w_[static_cast<size_t>(h)];
    }
    scores_.push_back(static_cast<double>(inputs_.sm_scale) * sum);
  }
}

void IndexerRow::log_predict(std::vector<double>& log_predict) const {
  // Two steps, (s - max) - ln(sum): s - lse would lose digits beside a large max.
  log_predict = scores_;
  const auto n = static_cast<int64_t>(scores_.size());
  const double largest = max_of(scores_.data(), n);
  for (double& s : log_predict) s -= largest;
  const double log_sum = log_sum_exp(log_predict.data(), n);
  for (double& s : log_predict) s -= log_sum;
}

IndexerGradientRow::IndexerGradientRow(const IndexerInputs& inputs,
                                       const IndexerGradients& gradients)
    : IndexerRow(inputs),
      gradients_(gradients),
      grad_loss_(gradients.grad_loss.defined() ? read(gradients.grad_loss) : 1.0),
      d_q_(q_.size()),
      d_w_(w_.size()),
      d_key_(inputs.index_k.size(0), width_) {
  const int64_t tokens = gradients.num_tokens > 0 ? gradients.num_tokens : inputs.index_q.size(0);
  loss_factor_ =
      tokens > 0 ? static_cast<double>(gradients.loss_coeff) / static_cast<double>(tokens) : 0.0;
}

// d_score_ = X_j = sm_scale * coeff / N * grad_loss * g_j.
void IndexerGradientRow::score_gradients(const std::vector<double>& predict,
                                         const std::vector<double>& target) {
  const double factor = static_cast<double>(inputs_.sm_scale) * loss_factor_ * grad_loss_;
  d_score_.resize(predict.size());
  double sum = 0;
  for (size_t i = 0; i < predict.size(); ++i) {
    double wanted = target[i];
    if (gradients_.clipped) wanted = predict[i] < kClip ? 0.0 : std::max(wanted, kClip);
    d_score_[i] = wanted;
    sum += wanted;
  }
  for (size_t i = 0; i < predict.size(); ++i) {
    d_score_[i] = factor * (predict[i] * sum - d_score_[i]);
  }
}

void IndexerGradientRow::add(int64_t t, const Keys& keys, const std::vector<double>& predict,
                             const std::vector<double>& target) {
  score_gradients(predict, target);
  std::fill(d_q_.begin(), d_q_.end(), 0.0);
  std::fill(d_w_.begin(), d_w_.end(), 0.0);
  for (size_t i = 0; i < keys.size(); ++i) {
    read_row(inputs_.index_k, key_.data(), width_, keys[i].row);
    double* d_key = d_key_.row(keys[i].row);
    for (int64_t h = 0; h < heads_; ++h) {
      const double s = dot(q(h), key_.data(), width_);
      d_w_[static_cast<size_t>(h)] += d_score_[i] * relu(s);
      if (!(s > 0)) continue;
      const double d_dot = d_score_[i] * w_[static_cast<size_t>(h)];
      add_scaled(d_dot, key_.data(), width_, d_q_.data() + h * width_);
      add_scaled(d_dot, q(h), width_, d_key);
    }
  }
  for (int64_t h = 0; h < heads_; ++h) {
    write_row(gradients_.d_index_q, d_q_.data() + h * width_, width_, t, h);
  }
  write_row(gradients_.d_index_w, d_w_.data(), heads_, t);
}

}  // namespace dsattn::ref
