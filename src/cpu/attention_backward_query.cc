// See attention_backward_query.h.
#include "cpu/attention_backward_query.h"

#include <numbers>

namespace dsattn::cpu {
namespace {

// The row's gradients vanish: +inf, or so large that sink * log2(e) overflows fp32.
bool saturates(float sink) { return sink > 0 && std::isinf(sink * std::numbers::log2e_v<float>); }

double log_add_exp(double a, double b) {
  if (std::isnan(a) || std::isnan(b)) return a + b;
  const double larger = std::max(a, b);
  return std::isinf(larger) ? larger : larger + std::log1p(std::exp(std::min(a, b) - larger));
}

}  // namespace

template <class T>
void QueryGradient<T>::segment(int64_t t, int64_t i, const BackwardScratch<T>& s) const {
  ChunkQuery& query = chunk_.queries[i];
  const bool first = !query.started;
  int32_t* ids = chunk_.ids + i * plan_.chunk_slots;
  query.count = query.slots.take(plan_.chunk_slots, ids);
  if (first) {
    std::fill_n(chunk_.sink_terms + i * size_.heads, size_.heads, 0.0);
    if (query.count > 0) start(t, i, s);
  }
  query.started = true;
  E* rows = chunk_.rows + i * plan_.chunk_slots * 2 * size_.heads_padded;
  for (int64_t at = 0; at < query.count; at += kSlotBlock) {
    add_block(ids + at, std::min(kSlotBlock, query.count - at), !first || at > 0,
              rows + at * 2 * size_.heads_padded, s);
  }
  if (query.slots.done()) write_dq(t, !first || query.count > 0, s);
}

// Everything that does not depend on the slots.
template <class T>
void QueryGradient<T>::start(int64_t t, int64_t i, const BackwardScratch<T>& s) const {
  const int64_t heads = size_.heads_padded;
  const int64_t width = size_.width_padded;
  const int64_t values = size_.value_padded;
  load_heads(math_, args_.q, t, size_.heads, heads, s.q, width);
  load_heads(math_, args_.dout, t, size_.heads, heads, s.dout, values);
  std::fill_n(s.norm, heads, 0.0f);
  std::fill_n(s.delta, heads, 0.0f);
  std::fill_n(s.live, heads, 0u);
  for (int64_t h = 0; h < size_.heads; ++h) start_head(t, i, h, s);
  pack_transposed(math_, s.q, heads, width, s.q_packed);
  pack_transposed(math_, s.dout, heads, values, s.dout_packed);
  E* operand = chunk_.operands + i * operand_offset(size_, width);
  math_.pack_rows(s.q, width, heads, values, operand, 2 * heads);
  math_.pack_rows(s.dout, values, heads, values, operand + heads * kPanel, 2 * heads);
  math_.pack_rows(s.q + values, width, heads, width - values,
                  operand + operand_offset(size_, values), heads);
}

template <class T>
void QueryGradient<T>::start_head(int64_t t, int64_t i, int64_t h,
                                  const BackwardScratch<T>& s) const {
  E* q = s.q + h * size_.width_padded;
  E* dout = s.dout + h * size_.value_padded;
  const float lse = args_.lse.ptr<const float>()[t * args_.lse.stride(0) + h];
  const float sink = sink_of(args_.sink, h);
  if (std::isinf(lse) || saturates(sink)) {  // gives nothing, not even a NaN of its own rows
    std::fill_n(q, size_.width_padded, E{});
    std::fill_n(dout, size_.value_padded, E{});
    return;
  }
  math_.load_row(row_of<const T>(args_.out, t, h), size_.value_width, s.out, size_.value_padded);
  s.live[h] = ~0u;
  s.delta[h] = math_.dot(s.out, dout, size_.value_padded);
  const double norm = args_.sink.defined() ? log_add_exp(lse, sink) : lse;
  s.norm[h] = static_cast<float>(norm);
  if (args_.sink.defined()) {
    chunk_.sink_terms[i * size_.heads + h] = std::exp(sink - norm) * s.delta[h];
  }
}

template <class T>
void QueryGradient<T>::add_block(const int32_t* ids, int64_t n, bool accumulate, E* rows,
                                 const BackwardScratch<T>& s) const {
  const int64_t n_padded = round_up(n, kDepth);
  const int64_t heads = size_.heads_padded;
  const int64_t width = size_.width_padded;
  gather_rows(math_, args_.kv, ids, n, n_padded, s.keys, width);
  gemm_(n_padded, heads, width, s.keys, width, s.q_packed, s.scores, heads, false);
  gemm_(n_padded, heads, size_.value_padded, s.keys, width, s.dout_packed, s.dp, heads, false);
  const GradientRow row{scale_, s.norm, s.delta, s.live};
  math_.gradient_block(s.scores, s.dp, n, n_padded, heads, row, rows, s.words);
  words_to_rows(math_, s.words, n_padded, heads, s.ds);
  math_.pack_rows(s.keys, width, n_padded, width, s.keys_packed, n_padded);
  gemm_(heads, width, n_padded, s.ds, n_padded, s.keys_packed, s.dq, width, accumulate);
}

template <class T>
void QueryGradient<T>::write_dq(int64_t t, bool any, const BackwardScratch<T>& s) const {
  for (int64_t h = 0; h < size_.heads; ++h) {
    T* dq = row_of<T>(args_.dq, t, h);
    if (any && s.live[h] != 0) {
      math_.store_row(s.dq + h * size_.width_padded, size_.width, 1.0f, dq);
    } else {
      std::fill_n(dq, size_.width, T{});
    }
  }
}

template class QueryGradient<bf16>;
template class QueryGradient<f16>;
template class QueryGradient<narrow_bf16>;

}  // namespace dsattn::cpu
