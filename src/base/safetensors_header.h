// The JSON header of a .safetensors file, parsed event by event so that hostile nesting, duplicate
// names and huge lists are refused where they appear instead of being built up in memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/safetensors.h"

namespace dsattn {

struct HeaderEntry {
  std::string name;
  DType dtype = DType::kNone;
  std::vector<int64_t> shape;
  uint64_t begin = 0;  ///< first byte, counted from the start of the data
  uint64_t end = 0;    ///< one past the last
};

struct SafetensorsHeader {
  std::vector<HeaderEntry> entries;  ///< by begin; together they cover the data without a gap
  MetadataMap metadata;
};

Result<SafetensorsHeader> parse_safetensors_header(std::span<const std::byte> text,
                                                   uint64_t data_bytes, std::string_view origin);

}  // namespace dsattn
