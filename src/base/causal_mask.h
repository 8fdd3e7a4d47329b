// Which keys a query may see: the causal mask with compression ratio, offsets and packed segments
// (contract section 3). Reads the host-side lists of a validated CausalMask in place; values out of
// range are clamped, so that no list can make a reader leave the tensors.
#pragma once

#include <algorithm>
#include <cstdint>

#include "dsattn/ops.h"

namespace dsattn {

/// The keys that one query sees: global rows [begin, begin + visible).
struct KeyRange {
  int64_t begin = 0;         ///< first key row of the query's segment
  int64_t visible = 0;       ///< how many of its keys the query sees
  int64_t segment_keys = 0;  ///< how many keys the segment has
};

/// Answers by row. Holds views only: cheap to copy, safe to share between threads.
class RowMask {
 public:
  RowMask(const CausalMask& mask, int64_t queries, int64_t keys)
      : mask_(mask), queries_(queries), keys_(keys) {}

  /// What query `t` (global row) sees. A query that belongs to no segment sees nothing.
  KeyRange row(int64_t t) const {
    const int64_t b = segment_of(t);
    if (b < 0) return {};
    const int64_t first_query = packed() ? query_start(b) : 0;
    const int64_t begin = packed() ? key_start(b) : 0;
    const int64_t end = packed() ? key_start(b + 1) : keys_;
    const int64_t offset = mask_.q_offsets.defined() ? entry(mask_.q_offsets, b) : 0;
    KeyRange range;
    range.begin = begin;
    range.segment_keys = std::max<int64_t>(end - begin, 0);
    range.visible =
        std::clamp<int64_t>((offset + (t - first_query) + 1) / mask_.ratio, 0, range.segment_keys);
    return range;
  }

  /// Segments, empty ones included.
  int64_t segments() const { return packed() ? mask_.cu_seqlens_q.size(0) - 1 : 1; }

 private:
  static int64_t entry(const TensorView& list, int64_t i) {
    return list.ptr<const int32_t>()[i * list.stride(0)];
  }
  bool packed() const { return mask_.cu_seqlens_q.defined(); }
  int64_t query_start(int64_t b) const {
    return std::clamp<int64_t>(entry(mask_.cu_seqlens_q, b), 0, queries_);
  }
  int64_t key_start(int64_t b) const {
    return std::clamp<int64_t>(entry(mask_.cu_seqlens_k, b), 0, keys_);
  }

  /// The last segment that starts at or before t (so empty ones are passed over); -1 if none.
  int64_t segment_of(int64_t t) const {
    if (!packed()) return 0;
    int64_t low = 0;
    int64_t high = segments();  // the answer is in [low - 1, high - 1]
    while (low < high) {
      const int64_t middle = low + (high - low) / 2;
      if (query_start(middle) <= t) {
        low = middle + 1;
      } else {
        high = middle;
      }
    }
    const int64_t b = low - 1;
    return b >= 0 && t < query_start(b + 1) ? b : -1;
  }

  CausalMask mask_;
  int64_t queries_;
  int64_t keys_;
};

}  // namespace dsattn
