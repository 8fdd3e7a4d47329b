// indexer_backward and dense_indexer_backward (contract section 6) from stored predict and target.
#include <vector>

#include "ref/indexer_row.h"
#include "ref/ref.h"
#include "ref/rows.h"

namespace dsattn::ref {
namespace {

template <class Args, class KeySource>
Result<void> backward_rows(const Args& args, const KeySource& source, const ExecContext& ctx) {
  IndexerGradientRow row(args, args);
  Keys keys;
  std::vector<double> predict;
  std::vector<double> target;
  const Result<void> done = for_each_row(args.index_q.size(0), ctx, [&](int64_t t) {
    source.get(t, keys);
    row.load(t, keys);
    predict.resize(keys.size());
    target.resize(keys.size());
    for (size_t i = 0; i < keys.size(); ++i) {
      predict[i] = read(args.predict, t, keys[i].column);
      target[i] = read(args.target, t, keys[i].column);
    }
    row.add(t, keys, predict, target);
  });
  if (done) row.finish();
  return done;
}

}  // namespace

Result<void> run(const IndexerBackwardArgs& args, const ExecContext& ctx) {
  return backward_rows(args, SelectedKeys(args, args.index_k.size(0)), ctx);
}

Result<void> run(const DenseIndexerBackwardArgs& args, const ExecContext& ctx) {
  return backward_rows(args, MaskedKeys(args, args.index_q.size(0), args.index_k.size(0)), ctx);
}

}  // namespace dsattn::ref
