#include "problem/term_sizes.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "problem/bind.h"
#include "problem/elements.h"

namespace dsattn {
namespace {

constexpr double kDqShare = 1e-2;
constexpr double kInf = std::numeric_limits<double>::infinity();

double log_add_exp(double a, double b) {
  const double high = std::max(a, b);
  if (std::isinf(high)) return high;
  return high + std::log1p(std::exp(std::min(a, b) - high));
}

double dot(const double* a, const double* b, int64_t n) {
  double sum = 0;
  for (int64_t i = 0; i < n; ++i) sum += a[i] * b[i];
  return sum;
}

/// The backward's inputs as doubles. Everything is read by (t, h) rows.
class Terms {
 public:
  static Result<Terms> of(const Problem& problem) {
    Terms terms;
    auto bound = bind_parameters(problem, terms.args_);
    if (!bound) return tl::unexpected(bound.error());
    for (const char* name : {"q", "kv", "out", "dout", "lse", "topk_idxs"}) {
      if (!problem.has(name)) return fail(ErrorCode::kMissingTensor, std::string(name));
    }
    terms.q_ = to_doubles(problem.tensors.at("q"));
    terms.kv_ = to_doubles(problem.tensors.at("kv"));
    terms.out_ = to_doubles(problem.tensors.at("out"));
    terms.dout_ = to_doubles(problem.tensors.at("dout"));
    terms.lse_ = to_doubles(problem.tensors.at("lse"));
    terms.ids_ = problem.view("topk_idxs");
    terms.lengths_ = problem.view("topk_length");
    if (problem.has("sink")) terms.sink_ = to_doubles(problem.tensors.at("sink"));
    const TensorView q = problem.view("q");
    terms.queries_ = q.size(0);
    terms.heads_ = q.size(1);
    terms.d_ = q.size(2);
    terms.dv_ = problem.view("dout").size(2);
    terms.keys_ = problem.view("kv").size(0);
    terms.scale_ = terms.args_.softmax_scale ? static_cast<double>(*terms.args_.softmax_scale)
                                             : 1 / std::sqrt(static_cast<double>(terms.d_));
    return terms;
  }

  std::vector<double> dq() const {
    std::vector<double> sizes(q_.size(), 0.0);
    for (int64_t t = 0; t < queries_; ++t) {
      for (int64_t h = 0; h < heads_; ++h) add_row(t, h, &sizes[offset(t, h, d_)]);
    }
    return sizes;
  }

  std::vector<double> d_sink() const {
    std::vector<double> sizes(sink_.size(), 0.0);
    for (int64_t t = 0; t < queries_; ++t) {
      for (int64_t h = 0; h < heads_; ++h) {
        const double term =
            std::abs(std::exp(sink_[static_cast<size_t>(h)] - total(t, h)) * delta(t, h));
        if (std::isfinite(term)) sizes[static_cast<size_t>(h)] += term;
      }
    }
    return sizes;
  }

 private:
  size_t offset(int64_t t, int64_t h, int64_t width) const {
    return static_cast<size_t>((t * heads_ + h) * width);
  }
  double total(int64_t t, int64_t h) const {
    return log_add_exp(lse_[offset(t, h, 1)],
                       sink_.empty() ? -kInf : sink_[static_cast<size_t>(h)]);
  }
  double delta(int64_t t, int64_t h) const {
    return dot(&out_[offset(t, h, dv_)], &dout_[offset(t, h, dv_)], dv_);
  }
  int64_t slots(int64_t t) const {
    const int64_t k = ids_.size(1);
    if (!lengths_.defined()) return k;
    return std::clamp<int64_t>(lengths_.ptr<const int32_t>()[t], 0, k);
  }

  void add_row(int64_t t, int64_t h, double* sizes) const {
    const double l = total(t, h);
    if (!std::isfinite(l)) return;
    const double row_delta = std::abs(delta(t, h));
    for (int64_t j = 0; j < slots(t); ++j) {
      const int64_t id = ids_.ptr<const int32_t>()[t * ids_.size(1) + j];
      if (id < 0 || id >= keys_) continue;
      const double* key = &kv_[static_cast<size_t>(id * d_)];
      const double p = std::exp(scale_ * dot(&q_[offset(t, h, d_)], key, d_) - l);
      const double dp = std::abs(dot(&dout_[offset(t, h, dv_)], key, dv_));
      const double weight = kDqShare * p * (dp + row_delta) * scale_;
      for (int64_t i = 0; i < d_; ++i) sizes[i] += weight * std::abs(key[i]);
    }
  }

  SparseAttentionBackwardArgs args_;
  std::vector<double> q_, kv_, out_, dout_, lse_, sink_;
  TensorView ids_, lengths_;
  int64_t queries_ = 0, heads_ = 0, d_ = 0, dv_ = 0, keys_ = 0;
  double scale_ = 0;
};

}  // namespace

Result<std::vector<double>> term_sizes(const Problem& problem, std::string_view name) {
  if (name != "dq" && name != "d_sink") return std::vector<double>{};
  auto terms = Terms::of(problem);
  if (!terms) return tl::unexpected(terms.error());
  return name == "dq" ? terms->dq() : terms->d_sink();
}

}  // namespace dsattn
