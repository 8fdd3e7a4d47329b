#include "cpu/index_scores.h"

namespace dsattn::cpu {

void KeyBlock::gather(const AttentionMath<bf16>& math, const TensorView& index_k,
                      const int32_t* ids, int64_t n) {
  count = n;
  padded = round_up(n, kPanel);
  gather_rows<bf16>(math, index_k, ids, n, padded, rows, kIndexDim);
  pack_transposed<bf16>(math, rows, padded, kIndexDim, packed);
}

IndexQuery::IndexQuery(const IndexerInputs& inputs, CpuIsa limit, Carver& carver)
    : inputs_(inputs),
      gemm_(gemm_for(limit)),
      math_(index_math(limit)),
      heads_(inputs.index_q.size(1)),
      heads_padded_(round_up(heads_, kDepth)),
      rows_(carver.take<bf16>(heads_padded_ * kIndexDim)),
      weights_(carver.take<float>(heads_padded_)),
      products_(carver.take<float>(heads_padded_ * kKeyBlock)) {}

void IndexQuery::load(int64_t t) {
  const TensorView& w = inputs_.index_w;
  for (int64_t h = 0; h < heads_; ++h) {
    const bf16* from = row_of<const bf16>(inputs_.index_q, t, h);
    std::copy_n(from, kIndexDim, rows_ + h * kIndexDim);
    weights_[h] = w.dtype == DType::kF32 ? *row_of<const float>(w, t, h)
                                         : to_float(*row_of<const bf16>(w, t, h));
  }
  std::fill(rows_ + heads_ * kIndexDim, rows_ + heads_padded_ * kIndexDim, bf16{});
}

void IndexQuery::score(const KeyBlock& block, float* scores) {
  gemm_(heads_padded_, block.padded, kIndexDim, rows_, kIndexDim, block.packed, products_,
        kKeyBlock, false);
  // An infinite query meets the zeros there as NaN, which would reach its own d_index_w.
  for (int64_t h = 0; h < heads_; ++h) {
    std::fill(products_ + h * kKeyBlock + block.count, products_ + h * kKeyBlock + block.padded,
              0.0f);
  }
  math_.weighted_relu(products_, kKeyBlock, weights_, heads_, block.padded, inputs_.sm_scale,
                      scores);
}

}  // namespace dsattn::cpu
