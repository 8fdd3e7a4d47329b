// See attention_row.h. Contract sections 1 (scores) and 5 (target).
#include "ref/attention_row.h"

#include <algorithm>
#include <cmath>

#include "ref/access.h"
#include "ref/numerics.h"

namespace dsattn::ref {

double softmax_scale(const AttentionInputs& inputs) {
  const auto width = static_cast<double>(inputs.q.size(2));
  return inputs.softmax_scale.value_or(static_cast<float>(1.0 / std::sqrt(width)));
}

double sink_of(const TensorView& sink, int64_t h) { return sink.defined() ? read(sink, h) : -kInf; }

AttentionRow::AttentionRow(const AttentionInputs& inputs)
    : q_view_(inputs.q),
      kv_(inputs.kv),
      heads_(inputs.q.size(1)),
      width_(inputs.q.size(2)),
      scale_(softmax_scale(inputs)),
      q_(static_cast<size_t>(heads_ * width_)),
      key_(static_cast<size_t>(width_)) {}

void AttentionRow::load(int64_t t, const Keys& keys) {
  keys_ = static_cast<int64_t>(keys.size());
  scores_.resize(static_cast<size_t>(heads_ * keys_));
  for (int64_t h = 0; h < heads_; ++h) read_row(q_view_, q_.data() + h * width_, width_, t, h);
  for (int64_t i = 0; i < keys_; ++i) {
    read_row(kv_, key_.data(), width_, keys[static_cast<size_t>(i)].row);
    for (int64_t h = 0; h < heads_; ++h) {
      scores(h)[i] = scale_ * dot(q(h), key_.data(), width_);
    }
  }
}

void AttentionRow::target(int64_t t, const TensorView& lse, const TensorView& sink,
                          double* target) {
  std::fill(target, target + keys_, 0.0);
  // The largest exponent over heads and keys, kept as its two terms: exp((s - s*) - (L - L*)) is
  // right even where s would vanish beside a huge L (a sink of 2e38).
  double best_score = 0;
  double best_norm = 0;
  double best = -kInf;
  std::vector<double> norms(static_cast<size_t>(heads_));
  for (int64_t h = 0; h < heads_; ++h) {
    const double row_lse = read(lse, t, h);
    double& norm = norms[static_cast<size_t>(h)];
    norm = std::isinf(row_lse) ? kInf : log_add_exp(row_lse, sink_of(sink, h));
    const double largest = max_of(scores(h), keys_);
    // Equal exponents after rounding: the smaller L is the truly larger one or ties with it.
    const double exponent = largest - norm;
    if (exponent > best || (exponent == best && largest - best_score > norm - best_norm)) {
      best = exponent;
      best_score = largest;
      best_norm = norm;
    }
  }
  double sum = 0;
  for (int64_t h = 0; h < heads_; ++h) {
    const double norm = norms[static_cast<size_t>(h)];
    if (norm == kInf) continue;  // weight 0, whatever the scores are
    for (int64_t i = 0; i < keys_; ++i) {
      const double weight = std::exp((scores(h)[i] - best_score) - (norm - best_norm));
      target[i] += weight;
      sum += weight;
    }
  }
  if (sum == 0) return;
  for (int64_t i = 0; i < keys_; ++i) target[i] /= sum;
}

}  // namespace dsattn::ref
