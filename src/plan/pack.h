// The bytes of a kernel argument, as the C ABI of the device lays them out.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "dsattn/result.h"
#include "plan/plan.h"

namespace dsattn::plan {

inline constexpr int64_t kTensorMapBytes = 128;
inline constexpr int64_t kTensorMapAlignment = 128;  // as cuda.h 13 declares it

/// Writes the kTensorMapBytes bytes of an encoded map; `base` is the address of its first element.
using TensorMapEncoder =
    std::function<Result<void>(const TensorMap& map, uint64_t base, std::byte* encoded)>;

struct Layout {
  int64_t bytes = 0;
  int64_t alignment = 1;
};

/// Size and alignment of an argument.
Layout layout_of(const Arg& arg);

/// The argument's bytes. addresses[i] is where buffer i of the (valid) plan lies.
Result<std::vector<std::byte>> pack(const Arg& arg, std::span<const uint64_t> addresses,
                                    const TensorMapEncoder& encode);

}  // namespace dsattn::plan
