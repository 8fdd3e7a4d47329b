#include "problem/work.h"

#include <algorithm>

#include "base/causal_mask.h"

namespace dsattn {
namespace {

double valid_slots(const Problem& problem, int64_t keys) {
  const TensorView ids = problem.view("topk_idxs");
  const TensorView lengths = problem.view("topk_length");
  const int64_t width = ids.size(1);
  int64_t count = 0;
  for (int64_t t = 0; t < ids.size(0); ++t) {
    const int64_t slots =
        lengths.defined() ? std::clamp<int64_t>(lengths.ptr<const int32_t>()[t], 0, width) : width;
    for (int64_t j = 0; j < slots; ++j) {
      const int32_t id = ids.ptr<const int32_t>()[t * width + j];
      count += id >= 0 && id < keys;
    }
  }
  return static_cast<double>(count);
}

double visible_keys(const Problem& problem, int64_t queries, int64_t keys) {
  CausalMask mask;
  mask.cu_seqlens_q = problem.view("cu_seqlens_q");
  mask.cu_seqlens_k = problem.view("cu_seqlens_k");
  mask.q_offsets = problem.view("q_offsets");
  if (const auto text = problem.parameter("ratio"))
    mask.ratio = parse_int("ratio", *text).value_or(1);
  const RowMask rows(mask, queries, keys);
  int64_t count = 0;
  for (int64_t t = 0; t < queries; ++t) count += rows.row(t).visible;
  return static_cast<double>(count);
}

/// Multiply-adds per (query, key) pair of the attention's part, by which products the operation
/// makes: q k; p v; and in the backward dout v, dS k, dS q, P dout.
double attention_pair(const Problem& problem) {
  const TensorView q = problem.view("q");
  if (!q.defined()) return 0;
  const auto heads = static_cast<double>(q.size(1));
  const auto d = static_cast<double>(q.size(2));
  double dv = std::min(d, 512.0);
  if (const auto text = problem.parameter("d_v")) {
    dv = static_cast<double>(parse_int("d_v", *text).value_or(0));
  }
  const TensorView dout = problem.view("dout");
  if (dout.defined()) dv = static_cast<double>(dout.size(2));
  const double forward = d + dv;
  const double backward = 3 * d + 2 * dv;
  if (problem.op == "sparse_attention_forward") return heads * forward;
  if (problem.op == "sparse_attention_backward") return heads * backward;
  if (problem.op == "sparse_attention") return heads * (forward + backward);
  return heads * d;  // scores alone
}

double indexer_pair(const Problem& problem) {
  const TensorView index_q = problem.view("index_q");
  if (!index_q.defined()) return 0;
  const auto forward = static_cast<double>(index_q.size(1) * index_q.size(2));
  const bool backward = problem.op.find("backward") != std::string::npos ||
                        problem.op.find("loss") != std::string::npos;
  return backward ? 3 * forward : forward;
}

}  // namespace

double floating_operations(const Problem& problem) {
  const TensorView queries = problem.view(problem.has("q") ? "q" : "index_q");
  const TensorView keys = problem.view(problem.has("kv") ? "kv" : "index_k");
  if (!queries.defined() || !keys.defined()) return 0;
  const double pairs = problem.has("topk_idxs")
                           ? valid_slots(problem, keys.size(0))
                           : visible_keys(problem, queries.size(0), keys.size(0));
  return 2 * pairs * (attention_pair(problem) + indexer_pair(problem));
}

}  // namespace dsattn
