// The limits are those of compute capability 9.0 and 10.0.
#include "plan/validate.h"

#include <fmt/format.h>

#include <bit>
#include <limits>
#include <optional>
#include <set>

namespace dsattn::plan {
namespace {

constexpr int64_t kMaxGridX = std::numeric_limits<int32_t>::max();
constexpr int64_t kMaxGridYZ = 65535;
constexpr int64_t kMaxThreads = 1024;
constexpr int64_t kMaxBlockZ = 64;
constexpr int64_t kMaxCluster = 16;
constexpr int64_t kMaxSharedBytes = 227 * 1024;
constexpr int64_t kMaxRegisters = 255;
constexpr size_t kMaxMapRank = 5;
constexpr int64_t kMaxBox = 256;

using Complaint = std::optional<std::string>;  // nothing: the rule is kept

Complaint check_ref(const LaunchPlan& plan, const BufferRef& ref, int64_t bytes) {
  if (ref.buffer < 0 || static_cast<size_t>(ref.buffer) >= plan.buffers.size()) {
    return fmt::format("buffer {} does not exist, the plan has {}", ref.buffer,
                       plan.buffers.size());
  }
  const Buffer& buffer = plan.buffers[static_cast<size_t>(ref.buffer)];
  const int64_t size = buffer.bytes();
  if (bytes < 0 || ref.offset_bytes < 0 || ref.offset_bytes > size ||
      bytes > size - ref.offset_bytes) {
    return fmt::format("{} bytes at offset {} leave buffer '{}' of {} bytes", bytes,
                       ref.offset_bytes, buffer.name, size);
  }
  return {};
}

Complaint check_map(const LaunchPlan& plan, const TensorMap& map) {
  const size_t rank = map.shape.size();
  if (rank < 1 || rank > kMaxMapRank || map.strides_bytes.size() != rank - 1 ||
      map.box.size() != rank ||
      (!map.element_strides.empty() && map.element_strides.size() != rank)) {
    return fmt::format(
        "a tensor map has {} extents, {} strides, {} box sizes; expected r, r - 1 "
        "and r with r from 1 to {}",
        rank, map.strides_bytes.size(), map.box.size(), kMaxMapRank);
  }
  int64_t last_byte = (map.shape[0] - 1) * size_bytes(map.type);
  for (size_t i = 0; i < rank; ++i) {
    if (map.shape[i] < 1 || map.box[i] < 1 || map.box[i] > kMaxBox) {
      return fmt::format(
          "dimension {} of a tensor map has extent {} and box {}, expected extent "
          ">= 1 and box from 1 to {}",
          i, map.shape[i], map.box[i], kMaxBox);
    }
    if (i == 0) continue;
    if (map.strides_bytes[i - 1] % 16 != 0 || map.strides_bytes[i - 1] < 0) {
      return fmt::format("stride {} of a tensor map is {} bytes, expected a multiple of 16", i - 1,
                         map.strides_bytes[i - 1]);
    }
    last_byte += (map.shape[i] - 1) * map.strides_bytes[i - 1];
  }
  return check_ref(plan, map.base, last_byte + size_bytes(map.type));
}

Complaint check_arg(const LaunchPlan& plan, const Arg& arg) {
  if (const auto* ref = std::get_if<BufferRef>(&arg.value)) return check_ref(plan, *ref, 0);
  if (const auto* map = std::get_if<TensorMap>(&arg.value)) return check_map(plan, *map);
  if (const auto* bytes = std::get_if<Bytes>(&arg.value)) {
    if (bytes->alignment < 1 || !std::has_single_bit(static_cast<uint64_t>(bytes->alignment))) {
      return fmt::format("alignment {} is not a power of two", bytes->alignment);
    }
  }
  if (const auto* aggregate = std::get_if<Struct>(&arg.value)) {
    if (aggregate->members.empty()) return "a struct argument has no member";
    for (const Arg& member : aggregate->members) {
      if (auto complaint = check_arg(plan, member)) return complaint;
    }
  }
  return {};
}

Complaint check_kernel(const LaunchPlan& plan, const KernelNode& kernel) {
  const auto& [gx, gy, gz] = kernel.grid;
  const auto& [bx, by, bz] = kernel.block;
  const auto& [cx, cy, cz] = kernel.cluster;
  if (kernel.module.empty() || kernel.entry.empty()) return "it names no module or no entry";
  if (gx < 1 || gy < 1 || gz < 1 || gx > kMaxGridX || gy > kMaxGridYZ || gz > kMaxGridYZ) {
    return fmt::format("grid ({}, {}, {}), allowed (1..{}, 1..{}, 1..{})", gx, gy, gz, kMaxGridX,
                       kMaxGridYZ, kMaxGridYZ);
  }
  if (bx < 1 || by < 1 || bz < 1 || bx > kMaxThreads || by > kMaxThreads || bz > kMaxBlockZ ||
      bx * by * bz > kMaxThreads) {
    return fmt::format("block ({}, {}, {}), allowed at most {} threads", bx, by, bz, kMaxThreads);
  }
  if (cx < 1 || cy < 1 || cz < 1 || cx > kMaxCluster || cy > kMaxCluster || cz > kMaxCluster ||
      cx * cy * cz > kMaxCluster || gx % cx != 0 || gy % cy != 0 || gz % cz != 0) {
    return fmt::format(
        "cluster ({}, {}, {}) of grid ({}, {}, {}), allowed at most {} blocks, "
        "dividing the grid",
        cx, cy, cz, gx, gy, gz, kMaxCluster);
  }
  if (kernel.shared_bytes < 0 || kernel.shared_bytes > kMaxSharedBytes) {
    return fmt::format("{} bytes of shared memory, allowed 0 to {}", kernel.shared_bytes,
                       kMaxSharedBytes);
  }
  if (kernel.registers < 0 || kernel.registers > kMaxRegisters) {
    return fmt::format("{} registers, allowed 0 to {}", kernel.registers, kMaxRegisters);
  }
  for (const Arg& arg : kernel.args) {
    if (auto complaint = check_arg(plan, arg)) return complaint;
  }
  return {};
}

Complaint check_node(const LaunchPlan& plan, size_t index) {
  const Node& node = plan.nodes[index];
  for (int dependency : node.after) {
    if (dependency < 0 || static_cast<size_t>(dependency) >= index) {
      return fmt::format("it waits for node {}, which is not an earlier one", dependency);
    }
  }
  if (const auto* memset = std::get_if<MemsetNode>(&node.work)) {
    return check_ref(plan, memset->target, memset->bytes);
  }
  return check_kernel(plan, std::get<KernelNode>(node.work));
}

Complaint check_buffers(const LaunchPlan& plan) {
  std::set<std::string_view> names;
  for (const Buffer& buffer : plan.buffers) {
    if (buffer.name.empty() || !names.insert(buffer.name).second) {
      return fmt::format("the buffer name '{}' is empty or used twice", buffer.name);
    }
    for (int64_t extent : buffer.shape) {
      if (extent < 0) return fmt::format("buffer '{}' has extent {}", buffer.name, extent);
    }
  }
  return {};
}

}  // namespace

Result<void> validate(const LaunchPlan& plan) {
  if (auto complaint = check_buffers(plan)) {
    return fail(ErrorCode::kInvalidValue, fmt::format("launch plan: {}", *complaint));
  }
  for (size_t i = 0; i < plan.nodes.size(); ++i) {
    if (auto complaint = check_node(plan, i)) {
      return fail(ErrorCode::kInvalidValue, fmt::format("launch plan, node {}: {}", i, *complaint));
    }
  }
  return {};
}

}  // namespace dsattn::plan
