#include "problem/bind.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

namespace dsattn {
namespace {

constexpr int64_t kDefaultMaxDv = 512;
constexpr int64_t kMaxTopK = 65536;

bool mentions(const std::vector<TensorSpec>& outputs, std::string_view symbol) {
  return std::any_of(outputs.begin(), outputs.end(), [&](const TensorSpec& spec) {
    return (',' + std::string(spec.dims) + ',').find(',' + std::string(symbol) + ',') !=
           std::string::npos;
  });
}

Result<void> add_value_width(const Problem& problem, Dims& dims) {
  const auto text = problem.parameter("d_v");
  if (!text) {  // `out` or `dout` may have said it already
    dims.emplace("Dv", std::min(dims.at("D"), kDefaultMaxDv));
    return {};
  }
  auto d_v = parse_int("d_v", *text);
  if (!d_v) return tl::unexpected(d_v.error());
  if (*d_v < 1 || *d_v > dims.at("D")) {
    return fail(ErrorCode::kInvalidValue,
                fmt::format("d_v is {}, expected 1 to D={}", *d_v, dims.at("D")));
  }
  const auto [at, fresh] = dims.emplace("Dv", *d_v);
  if (fresh || at->second == *d_v) return {};
  return fail(ErrorCode::kInvalidShape,
              fmt::format("d_v is {}, but out or dout has Dv={}", *d_v, at->second));
}

Result<void> add_top_k(const Problem& problem, Dims& dims) {
  const auto text = problem.parameter("top_k");
  if (!text) {
    return fail(ErrorCode::kInvalidValue,
                fmt::format("the metadata has no 'top_k', which {} needs", problem.op));
  }
  auto top_k = parse_int("top_k", *text);
  if (!top_k) return tl::unexpected(top_k.error());
  if (*top_k < 0 || *top_k > kMaxTopK) {
    return fail(ErrorCode::kInvalidValue,
                fmt::format("top_k is {}, expected 0 to {}", *top_k, kMaxTopK));
  }
  dims.emplace("K", *top_k);
  return {};
}

/// dkv_dtype and d_index_k_dtype: the storage type, or F32 on request.
Result<DType> gradient_dtype(const Problem& problem, std::string_view name, DType storage) {
  const auto text = problem.parameter(name);
  if (!text || *text == to_string(storage)) return storage;
  if (*text == "F32") return DType::kF32;
  return fail(ErrorCode::kInvalidValue,
              fmt::format("{} is '{}', expected {} or F32", name, *text, to_string(storage)));
}

Result<DType> output_dtype(const Problem& problem, const TensorSpec& spec) {
  switch (spec.type) {
    case TypeRule::kStorage:
      return problem.view("q").dtype;
    case TypeRule::kStorageOrF32:
      return gradient_dtype(problem, "dkv_dtype", problem.view("kv").dtype);
    case TypeRule::kIndex:
      return problem.view("index_q").dtype;
    case TypeRule::kIndexOrF32:
      return gradient_dtype(problem, "d_index_k_dtype", problem.view("index_k").dtype);
    case TypeRule::kF32:
      return DType::kF32;
    case TypeRule::kI32:
      break;
  }
  return DType::kI32;
}

std::vector<int64_t> output_shape(std::string_view spec_dims, const Dims& dims) {
  if (spec_dims == "scalar") return {1};
  std::vector<int64_t> shape;
  while (true) {
    const size_t comma = spec_dims.find(',');
    const std::string_view symbol = spec_dims.substr(0, comma);
    int64_t number = 0;
    const auto parsed = std::from_chars(symbol.data(), symbol.data() + symbol.size(), number);
    shape.push_back(parsed.ec == std::errc{} ? number : dims.at(symbol));
    if (comma == std::string_view::npos) return shape;
    spec_dims.remove_prefix(comma + 1);
  }
}

template <class T, class Parse>
Result<void> assign_parsed(std::string_view name, std::string_view text, T& to, Parse parse) {
  auto value = parse(name, text);
  if (!value) return tl::unexpected(value.error());
  to = *value;
  return {};
}

template <class Enum>
Result<void> assign_choice(std::string_view name, std::string_view text, Enum& to,
                           std::string_view first, std::string_view second) {
  if (text != first && text != second) {
    return fail(ErrorCode::kInvalidValue,
                fmt::format("{} is '{}', expected {} or {}", name, text, first, second));
  }
  to = static_cast<Enum>(text == second);
  return {};
}

}  // namespace

Result<void> add_output_dims(const Problem& problem, const std::vector<TensorSpec>& outputs,
                             Dims& dims) {
  if (mentions(outputs, "Dv") || dims.contains("Dv")) {
    if (auto added = add_value_width(problem, dims); !added) return added;
  }
  if (mentions(outputs, "K") && !dims.contains("K")) return add_top_k(problem, dims);
  return {};
}

bool wants_output(const Problem& problem, const TensorSpec& spec) {
  return spec.name != "d_sink" || problem.has("sink");
}

Result<OwnedTensor> make_output(const Problem& problem, const TensorSpec& spec, const Dims& dims,
                                OutputTypes types) {
  const bool all_f64 = types == OutputTypes::kF64 && spec.type != TypeRule::kI32;
  auto dtype = all_f64 ? Result<DType>(DType::kF64) : output_dtype(problem, spec);
  if (!dtype) return tl::unexpected(dtype.error());
  auto output = OwnedTensor::make(*dtype, output_shape(spec.dims, dims));
  if (!output) {
    return fail(output.error().code, fmt::format("{}: {}", spec.name, output.error().message));
  }
  if (!output->bytes().empty())
    std::memset(output->bytes().data(), kPoison, output->bytes().size());
  return output;
}

Result<void> assign(std::string_view name, std::string_view text, float& to) {
  return assign_parsed(name, text, to, parse_float);
}
Result<void> assign(std::string_view name, std::string_view text, std::optional<float>& to) {
  return assign_parsed(name, text, to, parse_float);
}
Result<void> assign(std::string_view name, std::string_view text, int64_t& to) {
  return assign_parsed(name, text, to, parse_int);
}
Result<void> assign(std::string_view name, std::string_view text, bool& to) {
  return assign_parsed(name, text, to, parse_bool);
}
Result<void> assign(std::string_view name, std::string_view text, TopKOrder& to) {
  return assign_choice(name, text, to, "id", "score");
}
Result<void> assign(std::string_view name, std::string_view text, IdSpace& to) {
  return assign_choice(name, text, to, "global", "local");
}

}  // namespace dsattn
