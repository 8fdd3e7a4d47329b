// A problem is one call of one operation as a file: its tensors, and its parameters as metadata
// (contract section 10). Next: run.h executes one, generate.h makes one, verify.h judges a result.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>

#include "base/safetensors.h"

namespace dsattn {

struct Problem {
  std::string op;        ///< e.g. "sparse_attention_forward"
  TensorMap tensors;     ///< by the contract's names
  MetadataMap metadata;  ///< parameters, without `op`

  bool has(std::string_view name) const { return tensors.contains(name); }

  /// The view of a tensor, absent if there is none.
  TensorView view(std::string_view name) const {
    const auto at = tensors.find(name);
    return at == tensors.end() ? TensorView{} : at->second.view();
  }

  /// A metadata value, if there is one.
  std::optional<std::string_view> parameter(std::string_view name) const {
    const auto at = metadata.find(name);
    if (at == metadata.end()) return std::nullopt;
    return at->second;
  }
};

/// Errors: kIo (the file), kInvalidValue (no `op`, or one that does not exist).
Result<Problem> load_problem(const std::filesystem::path& path);
Result<void> save_problem(const std::filesystem::path& path, const Problem& problem);

/// Whether an operation of this name exists; the error lists all names.
Result<void> check_op_name(std::string_view op);

// Strict readers of metadata values: the whole text must be the value. Errors: kInvalidValue.
Result<float> parse_float(std::string_view name, std::string_view text);
Result<int64_t> parse_int(std::string_view name, std::string_view text);
Result<bool> parse_bool(std::string_view name, std::string_view text);

}  // namespace dsattn
