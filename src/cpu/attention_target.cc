#include "cpu/attention_target.h"

namespace dsattn::cpu {
namespace {

constexpr float kInf = std::numeric_limits<float>::infinity();

double log_add_exp(double a, double b) {
  if (std::isnan(a) || std::isnan(b)) return a + b;
  const double high = std::max(a, b);
  const double low = std::min(a, b);
  return std::isinf(high) || std::isinf(low) ? high : high + std::log1p(std::exp(low - high));
}

}  // namespace

template <class T>
AttentionTarget<T>::AttentionTarget(const AttentionInputs& inputs, const TensorView& lse,
                                    const TensorView& sink, CpuIsa limit, Carver& carver)
    : inputs_(inputs),
      lse_(lse),
      sink_(sink),
      gemm_(gemm_for(limit)),
      attention_(attention_math<T>(limit)),
      math_(index_math(limit)),
      heads_(inputs.q.size(1)),
      heads_padded_(round_up(heads_, kPanel)),
      width_padded_(round_up(inputs.q.size(2), kDepth)),
      scale_(softmax_scale_of(inputs)),
      q_(carver.take<E>(heads_padded_ * width_padded_)),
      q_packed_(carver.take<E>(heads_padded_ * width_padded_)),
      keys_(carver.take<E>(kSlotBlock * width_padded_)),
      scores_(carver.take<float>(kSlotBlock * heads_padded_)),
      max_(carver.take<float>(heads_padded_)),
      sum_(carver.take<float>(heads_padded_)),
      rescale_(carver.take<float>(heads_padded_)),
      shift_(carver.take<float>(heads_padded_)),
      norm_(carver.take<double>(heads_padded_)),
      live_(carver.take<uint32_t>(heads_padded_)),
      words_(carver.take<uint32_t>(kSlotBlock * heads_padded_)) {}

template <class T>
void AttentionTarget<T>::load_query(int64_t t) {
  load_heads(attention_, inputs_.q, t, heads_, heads_padded_, q_, width_padded_);
  pack_transposed(attention_, q_, heads_padded_, width_padded_, q_packed_);
}

/// Raw dot products of the block of keys that starts at `first`; returns how many it has.
template <class T>
int64_t AttentionTarget<T>::load_scores(const RowKeys& row, int64_t first) {
  const int64_t n = std::min(kSlotBlock, row.n - first);
  const int64_t n_padded = round_up(n, kDepth);
  gather_rows(attention_, inputs_.kv, row.ids + first, n, n_padded, keys_, width_padded_);
  gemm_(n_padded, heads_padded_, width_padded_, keys_, width_padded_, q_packed_, scores_,
        heads_padded_, false);
  return n;
}

template <class T>
void AttentionTarget<T>::load_norms(int64_t t) {
  for (int64_t h = 0; h < heads_padded_; ++h) {
    const float lse = h < heads_ ? *row_of<const float>(lse_, t, h) : kInf;
    const float sink = h < heads_ ? sink_of(sink_, h) : -kInf;
    norm_[h] = log_add_exp(lse, sink);
    live_[h] = std::isinf(lse) || norm_[h] == static_cast<double>(kInf) ? 0u : ~0u;
  }
}

/// From the largest score of each head, the shift that makes the largest term of the row 1.
template <class T>
bool AttentionTarget<T>::choose_base() {
  int64_t best = -1;
  for (int64_t h = 0; h < heads_; ++h) {
    if (live_[h] == 0u || max_[h] == -kInf) continue;
    if (best < 0 || (static_cast<double>(max_[h]) - static_cast<double>(max_[best])) -
                            (norm_[h] - norm_[best]) >
                        0) {
      best = h;
    }
  }
  if (best < 0) return false;
  for (int64_t h = 0; h < heads_padded_; ++h) {
    const double shift = static_cast<double>(max_[best]) + (norm_[h] - norm_[best]);
    shift_[h] = live_[h] == 0u ? 0.0f : static_cast<float>(shift);
  }
  return true;
}

template <class T>
void AttentionTarget<T>::run(int64_t t, const RowKeys& row, float* target) {
  load_query(t);
  load_norms(t);
  std::fill_n(max_, heads_padded_, -kInf);
  const bool one_block = row.n <= kSlotBlock;  // then its products need not be formed twice
  for (int64_t first = 0; first < row.n; first += kSlotBlock) {
    const int64_t n = load_scores(row, first);
    math_.max_block(scores_, n, heads_padded_, scale_, max_);
  }
  bool nan = false;
  for (int64_t h = 0; h < heads_; ++h) {
    nan |= live_[h] != 0u && (std::isnan(norm_[h]) || std::isnan(max_[h]));
  }
  if (!nan && !choose_base()) {
    std::fill_n(target, row.n, 0.0f);
    return;
  }
  if (nan) std::fill_n(shift_, heads_padded_, std::numeric_limits<float>::quiet_NaN());
  double sum = 0;
  for (int64_t first = 0; first < row.n; first += kSlotBlock) {
    const int64_t n = one_block ? row.n : load_scores(row, first);
    math_.target_block(scores_, n, heads_padded_, scale_, shift_, live_, target + first);
    for (int64_t i = first; i < first + n; ++i) sum += static_cast<double>(target[i]);
  }
  const double divisor = sum == 0 ? 1.0 : sum;  // divided, so that a row of one key is exactly 1
  for (int64_t i = 0; i < row.n; ++i) {
    target[i] = static_cast<float>(static_cast<double>(target[i]) / divisor);
  }
}

template <class T>
void AttentionTarget<T>::log_sum_exp(int64_t t, const RowKeys& row, float* lse) {
  if (row.n == 0) {
    std::fill_n(lse, heads_, kInf);
    return;
  }
  load_query(t);
  std::fill_n(max_, heads_padded_, -kInf);
  std::fill_n(sum_, heads_padded_, 0.0f);
  for (int64_t first = 0; first < row.n; first += kSlotBlock) {
    const int64_t n = load_scores(row, first);
    attention_.softmax_block(scores_, n, round_up(n, kDepth), heads_padded_, scale_, max_, sum_,
                             rescale_, words_);
  }
  for (int64_t h = 0; h < heads_; ++h) {
    const double max = max_[h];
    lse[h] =
        static_cast<float>(std::isinf(max) ? max : max + std::log(static_cast<double>(sum_[h])));
  }
}

template class AttentionTarget<bf16>;
template class AttentionTarget<f16>;

}  // namespace dsattn::cpu
