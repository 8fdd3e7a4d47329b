#include "problem/verify.h"

#include <algorithm>
#include <cmath>

#include "base/causal_mask.h"
#include "problem/elements.h"
#include "problem/index_term_sizes.h"
#include "problem/term_sizes.h"

namespace dsattn {
namespace {

/// The largest finite magnitude among the floating inputs, at least 1.
double operand_size(const Problem& problem) {
  double largest = 1;
  for (const auto& [name, tensor] : problem.tensors) {
    if (tensor.dtype() == DType::kI32) continue;
    with_elements(tensor, [&](auto elements) {
      for (auto element : elements) {
        const double magnitude = std::abs(element_to_double(element));
        if (std::isfinite(magnitude)) largest = std::max(largest, magnitude);
      }
    });
  }
  return largest;
}

ExecContext reference_context(const ExecContext& ctx) {
  ExecContext reference;
  reference.backend = Backend::kRef;
  reference.progress = ctx.progress;
  return reference;
}

/// The combined operation's backward half, on out and lse as `result` stored them.
Problem backward_half(const Problem& problem, const TensorMap& result) {
  Problem backward = problem;
  backward.op = "sparse_attention_backward";
  for (const char* name : {"out", "lse"}) {
    backward.tensors.insert_or_assign(name, result.at(name));
  }
  return backward;
}

Result<TensorMap> reference_of(const Problem& problem, const ExecContext& ctx) {
  auto wide = widened(problem);
  if (!wide) return tl::unexpected(wide.error());
  return run_problem(*wide, reference_context(ctx), OutputTypes::kF64);
}

/// Appends a report per output of `problem`, which is not one of the composite operations.
Result<void> judge_plain(const Problem& problem, const TensorMap& result, const ExecContext& ctx,
                         VerifyReport& report) {
  auto expected = reference_of(problem, ctx);
  if (!expected) return tl::unexpected(expected.error());
  CompareContext context;
  context.operand_size = operand_size(problem);
  auto index_sizes = index_term_sizes(problem);
  if (!index_sizes) return tl::unexpected(index_sizes.error());
  for (const auto& [name, tensor] : *expected) {
    context.term_sizes.clear();
    if (problem.op == "sparse_attention_backward") {
      auto sizes = term_sizes(problem, name);
      if (!sizes) return tl::unexpected(sizes.error());
      context.term_sizes = std::move(*sizes);
    }
    const auto at = index_sizes->find(name);
    if (at != index_sizes->end()) context.term_sizes = at->second;
    const auto got = result.find(name);
    if (got == result.end()) {
      TensorReport absent;
      absent.name = name;
      absent.failure = "is absent from the result";
      report.tensors.push_back(absent);
      continue;
    }
    report.tensors.push_back(compare_tensor(name, got->second, tensor, context));
  }
  return {};
}

Result<VerifyReport> judge_combined(const Problem& problem, const TensorMap& result,
                                    const ExecContext& ctx) {
  VerifyReport report;
  if (!result.contains("out") || !result.contains("lse")) {
    return fail(ErrorCode::kMissingTensor, "the result has no out and lse to judge dq by");
  }
  Problem forward = problem;
  forward.op = "sparse_attention_forward";
  auto judged = judge_plain(forward, result, ctx, report);
  if (judged) judged = judge_plain(backward_half(problem, result), result, ctx, report);
  if (!judged) return tl::unexpected(judged.error());
  return report;
}

/// Turns global ids into ids within the query's own segment.
void make_local(const Problem& problem, OwnedTensor& ids) {
  CausalMask mask;
  mask.cu_seqlens_q = problem.view("cu_seqlens_q");
  mask.cu_seqlens_k = problem.view("cu_seqlens_k");
  const int64_t queries = ids.view().size(0);
  const int64_t width = ids.view().size(1);
  const RowMask rows(mask, queries, problem.view("index_k").size(0));
  for (int64_t t = 0; t < queries; ++t) {
    const auto begin = static_cast<int32_t>(rows.row(t).begin);
    for (int64_t j = 0; j < width; ++j) {
      int32_t& id = ids.elements<int32_t>()[static_cast<size_t>(t * width + j)];
      if (id >= 0) id -= begin;
    }
  }
}

Result<VerifyReport> judge_fused_top_k(const Problem& problem, const TensorMap& result,
                                       const ExecContext& ctx) {
  Problem scoring = problem;
  scoring.op = "indexer_forward";
  auto scores = run_problem(scoring, ctx);
  if (!scores) return tl::unexpected(scores.error());
  VerifyReport report;
  if (auto judged = judge_plain(scoring, *scores, ctx, report); !judged) {
    return tl::unexpected(judged.error());
  }
  Problem selecting;
  selecting.op = "indexer_top_k";
  selecting.metadata = problem.metadata;
  selecting.tensors["scores"] = scores->at("scores");
  auto pair = run_problem(selecting, ctx);
  if (!pair) return tl::unexpected(pair.error());
  if (problem.parameter("ids") == "local") make_local(problem, pair->at("topk_idxs"));
  for (auto& [name, tensor] : *pair) {
    auto expected = to_f64(tensor);
    if (!expected) return tl::unexpected(expected.error());
    const auto got = result.find(name);
    if (got == result.end()) return fail(ErrorCode::kMissingTensor, name + " is absent");
    report.tensors.push_back(compare_tensor(name, got->second, *expected, {}));
  }
  return report;
}

}  // namespace

Result<Problem> widened(const Problem& problem) {
  Problem wide = problem;
  for (auto& [name, tensor] : wide.tensors) {
    auto copy = to_f64(tensor);
    if (!copy) return tl::unexpected(copy.error());
    tensor = *copy;
  }
  return wide;
}

Result<VerifyReport> judge(const Problem& completed, const TensorMap& result,
                           const ExecContext& ctx) {
  if (completed.op == "sparse_attention") return judge_combined(completed, result, ctx);
  if (completed.op == "indexer_forward_top_k") return judge_fused_top_k(completed, result, ctx);
  VerifyReport report;
  if (auto judged = judge_plain(completed, result, ctx, report); !judged) {
    return tl::unexpected(judged.error());
  }
  return report;
}

Result<VerifyReport> verify(const Problem& problem, const ExecContext& ctx) {
  auto completed = complete(problem, ctx);
  if (!completed) return tl::unexpected(completed.error());
  auto result = run_problem(*completed, ctx);
  if (!result) return tl::unexpected(result.error());
  return judge(*completed, *result, ctx);
}

}  // namespace dsattn
