// A small seeded generator whose numbers are the same with every standard library.
#pragma once

#include <cmath>
#include <cstdint>

namespace dsattn::demo {

class Random {
 public:
  explicit Random(uint64_t seed) : state_(seed) {}

  /// splitmix64.
  uint64_t bits() {
    state_ += 0x9E3779B97F4A7C15u;
    uint64_t x = state_;
    x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9u;
    x = (x ^ (x >> 27)) * 0x94D049BB133111EBu;
    return x ^ (x >> 31);
  }

  /// In [0, limit); limit is far below 2^32, so the bias of the remainder does not matter.
  int64_t below(int64_t limit) {
    return static_cast<int64_t>(bits() % static_cast<uint64_t>(limit));
  }

  /// In (0, 1).
  double uniform() { return (static_cast<double>(bits() >> 11) + 0.5) * 0x1p-53; }

  /// Standard normal.
  float normal() {
    const double radius = std::sqrt(-2.0 * std::log(uniform()));
    return static_cast<float>(radius * std::cos(6.283185307179586 * uniform()));
  }

 private:
  uint64_t state_;
};

}  // namespace dsattn::demo
