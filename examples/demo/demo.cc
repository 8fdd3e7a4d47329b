// From options to a plan, and from the result to files, JSON and an exit status.
#include "demo.h"

#include <fmt/format.h>
#include <omp.h>

#include <algorithm>
#include <filesystem>
#include <fstream>

#include "problem_file.h"
#include "report.h"

namespace dsattn::demo {
namespace {

constexpr int kPass = 0;
constexpr int kFailed = 1;
constexpr int kUsage = 2;
constexpr int kIncomplete = 3;

TrainConfig plan(const DemoOptions& options) {
  TrainConfig config;
  config.model.backend = options.backend;
  config.model.threads = options.threads > 0 ? options.threads : omp_get_max_threads();
  config.steps = options.steps;
  config.dense_steps = options.steps / 2;
  config.evaluate_every = std::max<int64_t>(1, options.steps / 10);
  config.seed = options.seed;
  config.seconds = options.seconds;
  return config;
}

int report_error(const Error& error, int status) {
  fmt::print(stderr, "dsattn demo: {}: {}\n", to_string(error.code), error.message);
  return status;
}

Result<void> write_file(const std::filesystem::path& path, const std::string& content) {
  std::ofstream file(path, std::ios::binary);
  file << content;
  file.close();
  if (!file) return fail(ErrorCode::kIo, "cannot write " + path.string());
  return {};
}

Result<void> check(const DemoOptions& options) {
  if (options.steps < 1) {
    return fail(ErrorCode::kInvalidValue,
                fmt::format("{} steps, expected at least 1", options.steps));
  }
  if (options.threads < 0 || !(options.seconds >= 0)) {
    return fail(ErrorCode::kInvalidValue, "threads and seconds must not be negative");
  }
  if (options.out.empty()) return {};
  std::error_code error;
  std::filesystem::create_directories(options.out, error);
  if (error) return fail(ErrorCode::kIo, options.out + ": " + error.message());
  return {};
}

Result<void> write_outputs(const DemoOptions& options, const std::string& json,
                           const std::string& svg) {
  if (options.json) fmt::print("{}", json);
  if (options.out.empty()) return {};
  const std::filesystem::path folder = options.out;
  if (auto done = write_file(folder / "demo.json", json); !done) return done;
  return write_file(folder / "demo.svg", svg);
}

}  // namespace

int run_demo(const DemoOptions& options) {
  const TrainConfig config = plan(options);
  if (auto done = check(options); !done) return report_error(done.error(), kUsage);
  const Result<Text> text = load_text(options.text, config.model.context);
  if (!text) return report_error(text.error(), kUsage);
  std::FILE* const stream = options.json ? stderr : stdout;
  const int64_t parameters = Params::make(config.model, config.seed).count();
  fmt::print(stream, "{}", describe(config, *text, parameters));

  ProgressPrinter printer(stream, config.steps);
  TrainHooks hooks;
  hooks.progress = [&](const Progress& progress) { printer.show(progress); };
  hooks.after_last_step = [&](Model& model, Params& params, bool sparse) -> Result<void> {
    if (options.save_problem.empty()) return {};
    return save_problem(options.save_problem, model, params, sparse);
  };
  const Result<TrainResult> result = train(config, *text, hooks);
  if (!result) return report_error(result.error(), kIncomplete);

  const std::vector<Verdict> verdicts = judge(*result, text->bigram_entropy);
  fmt::print(stream, "{}", summary(*result, *text, verdicts));
  const std::string json = to_json(config, *result, *text, verdicts, parameters);
  if (auto done = write_outputs(options, json, to_svg(config, *result, *text)); !done) {
    return report_error(done.error(), kUsage);
  }
  const bool met =
      std::all_of(verdicts.begin(), verdicts.end(), [](const Verdict& v) { return v.met; });
  if (met) return kPass;
  return result->stopped_early ? kIncomplete : kFailed;
}

}  // namespace dsattn::demo
