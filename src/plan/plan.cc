// Names, sizes and the two builders of a LaunchPlan.
#include "plan/plan.h"

#include <utility>

namespace dsattn::plan {

std::string_view to_string(ElementType type) {
  switch (type) {
    case ElementType::kU8:
      return "u8";
    case ElementType::kBF16:
      return "bf16";
    case ElementType::kF16:
      return "f16";
    case ElementType::kF32:
      return "f32";
    case ElementType::kF64:
      return "f64";
    case ElementType::kI32:
      return "i32";
  }
  return "unknown";
}

int64_t size_bytes(ElementType type) {
  switch (type) {
    case ElementType::kU8:
      return 1;
    case ElementType::kBF16:
    case ElementType::kF16:
      return 2;
    case ElementType::kF32:
    case ElementType::kI32:
      return 4;
    case ElementType::kF64:
      return 8;
  }
  return 0;
}

ElementType element_type(DType dtype) {
  switch (dtype) {
    case DType::kBF16:
      return ElementType::kBF16;
    case DType::kF16:
      return ElementType::kF16;
    case DType::kF32:
      return ElementType::kF32;
    case DType::kF64:
      return ElementType::kF64;
    case DType::kI32:
      return ElementType::kI32;
    case DType::kNone:
      break;
  }
  return ElementType::kU8;
}

int64_t Buffer::bytes() const {
  int64_t total = size_bytes(type);
  for (int64_t extent : shape) total *= extent;
  return total;
}

int LaunchPlan::add(Buffer buffer) {
  buffers.push_back(std::move(buffer));
  return static_cast<int>(buffers.size()) - 1;
}

int LaunchPlan::add(std::variant<MemsetNode, KernelNode> work, std::vector<int> after) {
  nodes.push_back({std::move(work), std::move(after)});
  return static_cast<int>(nodes.size()) - 1;
}

}  // namespace dsattn::plan
