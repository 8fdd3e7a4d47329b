// gen, run, verify and info. bench.cc has the fifth.
#include <fmt/format.h>
#include <omp.h>

#include <chrono>
#include <nlohmann/json.hpp>

#include "cli/cli.h"
#include "cli/terminal.h"
#include "problem/edges.h"
#include "problem/verify.h"

namespace dsattn::cli {
namespace {

using Json = nlohmann::ordered_json;

Result<DType> storage_dtype(std::string_view name) {
  for (const auto& [text, dtype] : {std::pair{"bf16", DType::kBF16},
                                    {"f16", DType::kF16},
                                    {"f32", DType::kF32},
                                    {"f64", DType::kF64}}) {
    if (name == text) return dtype;
  }
  return fail(ErrorCode::kInvalidValue,
              fmt::format("dtype '{}' is unknown, expected bf16, f16, f32 or f64", name));
}

std::string shape_text(const OwnedTensor& tensor) {
  return fmt::format("({}) {}", fmt::join(tensor.shape(), ", "), to_string(tensor.dtype()));
}

Json tensors_json(const TensorMap& tensors) {
  Json list = Json::array();
  for (const auto& [name, tensor] : tensors) {
    list.push_back({{"name", name},
                    {"dtype", to_string(tensor.dtype())},
                    {"shape", std::vector<int64_t>(tensor.shape().begin(), tensor.shape().end())}});
  }
  return list;
}

void print_tensors(const TensorMap& tensors) {
  for (const auto& [name, tensor] : tensors) fmt::print("  {:14} {}\n", name, shape_text(tensor));
}

int list_edges(std::string_view op) {
  for (const Edge& edge : edges()) {
    if (!op.empty() && !reads_tensor(op, edge.tensor)) continue;
    fmt::print("{:22} {}\n", edge.name, edge.about);
  }
  return kPass;
}

/// JSON has no NaN or Inf: those become the strings that people expect.
Json number(double x) {
  if (std::isfinite(x)) return x;
  return fmt::format("{}", x);
}

Json report_json(const TensorReport& report) {
  Json json = {{"name", report.name},
               {"dtype", to_string(report.dtype)},
               {"shape", report.shape},
               {"passed", report.passed},
               {"mismatched", report.mismatched}};
  if (!report.tolerance.exact) {
    json["relative_l2"] = number(report.relative_l2);
    json["allowed"] = report.tolerance.relative_l2;
    json["worst_row"] = report.worst_row;
    json["worst_row_l2"] = number(report.worst_row_l2);
    json["worst_bf16_steps"] = number(report.worst_steps);
  }
  if (report.worst_element >= 0) {
    json["worst_element"] = {{"index", index_text(report.shape, report.worst_element)},
                             {"got", number(report.got)},
                             {"expected", number(report.expected)}};
  }
  if (!report.passed) json["failure"] = report.failure;
  return json;
}

void print_report(const TensorReport& report) {
  const std::string verdict = report.passed ? good("pass") : bad("FAIL");
  if (report.tolerance.exact) {
    fmt::print("{}  {:12} {} of {} ids differ\n", verdict, report.name, report.mismatched,
               report.dtype == DType::kI32 ? "the" : "its");
  } else {
    fmt::print(
        "{}  {:12} relative L2 {:.2e} (allowed {:.0e}), worst row {:.2e}, worst element {:.2f} "
        "bf16 steps\n",
        verdict, report.name, report.relative_l2, report.tolerance.relative_l2, report.worst_row_l2,
        report.worst_steps);
  }
  if (!report.passed) fmt::print("      {} {}\n", report.name, report.failure);
}

Result<VerifyReport> judged(const VerifyOptions& options, const Problem& problem,
                            const ExecContext& ctx) {
  if (options.result.empty()) return dsattn::verify(problem, ctx);
  auto result = read_safetensors(options.result);
  if (!result) return tl::unexpected(result.error());
  auto completed = complete(problem, ctx);
  if (!completed) return tl::unexpected(completed.error());
  return judge(*completed, result->tensors, ctx);
}

}  // namespace

int report(const Error& error) {
  fmt::print(stderr, "dsattn: {}: {}\n", to_string(error.code), error.message);
  const bool absent = error.code == ErrorCode::kUnavailable ||
                      error.code == ErrorCode::kUnsupported || error.code == ErrorCode::kCancelled;
  return absent || error.code == ErrorCode::kInternal ? kUnavailableStatus : kUsage;
}

std::string backend_name(const Common& options) {
  return options.backend == "auto" ? std::string(to_string(Backend::kCpu)) : options.backend;
}

Result<ExecContext> context_of(const Common& options) {
  ExecContext ctx;
  auto backend = parse_backend(options.backend);
  if (!backend) return tl::unexpected(backend.error());
  auto isa = parse_cpu_isa(options.isa);
  if (!isa) return tl::unexpected(isa.error());
  ctx.backend = *backend;
  ctx.cpu_isa = *isa;
  ctx.num_threads = options.threads;
  return ctx;
}

int gen(const GenOptions& options) {
  if (options.list_edges) return list_edges(options.problem.op);
  if (options.output.empty()) {
    return report({ErrorCode::kInvalidValue, "gen needs -o FILE, the problem file to write"});
  }
  auto ctx = context_of(options.common);
  if (!ctx) return report(ctx.error());
  GenerateOptions problem_options = options.problem;
  auto kind = parse_selection(options.kind);
  if (!kind) return report(kind.error());
  auto dtype = storage_dtype(options.dtype);
  if (!dtype) return report(dtype.error());
  problem_options.kind = *kind;
  problem_options.dtype = *dtype;
  auto problem = generate(problem_options, *ctx);
  if (!problem) return report(problem.error());
  if (auto saved = save_problem(options.output, *problem); !saved) return report(saved.error());
  if (options.common.json) {
    const Json json = {{"op", problem->op},
                       {"file", options.output},
                       {"seed", problem_options.seed},
                       {"tensors", tensors_json(problem->tensors)},
                       {"metadata", problem->metadata}};
    fmt::print("{}\n", json.dump(2));
  } else {
    fmt::print("{}: {}, seed {}\n", options.output, problem->op, problem_options.seed);
    print_tensors(problem->tensors);
  }
  return kPass;
}

int run(const RunOptions& options) {
  auto ctx = context_of(options.common);
  if (!ctx) return report(ctx.error());
  auto problem = load_problem(options.problem);
  if (!problem) return report(problem.error());
  ProgressBar bar(problem->op);
  ctx->progress = bar.callback();
  const auto start = std::chrono::steady_clock::now();
  auto result = run_problem(*problem, *ctx);
  const std::chrono::duration<double> elapsed = std::chrono::steady_clock::now() - start;
  if (!result) return report(result.error());
  if (auto saved = save_result(options.output, *problem, *result); !saved) {
    return report(saved.error());
  }
  if (options.common.json) {
    const Json json = {{"op", problem->op},
                       {"backend", backend_name(options.common)},
                       {"seconds", elapsed.count()},
                       {"file", options.output},
                       {"tensors", tensors_json(*result)}};
    fmt::print("{}\n", json.dump(2));
  } else {
    fmt::print("{}: {} in {:.3f} s\n", options.output, problem->op, elapsed.count());
    print_tensors(*result);
  }
  return kPass;
}

int verify(const VerifyOptions& options) {
  auto ctx = context_of(options.common);
  if (!ctx) return report(ctx.error());
  auto problem = load_problem(options.problem);
  if (!problem) return report(problem.error());
  Result<VerifyReport> verdict = [&] {
    ProgressBar bar("verify");
    ctx->progress = bar.callback();
    return judged(options, *problem, *ctx);
  }();
  if (!verdict) return report(verdict.error());
  if (options.common.json) {
    Json json = {{"op", problem->op},
                 {"backend", backend_name(options.common)},
                 {"passed", verdict->passed()},
                 {"tensors", Json::array()}};
    for (const TensorReport& tensor : verdict->tensors) {
      json["tensors"].push_back(report_json(tensor));
    }
    fmt::print("{}\n", json.dump(2));
  } else {
    for (const TensorReport& tensor : verdict->tensors) print_report(tensor);
    fmt::print("{}: {} on backend {}\n", verdict->passed() ? good("passed") : bad("failed"),
               problem->op, backend_name(options.common));
  }
  return verdict->passed() ? kPass : kCheckFailed;
}

int info(const Common& options) {
  const int threads = omp_get_max_threads();
  if (options.json) {
    Json json = {
        {"cpu_isa", to_string(best_cpu_isa())}, {"threads", threads}, {"backends", Json::array()}};
    for (const BackendInfo& backend : backends()) {
      json["backends"].push_back({{"name", to_string(backend.backend)},
                                  {"available", backend.available},
                                  {"detail", backend.detail}});
    }
    fmt::print("{}\n", json.dump(2));
    return kPass;
  }
  fmt::print("CPU instruction set: {}\nthreads: {}\nbackends:\n", to_string(best_cpu_isa()),
             threads);
  for (const BackendInfo& backend : backends()) {
    const std::string state = backend.available ? good("yes") : bad("no ");
    fmt::print("  {:11} {}  {}\n", to_string(backend.backend), state, backend.detail);
  }
  return kPass;
}

}  // namespace dsattn::cli
