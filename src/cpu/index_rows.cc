#include "cpu/index_rows.h"

#include <limits>

namespace dsattn::cpu {

void RowKeys::load(const SparseSelection& selection, int64_t rows, int64_t t) {
  int64_t length = selection.topk_idxs.size(1);
  if (selection.topk_length.defined()) {
    const auto& lengths = selection.topk_length;
    length = std::clamp<int64_t>(lengths.ptr<const int32_t>()[t * lengths.stride(0)], 0, length);
  }
  const auto* given = selection.topk_idxs.ptr<const int32_t>() + t * selection.topk_idxs.stride(0);
  n = 0;
  for (int64_t j = 0; j < length; ++j) {
    ids[n] = given[j];
    columns[n] = static_cast<int32_t>(j);
    n += given[j] >= 0 && given[j] < rows ? 1 : 0;
  }
}

void RowKeys::load(const RowMask& mask, int64_t t) {
  const KeyRange range = mask.row(t);
  n = range.visible;
  for (int64_t i = 0; i < n; ++i) ids[i] = columns[i] = static_cast<int32_t>(range.begin + i);
}

void score_row(const AttentionMath<bf16>& math, const TensorView& index_k, const RowKeys& row,
               KeyBlock& block, IndexQuery& query, float* scores) {
  for (int64_t first = 0; first < row.n; first += kKeyBlock) {
    block.gather(math, index_k, row.ids + first, std::min(kKeyBlock, row.n - first));
    query.score(block, scores + first);
  }
}

double softmax_row(const IndexMath& math, const float* scores, int64_t n, float* predict) {
  constexpr float kInf = std::numeric_limits<float>::infinity();
  if (n == 0) return -kInf;
  float max = -kInf;
  for (int64_t i = 0; i < n; ++i) max = scores[i] > max ? scores[i] : max;
  const int64_t padded = round_up(n, 16);
  std::copy_n(scores, n, predict);
  std::fill(predict + n, predict + padded, -kInf);
  const double sum = math.exp_row(predict, padded, max);
  for (int64_t i = 0; i < n; ++i) {
    predict[i] = static_cast<float>(static_cast<double>(predict[i]) / sum);
  }
  return static_cast<double>(max) + std::log(sum);
}

void scatter_row(const RowKeys& row, const float* values, const TensorView& to, int64_t t) {
  float* out = to.ptr<float>() + t * to.stride(0);
  std::fill_n(out, to.size(1), 0.0f);
  for (int64_t i = 0; i < row.n; ++i) out[row.columns[i]] = values[i];
}

void gather_row(const RowKeys& row, const TensorView& from, int64_t t, float* values) {
  const float* in = from.ptr<const float>() + t * from.stride(0);
  for (int64_t i = 0; i < row.n; ++i) values[i] = in[row.columns[i]];
}

}  // namespace dsattn::cpu
