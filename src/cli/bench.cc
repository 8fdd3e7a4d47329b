// bench: times one problem and sets it beside what the machine's matrix units can do, measured in
// the same run by the CPU engine's own matrix product.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <nlohmann/json.hpp>
#include <vector>

#include "cli/cli.h"
#include "cli/terminal.h"
#include "cpu/gemm.h"
#include "cpu/parallel.h"
#include "problem/work.h"

namespace dsattn::cli {
namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

struct Timing {
  std::vector<double> seconds;  // ascending

  double at(double quantile) const {
    const double place = quantile * static_cast<double>(seconds.size() - 1);
    return seconds[static_cast<size_t>(place + 0.5)];
  }
};

/// Times one bound call: its outputs and workspace are made once, and only execute() is timed.
template <class Args>
Result<Timing> time_call(const Problem& problem, ExecContext ctx, const BenchOptions& options) {
  auto call = bind<Args>(problem, ctx);
  if (!call) return tl::unexpected(call.error());
  auto bytes = workspace_bytes(call->args, ctx);
  if (!bytes) return tl::unexpected(bytes.error());
  const std::array<int64_t, 1> words = {(*bytes + 3) / 4};
  auto workspace = OwnedTensor::make(DType::kI32, words);
  if (!workspace) return tl::unexpected(workspace.error());
  ctx.workspace = workspace->bytes().data();
  ctx.workspace_bytes = *bytes;
  if (auto warm = execute(call->args, ctx); !warm) return tl::unexpected(warm.error());
  ProgressBar bar(problem.op);
  const auto progress = bar.callback();
  Timing timing;
  const auto begin = Clock::now();
  for (int64_t i = 0; i < options.repeats; ++i) {
    const auto start = Clock::now();
    if (auto done = execute(call->args, ctx); !done) return tl::unexpected(done.error());
    timing.seconds.push_back(seconds_since(start));
    if (progress) progress(static_cast<double>(i + 1) / static_cast<double>(options.repeats));
    if (seconds_since(begin) > options.seconds) break;
  }
  std::sort(timing.seconds.begin(), timing.seconds.end());
  return timing;
}

/// GFLOP/s of a bf16 product of 2048^3 on all threads: the best of several runs.
double matrix_peak(const ExecContext& ctx) {
  constexpr int64_t kSize = 2048;
  constexpr int64_t kBlockM = 128;
  constexpr int64_t kBlockN = 256;  // its panel of B, 1 MiB, stays in a core's cache
  constexpr int kRuns = 5;
  const cpu::Gemm& gemm = cpu::gemm_for(ctx.cpu_isa);
  const std::vector<bf16> a(kSize * kSize, to_bf16(0.5f));
  const std::vector<bf16> b(kSize * kSize, to_bf16(0.25f));
  std::vector<float> c(kSize * kSize);
  const ExecContext quiet;
  double best = 0;
  for (int attempt = 0; attempt < kRuns; ++attempt) {
    const auto start = Clock::now();
    constexpr int64_t kRowBlocks = kSize / kBlockM;
    cpu::parallel_for(kRowBlocks * (kSize / kBlockN), cpu::thread_count(ctx), quiet, 0, 1,
                      [&](int64_t item, int) {
                        const int64_t m = item % kRowBlocks * kBlockM;
                        const int64_t n = item / kRowBlocks * kBlockN;
                        gemm(kBlockM, kBlockN, kSize, &a[static_cast<size_t>(m * kSize)], kSize,
                             &b[static_cast<size_t>(cpu::packed_index_bf16(0, n, kSize))],
                             &c[static_cast<size_t>(m * kSize + n)], kSize, false);
                      });
    const double flops = 2.0 * kSize * kSize * kSize;
    best = std::max(best, flops / seconds_since(start) * 1e-9);
  }
  return best;
}

nlohmann::ordered_json shapes_json(const Problem& problem) {
  nlohmann::ordered_json shapes = nlohmann::ordered_json::object();
  for (const auto& [name, tensor] : problem.tensors) {
    shapes[name] = std::vector<int64_t>(tensor.shape().begin(), tensor.shape().end());
  }
  return shapes;
}

void print_bench(const BenchOptions& options, const Problem& problem, const ExecContext& ctx,
                 const Timing& timing) {
  const double median = timing.at(0.5);
  const double gflops = floating_operations(problem) / median * 1e-9;
  const double peak = matrix_peak(ctx);
  const CpuIsa isa = cpu::gemm_for(ctx.cpu_isa).isa;
  const int threads = cpu::thread_count(ctx);
  if (!options.common.json) {
    fmt::print(
        "{} on {} ({}, {} threads): median {:.4g} s, 10 % to 90 % {:.4g} to {:.4g} s, {} runs\n",
        problem.op, backend_name(options.common), to_string(isa), threads, median, timing.at(0.1),
        timing.at(0.9), timing.seconds.size());
    fmt::print("{:.1f} GFLOP/s, {:.1f} % of the {:.0f} GFLOP/s of a bf16 product of 2048^3\n",
               gflops, 100 * gflops / peak, peak);
    return;
  }
  const nlohmann::ordered_json json = {{"op", problem.op},
                                       {"backend", backend_name(options.common)},
                                       {"cpu_isa", to_string(isa)},
                                       {"threads", threads},
                                       {"shapes", shapes_json(problem)},
                                       {"runs", timing.seconds.size()},
                                       {"median_s", median},
                                       {"p10_s", timing.at(0.1)},
                                       {"p90_s", timing.at(0.9)},
                                       {"min_s", timing.seconds.front()},
                                       {"max_s", timing.seconds.back()},
                                       {"gflops", gflops},
                                       {"peak_gflops", peak},
                                       {"share_of_peak", gflops / peak}};
  fmt::print("{}\n", json.dump(2));
}

}  // namespace

int bench(const BenchOptions& options) {
  auto ctx = context_of(options.common);
  if (!ctx) return report(ctx.error());
  auto loaded = load_problem(options.problem);
  if (!loaded) return report(loaded.error());
  auto problem = complete(*loaded, *ctx);
  if (!problem) return report(problem.error());
  auto timing = for_op<Timing>(
      problem->op, [&]<class Args>() { return time_call<Args>(*problem, *ctx, options); });
  if (!timing) return report(timing.error());
  print_bench(options, *problem, *ctx, *timing);
  return kPass;
}

}  // namespace dsattn::cli
