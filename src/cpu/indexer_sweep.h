// Scores of a block of queries against all keys, key block by key block: each block of keys is
// packed once and meets every query of the block that sees any of it.
#pragma once

#include <algorithm>
#include <cstdint>

#include "base/causal_mask.h"
#include "cpu/index_scores.h"

namespace dsattn::cpu {

class IndexSweep {
 public:
  IndexSweep(const IndexerInputs& inputs, const CausalMask& mask, CpuIsa limit, Carver& carver)
      : inputs_(inputs),
        mask_(mask, inputs.index_q.size(0), inputs.index_k.size(0)),
        math_(attention_math<bf16>(limit)),
        keys_(carver),
        query_(inputs, limit, carver),
        ids_(carver.take<int32_t>(kKeyBlock)),
        scores_(carver.take<float>(kKeyBlock)) {}

  /// Calls visit(t, first_key, count, scores) for the visible keys of queries [begin, end), keys
  /// ascending within a query.
  template <class Visit>
  void run(int64_t begin, int64_t end, const Visit& visit) {
    const int64_t keys = inputs_.index_k.size(0);
    for (int64_t first = 0; first < keys; first += kKeyBlock) {
      const int64_t last = std::min(first + kKeyBlock, keys);
      bool packed = false;
      for (int64_t t = begin; t < end; ++t) {
        const KeyRange range = mask_.row(t);
        const int64_t from = std::max(first, range.begin);
        const int64_t to = std::min(last, range.begin + range.visible);
        if (from >= to) continue;
        if (!packed) pack(first, last);
        packed = true;
        query_.load(t);
        query_.score(keys_, scores_);
        visit(t, from, to - from, scores_ + (from - first));
      }
    }
  }

  const RowMask& mask() const { return mask_; }

 private:
  void pack(int64_t first, int64_t last) {
    for (int64_t i = first; i < last; ++i) ids_[i - first] = static_cast<int32_t>(i);
    keys_.gather(math_, inputs_.index_k, ids_, last - first);
  }

  const IndexerInputs& inputs_;
  RowMask mask_;
  const AttentionMath<bf16>& math_;
  KeyBlock keys_;
  IndexQuery query_;
  int32_t* ids_;
  float* scores_;
};

}  // namespace dsattn::cpu
