#include "problem/problem.h"

#include <fmt/format.h>

#include <charconv>
#include <vector>

#include "ops/schema.h"

namespace dsattn {
namespace {

template <class T>
Result<T> parse_whole(std::string_view name, std::string_view text, std::string_view wanted) {
  T value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error == std::errc{} && end == text.data() + text.size()) return value;
  return fail(ErrorCode::kInvalidValue, fmt::format("{} is '{}', expected {}", name, text, wanted));
}

}  // namespace

Result<float> parse_float(std::string_view name, std::string_view text) {
  return parse_whole<float>(name, text, "a number that fits single precision");
}

Result<int64_t> parse_int(std::string_view name, std::string_view text) {
  return parse_whole<int64_t>(name, text, "an integer");
}

Result<bool> parse_bool(std::string_view name, std::string_view text) {
  if (text == "true") return true;
  if (text == "false") return false;
  return fail(ErrorCode::kInvalidValue,
              fmt::format("{} is '{}', expected true or false", name, text));
}

Result<void> check_op_name(std::string_view op) {
  std::vector<std::string_view> names;
  for_each_op([&]<class Args>() { names.push_back(Schema<Args>::kName); });
  for (std::string_view name : names) {
    if (name == op) return {};
  }
  return fail(ErrorCode::kInvalidValue, fmt::format("operation '{}' is unknown, expected one of {}",
                                                    op, fmt::join(names, ", ")));
}

Result<Problem> load_problem(const std::filesystem::path& path) {
  Result<Safetensors> file = read_safetensors(path);
  if (!file) return tl::unexpected(file.error());
  Problem problem;
  const auto op = file->metadata.find("op");
  if (op == file->metadata.end()) {
    return fail(
        ErrorCode::kInvalidValue,
        fmt::format("{}: the metadata has no 'op', so this is not a problem file", path.string()));
  }
  problem.op = op->second;
  if (auto known = check_op_name(problem.op); !known) {
    return fail(known.error().code, fmt::format("{}: {}", path.string(), known.error().message));
  }
  file->metadata.erase(op);
  problem.tensors = std::move(file->tensors);
  problem.metadata = std::move(file->metadata);
  return problem;
}

Result<void> save_problem(const std::filesystem::path& path, const Problem& problem) {
  Safetensors file{problem.tensors, problem.metadata};
  file.metadata["op"] = problem.op;
  return write_safetensors(path, file);
}

}  // namespace dsattn
