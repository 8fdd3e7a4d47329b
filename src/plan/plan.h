// LaunchPlan: everything needed to run kernels, as plain data. A GPU (src/gpu/host) and a simulator
// read the same plan. No CUDA headers, no addresses: buffers are numbered, and whoever runs the
// plan says where each one lies. Next: validate.h, pack.h (bytes of an argument), json.h.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "dsattn/tensor.h"

namespace dsattn::plan {

/// Elements as kernels see them; a superset of DType (raw workspaces, fp8 tensor maps are kU8).
enum class ElementType : uint8_t { kU8, kBF16, kF16, kF32, kF64, kI32 };

/// "u8", "bf16", "f16", "f32", "f64", "i32": the names of the launch description.
std::string_view to_string(ElementType type);
int64_t size_bytes(ElementType type);
/// DType::kNone becomes kU8.
ElementType element_type(DType dtype);

/// What a buffer holds before the first node.
enum class BufferInit : uint8_t { kPoison, kZeros };

/// One allocation. The extent is in elements; a strided tensor counts up to its last element.
struct Buffer {
  std::string name;
  ElementType type = ElementType::kU8;
  std::vector<int64_t> shape;
  BufferInit init = BufferInit::kPoison;

  int64_t bytes() const;
};

/// An address: the start of a buffer plus bytes.
struct BufferRef {
  int buffer = 0;  ///< index into LaunchPlan::buffers
  int64_t offset_bytes = 0;
};

enum class Swizzle : uint8_t { kNone, k32B, k64B, k128B };
enum class OutOfBounds : uint8_t { kZero, kNan };

/// A tensor map before encoding. Dimensions are listed innermost first, as the driver's encoder
/// takes them; strides_bytes has one entry less (the innermost is contiguous).
struct TensorMap {
  BufferRef base;
  ElementType type = ElementType::kBF16;
  std::vector<int64_t> shape;
  std::vector<int64_t> strides_bytes;
  std::vector<int64_t> box;
  std::vector<int64_t> element_strides{};  ///< empty: all 1
  Swizzle swizzle = Swizzle::kNone;
  OutOfBounds out_of_bounds = OutOfBounds::kZero;
};

/// Bytes passed as they are.
struct Bytes {
  std::vector<std::byte> value;
  int64_t alignment = 1;
};

struct Arg;

/// A struct passed by value, laid out by C's rules.
struct Struct {
  std::vector<Arg> members;
};

/// One kernel argument (or struct member) with its exact type.
struct Arg {
  using Value = std::variant<BufferRef, int32_t, uint32_t, int64_t, uint64_t, float, Bytes, Struct,
                             TensorMap>;
  Value value;
};

/// Writes `value` to every byte of a range.
struct MemsetNode {
  BufferRef target;
  int64_t bytes = 0;
  uint8_t value = 0;
};

struct KernelNode {
  std::string module;  ///< which compiled file, e.g. "cast"
  std::string entry;   ///< the kernel's name in it
  std::array<int64_t, 3> grid{1, 1, 1};
  std::array<int64_t, 3> block{1, 1, 1};
  std::array<int64_t, 3> cluster{1, 1, 1};
  int64_t shared_bytes = 0;   ///< dynamic shared memory
  int64_t registers = 0;      ///< per thread; 0: what the compiled kernel says
  bool programmatic = false;  ///< programmatic dependent launch
  std::vector<Arg> args;
};

/// A step and the earlier steps it must wait for (indices into LaunchPlan::nodes).
struct Node {
  std::variant<MemsetNode, KernelNode> work;
  std::vector<int> after;
};

struct LaunchPlan {
  std::string arch;  ///< "sm_90a" or "sm_100a"
  std::vector<Buffer> buffers;
  std::vector<Node> nodes;  ///< in an order that respects `after`

  /// Appends a buffer and returns its index.
  int add(Buffer buffer);
  /// Appends a node that waits for all of `after`, and returns its index.
  int add(std::variant<MemsetNode, KernelNode> work, std::vector<int> after = {});
};

}  // namespace dsattn::plan
