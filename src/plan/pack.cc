// Both the host and the device are little-endian with natural alignment, so a scalar is copied.
#include "plan/pack.h"

#include <algorithm>
#include <cstring>

namespace dsattn::plan {
namespace {

int64_t round_up(int64_t value, int64_t unit) { return (value + unit - 1) / unit * unit; }

class Packer {
 public:
  Packer(std::span<const uint64_t> addresses, const TensorMapEncoder& encode)
      : addresses_(addresses), encode_(encode) {}

  Result<void> write(const Arg& arg, std::byte* to) const {
    return std::visit([&](const auto& value) { return put(value, to); }, arg.value);
  }

 private:
  template <class Scalar>
  Result<void> put(const Scalar& value, std::byte* to) const {
    std::memcpy(to, &value, sizeof value);
    return {};
  }
  Result<void> put(const BufferRef& ref, std::byte* to) const { return put(address(ref), to); }
  Result<void> put(const Bytes& bytes, std::byte* to) const {
    std::copy(bytes.value.begin(), bytes.value.end(), to);
    return {};
  }
  Result<void> put(const TensorMap& map, std::byte* to) const {
    return encode_(map, address(map.base), to);
  }
  Result<void> put(const Struct& aggregate, std::byte* to) const {
    int64_t offset = 0;
    for (const Arg& member : aggregate.members) {
      const Layout layout = layout_of(member);
      offset = round_up(offset, layout.alignment);
      if (auto written = write(member, to + offset); !written) return written;
      offset += layout.bytes;
    }
    return {};
  }

  uint64_t address(const BufferRef& ref) const {
    return addresses_[static_cast<size_t>(ref.buffer)] + static_cast<uint64_t>(ref.offset_bytes);
  }

  std::span<const uint64_t> addresses_;
  const TensorMapEncoder& encode_;
};

}  // namespace

Layout layout_of(const Arg& arg) {
  if (const auto* bytes = std::get_if<Bytes>(&arg.value)) {
    return {static_cast<int64_t>(bytes->value.size()), bytes->alignment};
  }
  if (std::holds_alternative<TensorMap>(arg.value)) return {kTensorMapBytes, kTensorMapAlignment};
  if (const auto* aggregate = std::get_if<Struct>(&arg.value)) {
    Layout all;
    for (const Arg& member : aggregate->members) {
      const Layout layout = layout_of(member);
      all.bytes = round_up(all.bytes, layout.alignment) + layout.bytes;
      all.alignment = std::max(all.alignment, layout.alignment);
    }
    all.bytes = round_up(all.bytes, all.alignment);
    return all;
  }
  const bool narrow = std::holds_alternative<int32_t>(arg.value) ||
                      std::holds_alternative<uint32_t>(arg.value) ||
                      std::holds_alternative<float>(arg.value);
  return narrow ? Layout{4, 4} : Layout{8, 8};
}

Result<std::vector<std::byte>> pack(const Arg& arg, std::span<const uint64_t> addresses,
                                    const TensorMapEncoder& encode) {
  std::vector<std::byte> bytes(static_cast<size_t>(layout_of(arg).bytes));
  if (auto written = Packer(addresses, encode).write(arg, bytes.data()); !written) {
    return tl::unexpected(written.error());
  }
  return bytes;
}

}  // namespace dsattn::plan
