#include "problem/index_term_sizes.h"

#include <algorithm>
#include <cmath>

#include "base/causal_mask.h"
#include "problem/bind.h"
#include "problem/elements.h"
#include "problem/run.h"
#include "problem/verify.h"

namespace dsattn {
namespace {

// A sum of n terms that were rounded to bf16 errs by 2^-9 / sqrt(3 n) of the terms; with the bound
// of 6e-3 this share leaves room down to n = 16.
constexpr double kShare = 5e-2;

using Sizes = std::map<std::string, std::vector<double>, std::less<>>;

/// A tensor that the reference computes from the problem's own inputs by another operation.
Result<std::vector<double>> computed(const Problem& wide, const char* op, const char* output) {
  Problem other = wide;
  other.op = op;
  ExecContext ctx;
  ctx.backend = Backend::kRef;
  auto result = run_problem(other, ctx, OutputTypes::kF64);
  if (!result) return tl::unexpected(result.error());
  return to_doubles(result->at(output));
}

class IndexTerms {
 public:
  static Result<IndexTerms> of(const Problem& problem) {
    IndexTerms terms;
    auto bound = bind_parameters(problem, terms.args_);
    if (bound) bound = bind_parameters(problem, terms.gradients_);
    if (!bound) return tl::unexpected(bound.error());
    terms.dense_ = problem.op.starts_with("dense_");
    terms.selection_.topk_idxs = problem.view("topk_idxs");
    terms.selection_.topk_length = problem.view("topk_length");
    terms.args_.cu_seqlens_q = problem.view("cu_seqlens_q");
    terms.args_.cu_seqlens_k = problem.view("cu_seqlens_k");
    terms.args_.q_offsets = problem.view("q_offsets");
    terms.q_ = to_doubles(problem.tensors.at("index_q"));
    terms.k_ = to_doubles(problem.tensors.at("index_k"));
    terms.w_ = to_doubles(problem.tensors.at("index_w"));
    terms.queries_ = problem.view("index_q").size(0);
    terms.heads_ = problem.view("index_q").size(1);
    terms.keys_ = problem.view("index_k").size(0);
    if (problem.has("grad_loss")) {
      terms.upstream_ = std::abs(to_doubles(problem.tensors.at("grad_loss")).at(0));
    }
    if (auto rows = terms.load_rows(problem); !rows) return tl::unexpected(rows.error());
    return terms;
  }

  Sizes sizes() {
    const int64_t tokens = gradients_.num_tokens > 0 ? gradients_.num_tokens : queries_;
    per_token_ = std::abs(static_cast<double>(gradients_.loss_coeff)) /
                 static_cast<double>(std::max<int64_t>(tokens, 1));
    sizes_["d_index_q"].assign(q_.size(), 0.0);
    sizes_["d_index_k"].assign(k_.size(), 0.0);
    sizes_["d_index_w"].assign(w_.size(), 0.0);
    sizes_["loss"].assign(1, 0.0);
    for (int64_t t = 0; t < queries_; ++t) add_query(t);
    return sizes_;
  }

 private:
  static constexpr int64_t kDim = 128;

  Result<void> load_rows(const Problem& problem) {
    if (problem.has("predict")) {
      predict_ = to_doubles(problem.tensors.at("predict"));
      target_ = to_doubles(problem.tensors.at("target"));
    } else {
      auto wide = widened(problem);
      if (!wide) return tl::unexpected(wide.error());
      auto predict =
          computed(*wide, dense_ ? "dense_indexer_scores" : "sparse_indexer_scores", "predict");
      if (!predict) return tl::unexpected(predict.error());
      auto target =
          computed(*wide, dense_ ? "dense_attention_scores" : "sparse_attention_scores", "target");
      if (!target) return tl::unexpected(target.error());
      predict_ = std::move(*predict);
      target_ = std::move(*target);
    }
    columns_ = dense_ ? keys_ : selection_.topk_idxs.size(1);
    return {};
  }

  /// f(index into predict and target, key row) for each key of query t.
  template <class F>
  void for_keys(int64_t t, const F& f) const {
    if (dense_) {
      const KeyRange range = RowMask(args_, queries_, keys_).row(t);
      for (int64_t s = range.begin; s < range.begin + range.visible; ++s) f(t * columns_ + s, s);
      return;
    }
    int64_t slots = columns_;
    if (selection_.topk_length.defined()) {
      slots = std::clamp<int64_t>(selection_.topk_length.ptr<const int32_t>()[t], 0, slots);
    }
    for (int64_t j = t * columns_; j < t * columns_ + slots; ++j) {
      const int64_t id = selection_.topk_idxs.ptr<const int32_t>()[j];
      if (id >= 0 && id < keys_) f(j, id);
    }
  }

  void add_query(int64_t t) {
    double mass = 0;
    for_keys(t, [&](int64_t i, int64_t) { mass += target_[static_cast<size_t>(i)]; });
    for_keys(t, [&](int64_t i, int64_t key) {
      const double p = predict_[static_cast<size_t>(i)];
      const double target = target_[static_cast<size_t>(i)];
      const double x = std::abs(static_cast<double>(args_.sm_scale)) * per_token_ * upstream_ *
                       (p * mass + target);
      if (target > 0 && p > 0) {
        sizes_["loss"][0] +=
            per_token_ * target * (std::abs(std::log(target)) + std::abs(std::log(p)));
      }
      if (std::isfinite(x)) add_key(t, key, x);
    });
  }

  void add_key(int64_t t, int64_t key, double x) {
    const double* k = &k_[static_cast<size_t>(key * kDim)];
    for (int64_t h = 0; h < heads_; ++h) {
      const auto at = static_cast<size_t>(t * heads_ + h);
      const double* q = &q_[at * kDim];
      double s = 0;
      for (int64_t i = 0; i < kDim; ++i) s += q[i] * k[i];
      if (!(s > 0) || !std::isfinite(s)) continue;
      const double weight = kShare * x * std::abs(w_[at]);
      for (int64_t i = 0; i < kDim; ++i) {
        sizes_["d_index_q"][at * kDim + static_cast<size_t>(i)] += weight * std::abs(k[i]);
        sizes_["d_index_k"][static_cast<size_t>(key * kDim + i)] += weight * std::abs(q[i]);
      }
      sizes_["d_index_w"][at] += x * s;
    }
  }

  DenseIndexerScoresArgs args_;         // sm_scale and the mask
  DenseIndexerBackwardArgs gradients_;  // coeff and N
  SparseSelection selection_;
  bool dense_ = false;
  double upstream_ = 1;
  double per_token_ = 0;
  int64_t queries_ = 0, heads_ = 0, keys_ = 0, columns_ = 0;
  std::vector<double> q_, k_, w_, predict_, target_;
  Sizes sizes_;
};

}  // namespace

Result<Sizes> index_term_sizes(const Problem& problem) {
  if (!problem.has("index_q") ||
      (!problem.op.ends_with("indexer_backward") && !problem.op.ends_with("indexer_loss"))) {
    return Sizes{};
  }
  auto terms = IndexTerms::of(problem);
  if (!terms) return tl::unexpected(terms.error());
  return terms->sizes();
}

}  // namespace dsattn
