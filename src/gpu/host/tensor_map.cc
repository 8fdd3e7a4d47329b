// Numbers below are the enumerators of CUtensorMapDataType, CUtensorMapSwizzle and so on.
#include "gpu/host/tensor_map.h"

#include <array>
#include <cstring>

#include "gpu/host/driver.h"

namespace dsattn::gpu {
namespace {

constexpr size_t kMaxRank = 5;
constexpr int kInterleaveNone = 0;
constexpr int kL2Promotion256B = 3;

int data_type(plan::ElementType type) {
  switch (type) {
    case plan::ElementType::kU8:
      return 0;
    case plan::ElementType::kI32:
      return 3;
    case plan::ElementType::kF16:
      return 6;
    case plan::ElementType::kF32:
      return 7;
    case plan::ElementType::kF64:
      return 8;
    case plan::ElementType::kBF16:
      return 9;
  }
  return 0;
}

}  // namespace

Result<void> encode_tensor_map(const driver::Api& api, const plan::TensorMap& map, uint64_t base,
                               std::byte* encoded) {
  std::array<uint64_t, kMaxRank> shape{};
  std::array<uint64_t, kMaxRank> strides{};
  std::array<unsigned, kMaxRank> box{};
  std::array<unsigned, kMaxRank> element_strides{1, 1, 1, 1, 1};
  for (size_t i = 0; i < map.shape.size(); ++i) {
    shape[i] = static_cast<uint64_t>(map.shape[i]);
    box[i] = static_cast<unsigned>(map.box[i]);
    if (!map.element_strides.empty()) {
      element_strides[i] = static_cast<unsigned>(map.element_strides[i]);
    }
    if (i > 0) strides[i - 1] = static_cast<uint64_t>(map.strides_bytes[i - 1]);
  }
  driver::TensorMapImage image{};
  const driver::Status status =
      api.encode_tiled(&image, data_type(map.type), static_cast<unsigned>(map.shape.size()),
                       reinterpret_cast<void*>(base), shape.data(), strides.data(), box.data(),
                       element_strides.data(), kInterleaveNone, static_cast<int>(map.swizzle),
                       kL2Promotion256B, map.out_of_bounds == plan::OutOfBounds::kNan ? 1 : 0);
  if (auto done = check(api, status, "cuTensorMapEncodeTiled"); !done) return done;
  std::memcpy(encoded, &image, sizeof image);
  return {};
}

}  // namespace dsattn::gpu
