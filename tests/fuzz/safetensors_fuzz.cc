// libFuzzer target: any bytes either fail to parse, with a reason, or give tensors whose memory
// agrees with their views and is no larger than the file.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <span>

#include "base/safetensors.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const auto file = dsattn::parse_safetensors(std::as_bytes(std::span(data, size)), "fuzz");
  if (!file) {
    if (file.error().code != dsattn::ErrorCode::kIo || file.error().message.empty()) std::abort();
    return 0;
  }
  size_t total = 0;
  size_t sum = 0;
  for (const auto& [name, tensor] : file->tensors) {
    const auto expected = static_cast<size_t>(tensor.numel() * dsattn::size_bytes(tensor.dtype()));
    if (tensor.bytes().size() != expected) std::abort();
    for (std::byte byte : tensor.bytes()) sum += std::to_integer<size_t>(byte);
    total += expected;
  }
  if (total > size || sum > 255 * total) std::abort();
  return 0;
}
