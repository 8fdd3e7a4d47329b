// indexer_forward (contract section 3): the score matrix, hidden keys exactly -inf.
#include <algorithm>
#include <vector>

#include "ref/indexer_row.h"
#include "ref/numerics.h"
#include "ref/ref.h"
#include "ref/rows.h"

namespace dsattn::ref {

Result<void> run(const IndexerForwardArgs& args, const ExecContext& ctx) {
  const int64_t kv_rows = args.index_k.size(0);
  const MaskedKeys visible(args, args.index_q.size(0), kv_rows);
  IndexerRow row(args);
  Keys keys;
  std::vector<double> scores(static_cast<size_t>(kv_rows));
  return for_each_row(args.index_q.size(0), ctx, [&](int64_t t) {
    visible.get(t, keys);
    row.load(t, keys);
    std::fill(scores.begin(), scores.end(), -kInf);
    for (size_t i = 0; i < keys.size(); ++i) {
      scores[static_cast<size_t>(keys[i].column)] = row.scores()[i];
    }
    write_row(args.scores, scores.data(), kv_rows, t);
  });
}

}  // namespace dsattn::ref
