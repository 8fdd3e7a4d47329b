// Indexer scores of one query against a block of keys: the one routine behind every operation that
// needs them, so that a score's bits depend on its operands alone.
//
//   S[h, key]  = <index_q[t, h], index_k[key]>              a matrix product per (query, key block)
//   score[key] = sm_scale * sum_h relu(S[h, key]) w[t, h]   heads ascending, keys along the lanes
#pragma once

#include <cstdint>

#include "cpu/attention_common.h"
#include "cpu/index_math.h"

namespace dsattn::cpu {

inline constexpr int64_t kIndexDim = 128;
inline constexpr int64_t kKeyBlock = 256;  ///< keys packed at a time

/// A block of key rows as the products need it. Rows past the last are zeros, never loaded.
struct KeyBlock {
  bf16* rows;      ///< [kKeyBlock, kIndexDim]
  bf16* packed;    ///< B operand [kIndexDim, padded keys]
  int64_t count;   ///< keys
  int64_t padded;  ///< keys rounded up to kPanel

  explicit KeyBlock(Carver& carver)
      : rows(carver.take<bf16>(kKeyBlock * kIndexDim)),
        packed(carver.take<bf16>(kKeyBlock * kIndexDim)),
        count(0),
        padded(0) {}

  /// Takes n <= kKeyBlock rows of index_k by their ids.
  void gather(const AttentionMath<bf16>& math, const TensorView& index_k, const int32_t* ids,
              int64_t n);
};

/// One query's heads, and its products and scores.
class IndexQuery {
 public:
  IndexQuery(const IndexerInputs& inputs, CpuIsa limit, Carver& carver);

  void load(int64_t t);

  /// S and the scores of a block: scores[0..block.padded), where S is 0 past the last key.
  void score(const KeyBlock& block, float* scores);

  int64_t heads() const { return heads_; }
  int64_t heads_padded() const { return heads_padded_; }
  const bf16* rows() const { return rows_; }           ///< [heads_padded, kIndexDim]
  const float* weights() const { return weights_; }    ///< [heads]
  const float* products() const { return products_; }  ///< [heads_padded, kKeyBlock]

 private:
  const IndexerInputs& inputs_;
  const Gemm& gemm_;
  const IndexMath& math_;
  int64_t heads_;
  int64_t heads_padded_;
  bf16* rows_;
  float* weights_;
  float* products_;
};

}  // namespace dsattn::cpu
