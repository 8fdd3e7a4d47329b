// Checks a call against its Schema before anything is written: presence, ranks, dimensions that
// must agree, element types, devices, strides, parameters and host-readable lists.
#pragma once

#include <map>
#include <string_view>
#include <vector>

#include "ops/schema.h"

namespace dsattn {

/// One tensor of a call with its description.
struct BoundTensor {
  TensorSpec spec;
  TensorView view;
};

/// Values of the dimension symbols of a call, e.g. {"Sq": 4, "K": 64}.
using Dims = std::map<std::string_view, int64_t, std::less<>>;

/// Whether the data pointers matter (a call) or not (a workspace query).
enum class DataCheck : uint8_t { kRequired, kIgnored };

/// The checks that the description alone decides. Returns the dimensions on success.
Result<Dims> check_tensors(const std::vector<BoundTensor>& tensors, Backend backend,
                           DataCheck data);

Result<void> check_attention(const AttentionInputs& args);
Result<void> check_indexer(const IndexerInputs& args);
Result<void> check_gradients(const IndexerGradients& args);
Result<void> check_mask(const CausalMask& args, const Dims& dims, DataCheck data);

template <class Args>
std::vector<BoundTensor> bound_tensors(const Args& args) {
  std::vector<BoundTensor> tensors;
  for (const auto& field : Schema<Args>::tensors()) {
    tensors.push_back({field.spec, args.*field.member});
  }
  return tensors;
}

/// Every check of one call.
template <class Args>
Result<void> validate(const Args& args, Backend backend, DataCheck data) {
  Result<Dims> dims = check_tensors(bound_tensors(args), backend, data);
  if (!dims) return tl::unexpected(dims.error());
  Result<void> checked;
  if constexpr (std::is_base_of_v<AttentionInputs, Args>) checked = check_attention(args);
  if (!checked) return checked;
  if constexpr (std::is_base_of_v<IndexerInputs, Args>) checked = check_indexer(args);
  if (!checked) return checked;
  if constexpr (std::is_base_of_v<IndexerGradients, Args>) checked = check_gradients(args);
  if (!checked) return checked;
  if constexpr (std::is_base_of_v<CausalMask, Args>) checked = check_mask(args, *dims, data);
  return checked;
}

}  // namespace dsattn
