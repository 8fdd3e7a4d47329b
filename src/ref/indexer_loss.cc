// sparse_indexer_loss and dense_indexer_loss (contract sections 5 and 6): loss and gradients row by
// row; predict and target live for one row only.
#include <algorithm>
#include <cmath>
#include <vector>

#include "ref/attention_row.h"
#include "ref/indexer_row.h"
#include "ref/ref.h"
#include "ref/rows.h"

namespace dsattn::ref {
namespace {

// KL(target || predict) of one row, from ln predict so that an underflowing predict costs nothing.
// A term with target = 0 is 0. The clipped form bounds both from below by e^-100.
double divergence(const std::vector<double>& target, const std::vector<double>& log_predict,
                  bool clipped) {
  double sum = 0;
  for (size_t i = 0; i < target.size(); ++i) {
    const double wanted = clipped ? std::max(target[i], kClip) : target[i];
    if (wanted == 0) continue;
    const double given = clipped ? std::max(log_predict[i], -100.0) : log_predict[i];
    sum += wanted * (std::log(wanted) - given);
  }
  return sum;
}

template <class Args, class KeySource>
Result<void> loss_rows(const Args& args, const KeySource& source, const ExecContext& ctx) {
  IndexerGradientRow indexer(args, args);
  AttentionRow attention(args);
  Keys keys;
  std::vector<double> log_predict;
  std::vector<double> predict;
  std::vector<double> target;
  double sum = 0;
  const Result<void> done = for_each_row(args.index_q.size(0), ctx, [&](int64_t t) {
    source.get(t, keys);
    indexer.load(t, keys);
    attention.load(t, keys);
    target.resize(keys.size());
    attention.target(t, args.lse, args.sink, target.data());
    indexer.log_predict(log_predict);
    predict.resize(keys.size());
    std::transform(log_predict.begin(), log_predict.end(), predict.begin(),
                   [](double x) { return std::exp(x); });
    sum += divergence(target, log_predict, args.clipped);
    indexer.add(t, keys, predict, target);
  });
  if (!done) return done;
  indexer.finish();
  write(args.loss, indexer.loss_factor() * sum);
  return {};
}

}  // namespace

Result<void> run(const SparseIndexerLossArgs& args, const ExecContext& ctx) {
  return loss_rows(args, SelectedKeys(args, args.kv.size(0)), ctx);
}

Result<void> run(const DenseIndexerLossArgs& args, const ExecContext& ctx) {
  return loss_rows(args, MaskedKeys(args, args.index_q.size(0), args.kv.size(0)), ctx);
}

}  // namespace dsattn::ref
