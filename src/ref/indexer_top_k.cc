// indexer_top_k and indexer_forward_top_k (contract section 4): one selection rule for both.
#include <algorithm>
#include <cstdint>
#include <vector>

#include "ref/indexer_row.h"
#include "ref/numerics.h"
#include "ref/ref.h"
#include "ref/rows.h"

namespace dsattn::ref {
namespace {

struct Candidate {
  double score;
  int64_t id;
};
using Candidates = std::vector<Candidate>;

// The order of preference: larger score first, then smaller id. Total, because NaN never gets in.
bool better(const Candidate& a, const Candidate& b) {
  return a.score != b.score ? a.score > b.score : a.id < b.id;
}

// -inf and NaN are never selected.
void offer(Candidates& candidates, double score, int64_t id) {
  if (score > -kInf) candidates.push_back({score, id});
}

void write_best(Candidates& candidates, TopKOrder order, int64_t t, const TensorView& ids,
                const TensorView& values) {
  const int64_t k = ids.size(1);
  const auto found = std::min<int64_t>(k, static_cast<int64_t>(candidates.size()));
  std::partial_sort(candidates.begin(), candidates.begin() + found, candidates.end(), better);
  candidates.resize(static_cast<size_t>(found));
  if (order == TopKOrder::kId) {
    std::sort(candidates.begin(), candidates.end(),
              [](const Candidate& a, const Candidate& b) { return a.id < b.id; });
  }
  for (int64_t j = 0; j < k; ++j) {
    const Candidate best = j < found ? candidates[static_cast<size_t>(j)] : Candidate{-kInf, -1};
    ids.ptr<int32_t>()[offset_of(ids, t, j)] = static_cast<int32_t>(best.id);
    if (values.defined()) write(values, best.score, t, j);
  }
}

}  // namespace

Result<void> run(const IndexerTopKArgs& args, const ExecContext& ctx) {
  const int64_t width = args.scores.size(1);
  Candidates candidates;
  std::vector<double> scores(static_cast<size_t>(width));
  return for_each_row(args.scores.size(0), ctx, [&](int64_t t) {
    int64_t length = width;
    if (args.seq_lens.defined()) {
      length = std::clamp<int64_t>(read_int(args.seq_lens, t), 0, width);
    }
    read_row(args.scores, scores.data(), length, t);
    candidates.clear();
    for (int64_t s = 0; s < length; ++s) offer(candidates, scores[static_cast<size_t>(s)], s);
    write_best(candidates, args.order, t, args.topk_idxs, args.topk_values);
  });
}

Result<void> run(const IndexerForwardTopKArgs& args, const ExecContext& ctx) {
  const int64_t queries = args.index_q.size(0);
  const int64_t kv_rows = args.index_k.size(0);
  const MaskedKeys visible(args, queries, kv_rows);
  const RowMask mask(args, queries, kv_rows);
  // Scores are compared as the unfused pair stores them, so that both choose the same ids.
  const bool keep_double = args.topk_values.dtype == DType::kF64;
  IndexerRow row(args);
  Keys keys;
  Candidates candidates;
  return for_each_row(queries, ctx, [&](int64_t t) {
    visible.get(t, keys);
    row.load(t, keys);
    candidates.clear();
    const int64_t first = args.ids == IdSpace::kLocal ? mask.row(t).begin : 0;
    for (size_t i = 0; i < keys.size(); ++i) {
      const double exact = row.scores()[i];
      const double score = keep_double ? exact : static_cast<double>(static_cast<float>(exact));
      offer(candidates, score, keys[i].row - first);
    }
    write_best(candidates, args.order, t, args.topk_idxs, args.topk_values);
  });
}

}  // namespace dsattn::ref
