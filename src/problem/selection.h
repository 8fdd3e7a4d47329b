// The ids of a sparse selection, row by row, without a (Sq, Skv) structure.
#pragma once

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <span>
#include <vector>

#include "problem/generate.h"
#include "problem/rng.h"

namespace dsattn {

class SelectionMaker {
 public:
  SelectionMaker(Selection kind, int64_t queries, int64_t keys, int64_t top_k, Rng& rng)
      : kind_(kind), queries_(queries), keys_(keys), rng_(rng) {
    chosen_ = std::min(keys, top_k);
    if (kind == Selection::kWindowed) return;
    order_.resize(static_cast<size_t>(keys));
    std::iota(order_.begin(), order_.end(), 0);
  }

  /// The ids of query t; rows have to be asked for in order.
  void row(int64_t t, std::span<int32_t> ids) {
    std::fill(ids.begin(), ids.end(), -1);
    if (kind_ == Selection::kWindowed) return window(t, ids);
    constexpr double kKept = 0.87;
    for (int64_t j = 0; j < chosen_; ++j) {
      if (kind_ == Selection::kHighOverlap && t > 0 && rng_.chance(kKept)) continue;
      // order_[0, chosen_) is the row. Under kRandom this is a Fisher-Yates shuffle's step; under
      // kHighOverlap the new id comes from outside the row, so that it is new.
      const int64_t low = kind_ == Selection::kRandom || t == 0 ? j : std::min(chosen_, keys_ - 1);
      std::swap(order_[static_cast<size_t>(j)],
                order_[static_cast<size_t>(rng_.between(low, keys_ - 1))]);
    }
    std::copy_n(order_.begin(), chosen_, ids.begin());
  }

 private:
  void window(int64_t t, std::span<int32_t> ids) const {
    const int64_t end = (t + 1) * keys_ / queries_;
    const int64_t begin = std::max<int64_t>(0, end - static_cast<int64_t>(ids.size()));
    for (int64_t id = begin; id < end; ++id) {
      ids[static_cast<size_t>(id - begin)] = static_cast<int32_t>(id);
    }
  }

  Selection kind_;
  int64_t queries_;
  int64_t keys_;
  int64_t chosen_ = 0;
  Rng& rng_;
  std::vector<int32_t> order_;
};

}  // namespace dsattn
