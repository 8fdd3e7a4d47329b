// The verb `demo`: present if the build has examples/demo.
#pragma once

#include <CLI/CLI.hpp>

#include "cli/cli.h"

#ifdef DSATTN_HAVE_DEMO
#include "demo/demo.h"
#endif

namespace dsattn::cli {

#ifdef DSATTN_HAVE_DEMO

inline void add_demo(CLI::App& app, int& status) {
  static demo::DemoOptions options;
  static std::string backend = "cpu";
  CLI::App* verb = app.add_subcommand(
      "demo", "Train a small language model with dense and with sparse attention, and compare");
  verb->footer("Example: dsattn demo --steps 120 --out demo");
  verb->add_option("--text", options.text, "A text to learn; default: licence texts of the system");
  verb->add_option("--steps", options.steps, "Optimizer steps of each model")
      ->check(CLI::Range(int64_t{1}, int64_t{1000000}))
      ->capture_default_str();
  verb->add_option("--seed", options.seed, "The same seed gives the same losses")
      ->capture_default_str();
  verb->add_option("--seconds", options.seconds, "Stop training after this long; 0 = no limit")
      ->check(CLI::Range(0.0, 1e6))
      ->capture_default_str();
  verb->add_option("--out", options.out, "Folder for demo.svg and demo.json");
  verb->add_option("--save-problem", options.save_problem,
                   "Write the last step's attention as a problem file");
  verb->add_option("--threads", options.threads, "CPU threads, 0 = all cores")
      ->check(CLI::Range(0, 4096))
      ->capture_default_str();
  verb->add_option("--backend", backend, "Who computes attention")->capture_default_str();
  verb->add_flag("--json", options.json, "Print the summary as JSON on stdout");
  verb->callback([&status] {
    auto parsed = parse_backend(backend);
    if (!parsed) {
      status = report(parsed.error());
      return;
    }
    options.backend = *parsed;
    status = demo::run_demo(options);
  });
}

#else

inline void add_demo(CLI::App&, int&) {}

#endif

}  // namespace dsattn::cli
