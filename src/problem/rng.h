// Random numbers that are the same on every machine: xoshiro256** seeded by splitmix64, and integer
// arithmetic alone for the normal distribution, because log and cos differ between C libraries.
// Source: https://prng.di.unimi.it/
#pragma once

#include <array>
#include <bit>
#include <cstdint>

namespace dsattn {

class Rng {
 public:
  explicit Rng(uint64_t seed) {
    for (uint64_t& word : state_) {  // splitmix64
      seed += 0x9E3779B97F4A7C15u;
      uint64_t z = seed;
      z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
      z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
      word = z ^ (z >> 31);
    }
  }

  uint64_t bits() {
    const uint64_t result = std::rotl(state_[1] * 5, 7) * 9;
    const uint64_t t = state_[1] << 17;
    state_[2] ^= state_[0];
    state_[3] ^= state_[1];
    state_[1] ^= state_[2];
    state_[0] ^= state_[3];
    state_[2] ^= t;
    state_[3] = std::rotl(state_[3], 45);
    return result;
  }

  /// Uniform in [0, n), n >= 1, n < 2^32. The bias of n / 2^32 does not matter for test data.
  int64_t below(int64_t n) {
    return static_cast<int64_t>(((bits() >> 32) * static_cast<uint64_t>(n)) >> 32);
  }

  /// Uniform in [low, high], both included.
  int64_t between(int64_t low, int64_t high) { return low + below(high - low + 1); }

  bool chance(double probability) { return uniform() < probability; }

  /// Uniform in [0, 1), a multiple of 2^-53.
  double uniform() { return static_cast<double>(bits() >> 11) * 0x1p-53; }

  /// Mean 0, variance 1, within +-6: the sum of twelve 16-bit uniforms, exact in integers.
  double normal() {
    int64_t sum = 0;
    for (int draw = 0; draw < 3; ++draw) {
      for (uint64_t word = bits(); word != 0; word >>= 16) {
        sum += static_cast<int64_t>(word & 0xFFFFu);
      }
    }
    constexpr int64_t kMean = 6 * 65535;
    return static_cast<double>(sum - kMean) * 0x1p-16;
  }

 private:
  std::array<uint64_t, 4> state_{};
};

}  // namespace dsattn
