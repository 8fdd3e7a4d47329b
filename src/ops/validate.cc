#include "ops/validate.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <string>

namespace dsattn {
namespace {

constexpr int64_t kMaxTopK = 65536;

std::vector<std::string_view> split_dims(std::string_view dims) {
  std::vector<std::string_view> parts;
  while (true) {
    const size_t comma = dims.find(',');
    parts.push_back(dims.substr(0, comma));
    if (comma == std::string_view::npos) return parts;
    dims.remove_prefix(comma + 1);
  }
}

std::string pretty_dims(std::string_view dims) {
  if (dims == "scalar") return "() or (1)";
  return fmt::format("({})", fmt::join(split_dims(dims), ", "));
}

/// The dimensions met so far, and which tensor gave each its value.
struct DimBinder {
  Dims values;
  std::map<std::string_view, std::string_view, std::less<>> givers;

  Result<void> bind(std::string_view symbol, int64_t extent, const TensorSpec& spec) {
    if (symbol.find_first_not_of("0123456789") == std::string_view::npos) {
      int64_t expected = 0;
      std::from_chars(symbol.data(), symbol.data() + symbol.size(), expected);
      if (extent == expected) return {};
      return fail(ErrorCode::kInvalidShape,
                  fmt::format("{} has {} in the place of {}: it has to be {}, expected {}",
                              spec.name, extent, symbol, symbol, pretty_dims(spec.dims)));
    }
    if (symbol == "B+1") {
      if (extent < 1) {
        return fail(ErrorCode::kInvalidShape,
                    fmt::format("{} has {} entries, expected B+1 >= 1", spec.name, extent));
      }
      symbol = "B";
      extent -= 1;
    }
    const auto [at, fresh] = values.emplace(symbol, extent);
    if (fresh) {
      givers.emplace(symbol, spec.name);
      return {};
    }
    if (at->second == extent) return {};
    return fail(ErrorCode::kInvalidShape,
                fmt::format("{} has {}={}, but {} has {}={}; expected {} {}", spec.name, symbol,
                            extent, givers.find(symbol)->second, symbol, at->second, spec.name,
                            pretty_dims(spec.dims)));
  }
};

Result<void> check_shape(const BoundTensor& tensor, DimBinder& dims) {
  const TensorView& view = tensor.view;
  const TensorSpec& spec = tensor.spec;
  if (spec.dims == "scalar") {
    if (view.rank == 0 || (view.rank == 1 && view.size(0) == 1)) return {};
    return fail(ErrorCode::kInvalidShape,
                fmt::format("{} is {}, expected () or (1)", spec.name, to_string(view)));
  }
  const auto symbols = split_dims(spec.dims);
  if (view.rank != static_cast<int>(symbols.size())) {
    return fail(ErrorCode::kInvalidShape,
                fmt::format("{} has {} dimension{}, expected {}", spec.name, view.rank,
                            view.rank == 1 ? "" : "s", pretty_dims(spec.dims)));
  }
  for (int i = 0; i < view.rank; ++i) {
    if (view.size(i) < 0) {
      return fail(ErrorCode::kInvalidShape,
                  fmt::format("{} has a negative dimension: {}", spec.name, to_string(view)));
    }
    if (auto bound = dims.bind(symbols[static_cast<size_t>(i)], view.size(i), spec); !bound) {
      return bound;
    }
  }
  return {};
}

std::vector<DType> allowed_types(TypeRule rule, DType storage, Backend backend) {
  const bool ref = backend == Backend::kRef;
  std::vector<DType> types;
  switch (rule) {
    case TypeRule::kStorage:
    case TypeRule::kStorageOrF32:
      if (storage != DType::kNone) {
        types = {storage};
      } else {
        types = {DType::kBF16, DType::kF16};
        if (ref) types.insert(types.end(), {DType::kF32, DType::kF64});
      }
      if (rule == TypeRule::kStorageOrF32) types.push_back(DType::kF32);
      break;
    case TypeRule::kIndex:
      types = {DType::kBF16};
      if (ref) types.insert(types.end(), {DType::kF32, DType::kF64});
      break;
    case TypeRule::kIndexOrF32:
      types = {DType::kBF16, DType::kF32};
      break;
    case TypeRule::kF32:
      types = {DType::kF32};
      break;
    case TypeRule::kI32:
      return {DType::kI32};
  }
  if (ref && rule != TypeRule::kStorage && rule != TypeRule::kIndex) types.push_back(DType::kF64);
  return types;
}

Result<void> check_dtype(const BoundTensor& tensor, DType& storage, Backend backend) {
  const auto types = allowed_types(tensor.spec.type, storage, backend);
  if (std::find(types.begin(), types.end(), tensor.view.dtype) == types.end()) {
    std::vector<std::string_view> names;
    for (DType type : types) names.push_back(to_string(type));
    names.erase(std::unique(names.begin(), names.end()), names.end());
    return fail(
        ErrorCode::kInvalidDType,
        fmt::format("{} is {}, expected {} on backend {}", tensor.spec.name,
                    to_string(tensor.view.dtype), fmt::join(names, " or "), to_string(backend)));
  }
  if (tensor.spec.type == TypeRule::kStorage) storage = tensor.view.dtype;
  return {};
}

/// Distance in elements from the first to the last element, or failure if 64 bits overflow.
Result<void> check_extent(const BoundTensor& tensor) {
  int64_t numel = 1;
  int64_t reach = 0;
  bool overflow = false;
  for (int i = 0; i < tensor.view.rank; ++i) {
    const int64_t extent = tensor.view.size(i);
    overflow |= __builtin_mul_overflow(numel, extent, &numel);
    if (extent <= 1) continue;
    int64_t step = 0;
    const int64_t stride = tensor.view.stride(i);
    overflow |= stride == INT64_MIN;
    if (overflow) break;
    overflow |= __builtin_mul_overflow(extent - 1, stride < 0 ? -stride : stride, &step);
    overflow |= __builtin_add_overflow(reach, step, &reach);
  }
  overflow = overflow || numel > INT64_MAX / 16 || reach > INT64_MAX / 16;
  if (!overflow) return {};
  return fail(ErrorCode::kInvalidShape, fmt::format("{} {} spans more bytes than 64 bits address",
                                                    tensor.spec.name, to_string(tensor.view)));
}

/// An output whose elements share memory would be written twice.
bool overlaps_itself(const TensorView& view) {
  std::vector<std::pair<int64_t, int64_t>> dims;  // stride, extent
  for (int i = 0; i < view.rank; ++i) {
    if (view.size(i) > 1) dims.emplace_back(view.stride(i), view.size(i));
  }
  std::sort(dims.begin(), dims.end());
  int64_t span = 1;
  for (const auto& [stride, extent] : dims) {
    if (stride < span) return true;
    span += stride * (extent - 1);
  }
  return false;
}

Result<void> check_layout(const BoundTensor& tensor, DataCheck data) {
  const TensorView& view = tensor.view;
  const std::string_view name = tensor.spec.name;
  if (auto extent = check_extent(tensor); !extent) return extent;
  if (view.numel() == 0) return {};
  const int last = view.rank - 1;
  if (view.rank > 0 && view.size(last) > 1 && view.stride(last) != 1) {
    return fail(
        ErrorCode::kInvalidStride,
        fmt::format("{} has stride {} in its last dimension, expected 1", name, view.stride(last)));
  }
  if (tensor.spec.is_output() && overlaps_itself(view)) {
    return fail(
        ErrorCode::kInvalidStride,
        fmt::format("{} is an output with strides ({}) for shape ({}): its elements "
                    "overlap, expected distinct memory for each",
                    name, fmt::join(view.strides.begin(), view.strides.begin() + view.rank, ", "),
                    fmt::join(view.shape.begin(), view.shape.begin() + view.rank, ", ")));
  }
  if (data == DataCheck::kIgnored) return {};
  if (view.data == nullptr) {
    return fail(ErrorCode::kInvalidValue,
                fmt::format("{} {} has a null data pointer", name, to_string(view)));
  }
  const auto misfit =
      reinterpret_cast<uintptr_t>(view.data) % static_cast<uintptr_t>(size_bytes(view.dtype));
  if (misfit != 0) {
    return fail(ErrorCode::kInvalidStride,
                fmt::format("{} starts {} bytes past a multiple of {}, the alignment of {}", name,
                            misfit, size_bytes(view.dtype), to_string(view.dtype)));
  }
  return {};
}

Result<void> check_device(const BoundTensor& tensor, const BoundTensor& first, Backend backend) {
  const bool host_backend = backend == Backend::kRef || backend == Backend::kCpu;
  if (host_backend && tensor.view.device.type != DeviceType::kCpu) {
    return fail(ErrorCode::kInvalidDevice,
                fmt::format("{} is on {}, but backend {} reads cpu memory only", tensor.spec.name,
                            to_string(tensor.view.device), to_string(backend)));
  }
  if (tensor.view.device == first.view.device) return {};
  return fail(
      ErrorCode::kInvalidDevice,
      fmt::format("{} is on {}, but {} is on {}: expected one device", tensor.spec.name,
                  to_string(tensor.view.device), first.spec.name, to_string(first.view.device)));
}

/// Limits on dimensions that no other tensor decides.
Result<void> check_dims(const Dims& dims) {
  const auto at_least_one = {"H", "D", "Dv", "Hi"};
  for (const char* symbol : at_least_one) {
    const auto at = dims.find(symbol);
    if (at != dims.end() && at->second < 1) {
      return fail(ErrorCode::kInvalidShape,
                  fmt::format("{}={}, expected at least 1", symbol, at->second));
    }
  }
  const auto k = dims.find("K");
  if (k != dims.end() && k->second > kMaxTopK) {
    return fail(ErrorCode::kInvalidShape,
                fmt::format("K={} top-k slots, expected at most {}", k->second, kMaxTopK));
  }
  const auto dv = dims.find("Dv");
  if (dv != dims.end() && dv->second > dims.at("D")) {
    return fail(ErrorCode::kInvalidShape,
                fmt::format("Dv={} exceeds D={}: a value is the first Dv columns of a kv row",
                            dv->second, dims.at("D")));
  }
  for (const char* symbol : {"Sq", "Skv"}) {
    const auto at = dims.find(symbol);
    if (at != dims.end() && at->second > INT32_MAX) {
      return fail(ErrorCode::kInvalidShape, fmt::format("{}={}, expected at most {}: ids are I32",
                                                        symbol, at->second, INT32_MAX));
    }
  }
  return {};
}

Result<void> check_finite(std::string_view name, float value) {
  if (std::isfinite(value)) return {};
  return fail(ErrorCode::kInvalidValue,
              fmt::format("{} is {}, expected a finite number", name, value));
}

/// A cu_seqlens list: starts at 0, never decreases, ends at `total`.
Result<void> check_list(std::string_view name, const TensorView& list, std::string_view total_name,
                        int64_t total) {
  const auto* values = list.ptr<const int32_t>();
  const int64_t count = list.size(0);
  if (values[0] != 0) {
    return fail(ErrorCode::kInvalidValue, fmt::format("{}[0] is {}, expected 0", name, values[0]));
  }
  for (int64_t i = 1; i < count; ++i) {
    if (values[i] < values[i - 1]) {
      return fail(ErrorCode::kInvalidValue,
                  fmt::format("{}[{}] is {} after {}: the list may never decrease", name, i,
                              values[i], values[i - 1]));
    }
  }
  if (values[count - 1] == total) return {};
  return fail(ErrorCode::kInvalidValue, fmt::format("{} ends at {}, expected {}={}", name,
                                                    values[count - 1], total_name, total));
}

}  // namespace

Result<Dims> check_tensors(const std::vector<BoundTensor>& tensors, Backend backend,
                           DataCheck data) {
  DimBinder dims;
  DType storage = DType::kNone;
  const BoundTensor* first = nullptr;
  for (const BoundTensor& tensor : tensors) {
    if (!tensor.view.defined()) {
      if (tensor.spec.is_optional()) continue;
      return tl::unexpected(Error{ErrorCode::kMissingTensor,
                                  fmt::format("{} {} is required, but absent", tensor.spec.name,
                                              pretty_dims(tensor.spec.dims))});
    }
    if (tensor.view.rank < 0 || tensor.view.rank > kMaxRank) {
      return tl::unexpected(Error{ErrorCode::kInvalidShape,
                                  fmt::format("{} has rank {}, expected 0 to {}", tensor.spec.name,
                                              tensor.view.rank, kMaxRank)});
    }
    if (first == nullptr) first = &tensor;
    Result<void> checked = check_shape(tensor, dims);
    if (checked) checked = check_dtype(tensor, storage, backend);
    if (checked) checked = check_device(tensor, *first, backend);
    if (checked) checked = check_layout(tensor, data);
    if (!checked) return tl::unexpected(checked.error());
  }
  if (auto checked = check_dims(dims.values); !checked) return tl::unexpected(checked.error());
  return dims.values;
}

Result<void> check_attention(const AttentionInputs& args) {
  if (!args.softmax_scale) return {};
  const float scale = *args.softmax_scale;
  if (std::isfinite(scale) && scale > 0) return {};
  return fail(ErrorCode::kInvalidValue,
              fmt::format("softmax_scale is {}, expected a finite number > 0", scale));
}

Result<void> check_indexer(const IndexerInputs& args) {
  return check_finite("sm_scale", args.sm_scale);
}

Result<void> check_gradients(const IndexerGradients& args) {
  if (args.num_tokens < 0) {
    return fail(ErrorCode::kInvalidValue,
                fmt::format("num_tokens is {}, expected >= 0 (0 = Sq)", args.num_tokens));
  }
  return check_finite("loss_coeff", args.loss_coeff);
}

Result<void> check_mask(const CausalMask& args, const Dims& dims, DataCheck data) {
  if (args.ratio < 1) {
    return fail(ErrorCode::kInvalidValue, fmt::format("ratio is {}, expected >= 1", args.ratio));
  }
  if (args.cu_seqlens_q.defined() != args.cu_seqlens_k.defined()) {
    return fail(ErrorCode::kMissingTensor,
                fmt::format("cu_seqlens_q is {} and cu_seqlens_k is {}: expected both or neither",
                            to_string(args.cu_seqlens_q), to_string(args.cu_seqlens_k)));
  }
  if (!args.cu_seqlens_q.defined()) {
    if (!args.q_offsets.defined() || args.q_offsets.size(0) == 1) return {};
    return fail(ErrorCode::kInvalidShape,
                fmt::format("q_offsets has {} entries, expected 1: without cu_seqlens there is one "
                            "segment",
                            args.q_offsets.size(0)));
  }
  if (data == DataCheck::kIgnored || args.cu_seqlens_q.device.type != DeviceType::kCpu) return {};
  auto checked = check_list("cu_seqlens_q", args.cu_seqlens_q, "Sq", dims.at("Sq"));
  if (!checked) return checked;
  return check_list("cu_seqlens_k", args.cu_seqlens_k, "Skv", dims.at("Skv"));
}

}  // namespace dsattn
