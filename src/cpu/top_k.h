// Streaming selection of a row's k best scores. Scores arrive with ascending ids; equal scores keep
// the smallest ids, so the result is a function of the row. NaN and -inf are never taken.
#pragma once

#include <cstdint>

#include "cpu/attention_common.h"
#include "cpu/index_math.h"

namespace dsattn::cpu {

class TopK {
 public:
  TopK(int64_t k, Carver& carver);

  void clear();

  /// Offers scores[0..n) with ids first_id, first_id + 1, ...
  void add(const IndexMath& math, const float* scores, int64_t n, int64_t first_id);

  /// Writes k ids (+ id_offset) and, if wanted, values: padding -1 and -inf comes last.
  void write(TopKOrder order, int64_t id_offset, int32_t* ids, float* values);

 private:
  // Ascending keys are descending scores, then ascending ids.
  static uint64_t key_of(float score, int64_t id);
  static float score_of(uint64_t key);

  void prune();

  int64_t k_;
  int64_t capacity_;
  int64_t count_ = 0;
  float bound_ = 0;    // only scores above it can still be among the k best
  uint64_t* best_;     // [capacity], ids ascending
  uint64_t* scratch_;  // [capacity]
};

}  // namespace dsattn::cpu
