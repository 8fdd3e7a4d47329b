// predict and target over the valid slots of a row or over all visible keys (contract section 5).
// Columns without a key are 0.
#include <algorithm>
#include <cmath>
#include <vector>

#include "ref/attention_row.h"
#include "ref/indexer_row.h"
#include "ref/ref.h"
#include "ref/rows.h"

namespace dsattn::ref {
namespace {

// Writes one value per key into its column of out[t], zeros elsewhere.
class ColumnWriter {
 public:
  explicit ColumnWriter(const TensorView& out)
      : out_(out), columns_(static_cast<size_t>(out.size(1))) {}

  void write_keys(int64_t t, const Keys& keys, const std::vector<double>& values) {
    std::fill(columns_.begin(), columns_.end(), 0.0);
    for (size_t i = 0; i < keys.size(); ++i) {
      columns_[static_cast<size_t>(keys[i].column)] = values[i];
    }
    write_row(out_, columns_.data(), static_cast<int64_t>(columns_.size()), t);
  }

 private:
  TensorView out_;
  std::vector<double> columns_;
};

template <class KeySource>
Result<void> predict_rows(const IndexerInputs& inputs, const KeySource& source,
                          const TensorView& predict, const ExecContext& ctx) {
  IndexerRow row(inputs);
  ColumnWriter writer(predict);
  Keys keys;
  std::vector<double> values;
  return for_each_row(inputs.index_q.size(0), ctx, [&](int64_t t) {
    source.get(t, keys);
    row.load(t, keys);
    row.log_predict(values);
    for (double& value : values) value = std::exp(value);
    writer.write_keys(t, keys, values);
  });
}

template <class Args, class KeySource>
Result<void> target_rows(const Args& args, const KeySource& source, const ExecContext& ctx) {
  AttentionRow row(args);
  ColumnWriter writer(args.target);
  Keys keys;
  std::vector<double> values;
  return for_each_row(args.q.size(0), ctx, [&](int64_t t) {
    source.get(t, keys);
    row.load(t, keys);
    values.resize(keys.size());
    row.target(t, args.lse, args.sink, values.data());
    writer.write_keys(t, keys, values);
  });
}

}  // namespace

Result<void> run(const SparseIndexerScoresArgs& args, const ExecContext& ctx) {
  return predict_rows(args, SelectedKeys(args, args.index_k.size(0)), args.predict, ctx);
}

Result<void> run(const DenseIndexerScoresArgs& args, const ExecContext& ctx) {
  return predict_rows(args, MaskedKeys(args, args.index_q.size(0), args.index_k.size(0)),
                      args.predict, ctx);
}

Result<void> run(const SparseAttentionScoresArgs& args, const ExecContext& ctx) {
  return target_rows(args, SelectedKeys(args, args.kv.size(0)), ctx);
}

Result<void> run(const DenseAttentionScoresArgs& args, const ExecContext& ctx) {
  return target_rows(args, MaskedKeys(args, args.q.size(0), args.kv.size(0)), ctx);
}

}  // namespace dsattn::ref
