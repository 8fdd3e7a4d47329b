// The keys of one query, in one form for sparse and dense operations: which row of kv or index_k,
// and which column of the (Sq, K) or (Sq, Skv) tensors belongs to it. Everything downstream sees
// only keys that exist, so a masked key cannot be touched by mistake.
#pragma once

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include "base/causal_mask.h"
#include "dsattn/ops.h"
#include "ref/access.h"

namespace dsattn::ref {

struct Key {
  int64_t column;  ///< slot j (sparse) or key row s (dense)
  int64_t row;     ///< row of kv or index_k
};
using Keys = std::vector<Key>;

/// The valid slots of each query. Duplicates stay: they count per slot.
class SelectedKeys {
 public:
  SelectedKeys(const SparseSelection& selection, int64_t kv_rows)
      : selection_(selection), kv_rows_(kv_rows) {}

  void get(int64_t t, Keys& keys) const {
    keys.clear();
    int64_t length = selection_.topk_idxs.size(1);
    if (selection_.topk_length.defined()) {
      length = std::clamp<int64_t>(read_int(selection_.topk_length, t), 0, length);
    }
    for (int64_t j = 0; j < length; ++j) {
      const int64_t id = read_int(selection_.topk_idxs, t, j);
      if (id >= 0 && id < kv_rows_) keys.push_back({j, id});
    }
  }

 private:
  SparseSelection selection_;
  int64_t kv_rows_;
};

/// All keys that the causal mask shows to each query.
class MaskedKeys {
 public:
  MaskedKeys(const CausalMask& mask, int64_t queries, int64_t kv_rows)
      : mask_(mask, queries, kv_rows) {}

  void get(int64_t t, Keys& keys) const {
    keys.clear();
    const KeyRange range = mask_.row(t);
    for (int64_t s = range.begin; s < range.begin + range.visible; ++s) keys.push_back({s, s});
  }

 private:
  RowMask mask_;
};

}  // namespace dsattn::ref
