// Reads and writes .safetensors files: 8 bytes of header length (little endian), a JSON header that
// names each tensor's type, shape and byte range, then the data. The reader takes files from
// anybody: every number is checked before it is used, and memory stays within the file's own size.
// Format: https://github.com/huggingface/safetensors#format
#pragma once

#include <cstddef>
#include <filesystem>
#include <map>
#include <span>
#include <string>
#include <string_view>

#include "base/owned_tensor.h"
#include "dsattn/result.h"

namespace dsattn {

/// Headers above this many bytes are refused, as the format's own library does.
inline constexpr uint64_t kMaxHeaderBytes = 100'000'000;

using TensorMap = std::map<std::string, OwnedTensor, std::less<>>;
using MetadataMap = std::map<std::string, std::string, std::less<>>;

struct Safetensors {
  TensorMap tensors;
  MetadataMap metadata;  ///< the header's __metadata__
};

/// Parses a whole file in memory; `origin` names it in messages. Errors: kIo, with the tensor and
/// the rule. BF16, F16, F32, F64 and I32 tensors of up to kMaxRank dimensions; others are refused.
Result<Safetensors> parse_safetensors(std::span<const std::byte> file, std::string_view origin);

/// Reads a regular file. Errors as parse_safetensors, and kIo with the system's reason.
Result<Safetensors> read_safetensors(const std::filesystem::path& path);

/// Writes beside `path`, then renames: a reader sees the old file or the whole new one, and on an
/// error the old file stays. Errors: kIo.
Result<void> write_safetensors(const std::filesystem::path& path, const Safetensors& content);

}  // namespace dsattn
