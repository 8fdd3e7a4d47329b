#include "cpu/top_k.h"

#include <algorithm>
#include <bit>
#include <limits>

namespace dsattn::cpu {
namespace {

constexpr float kInf = std::numeric_limits<float>::infinity();
constexpr int64_t kGroup = 16;  // scores that one comparison rules out
constexpr uint32_t kSign = 0x80000000u;

}  // namespace

TopK::TopK(int64_t k, Carver& carver)
    : k_(k),
      capacity_(2 * k + 4 * kGroup),
      best_(carver.take<uint64_t>(capacity_)),
      scratch_(carver.take<uint64_t>(capacity_)) {
  clear();
}

void TopK::clear() {
  count_ = 0;
  bound_ = k_ > 0 ? -kInf : kInf;
}

uint64_t TopK::key_of(float score, int64_t id) {
  uint32_t bits = std::bit_cast<uint32_t>(score);
  if (bits == kSign) bits = 0;  // -0 equals +0
  const uint32_t ascending = bits & kSign ? ~bits : bits | kSign;
  return static_cast<uint64_t>(~ascending) << 32 | static_cast<uint64_t>(id);
}

float TopK::score_of(uint64_t key) {
  const auto ascending = ~static_cast<uint32_t>(key >> 32);
  return std::bit_cast<float>(ascending & kSign ? ascending & ~kSign : ~ascending);
}

void TopK::add(const IndexMath& math, const float* scores, int64_t n, int64_t first_id) {
  for (int64_t from = 0; from < n; from += kGroup) {
    const int64_t size = std::min(kGroup, n - from);
    if (size == kGroup && !math.any_above(scores + from, bound_)) continue;
    for (int64_t j = from; j < from + size; ++j) {
      if (scores[j] > bound_) best_[count_++] = key_of(scores[j], first_id + j);
    }
    if (count_ + kGroup > capacity_) prune();
  }
}

// Keeps the k best, in their order. Later scores must beat the worst of them: ids only ascend.
void TopK::prune() {
  if (count_ <= k_) return;
  std::copy_n(best_, count_, scratch_);
  std::nth_element(scratch_, scratch_ + k_ - 1, scratch_ + count_);
  const uint64_t worst = scratch_[k_ - 1];
  const auto end = std::remove_if(best_, best_ + count_, [=](uint64_t key) { return key > worst; });
  count_ = end - best_;
  bound_ = score_of(worst);
}

void TopK::write(TopKOrder order, int64_t id_offset, int32_t* ids, float* values) {
  prune();
  if (order == TopKOrder::kScore) std::sort(best_, best_ + count_);
  for (int64_t i = 0; i < k_; ++i) {
    const bool taken = i < count_;
    ids[i] =
        taken ? static_cast<int32_t>(static_cast<int64_t>(best_[i] & 0xFFFFFFFFu) + id_offset) : -1;
    if (values != nullptr) values[i] = taken ? score_of(best_[i]) : -kInf;
  }
}

}  // namespace dsattn::cpu
