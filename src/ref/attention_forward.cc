// sparse_attention_forward (contract section 1) and dense_attention_lse (section 5).
#include <algorithm>
#include <cmath>
#include <vector>

#include "ref/attention_row.h"
#include "ref/numerics.h"
#include "ref/ref.h"
#include "ref/rows.h"

namespace dsattn::ref {
namespace {

// Turns scores into weights exp(s) / (sum exp(s) + exp(sink)), in place. The largest exponent is
// subtracted; its own term is then 1 even where it is infinite (sink = +inf: all weights 0).
void normalise(double* s, int64_t n, double sink) {
  const double largest = max_of(s, n);
  const double shift = sink > largest ? sink : largest;
  double sum = sink == shift && sink > 0 ? 1.0 : std::exp(sink - shift);
  if (sink == -kInf) sum = 0;
  for (int64_t i = 0; i < n; ++i) {
    s[i] = std::exp(s[i] - shift);
    sum += s[i];
  }
  for (int64_t i = 0; i < n; ++i) s[i] /= sum;
}

}  // namespace

Result<void> run(const SparseAttentionForwardArgs& args, const ExecContext& ctx) {
  const int64_t queries = args.q.size(0);
  const int64_t heads = args.q.size(1);
  const int64_t value_width = args.out.size(2);
  const SelectedKeys selected(args, args.kv.size(0));
  AttentionRow row(args);
  Keys keys;
  std::vector<double> out(static_cast<size_t>(heads * value_width));
  std::vector<double> value(static_cast<size_t>(value_width));

  return for_each_row(queries, ctx, [&](int64_t t) {
    selected.get(t, keys);
    const auto n = static_cast<int64_t>(keys.size());
    row.load(t, keys);
    std::fill(out.begin(), out.end(), 0.0);
    for (int64_t h = 0; h < heads; ++h) {
      double* s = row.scores(h);
      write(args.lse, n == 0 ? kInf : log_sum_exp(s, n), t, h);
      if (args.max_logits.defined()) write(args.max_logits, max_of(s, n), t, h);
      normalise(s, n, sink_of(args.sink, h));
    }
    for (int64_t i = 0; i < n; ++i) {
      read_row(args.kv, value.data(), value_width, keys[static_cast<size_t>(i)].row);
      for (int64_t h = 0; h < heads; ++h) {
        add_scaled(row.scores(h)[i], value.data(), value_width, out.data() + h * value_width);
      }
    }
    for (int64_t h = 0; h < heads; ++h) {
      write_row(args.out, out.data() + h * value_width, value_width, t, h);
    }
  });
}

Result<void> run(const DenseAttentionLseArgs& args, const ExecContext& ctx) {
  const MaskedKeys visible(args, args.q.size(0), args.kv.size(0));
  AttentionRow row(args);
  Keys keys;
  return for_each_row(args.q.size(0), ctx, [&](int64_t t) {
    visible.get(t, keys);
    const auto n = static_cast<int64_t>(keys.size());
    row.load(t, keys);
    for (int64_t h = 0; h < args.q.size(1); ++h) {
      write(args.lse, n == 0 ? kInf : log_sum_exp(row.scores(h), n), t, h);
    }
  });
}

}  // namespace dsattn::ref
