// The demo: a byte-level language model of about a million parameters learns real text on the CPU,
// once with dense attention and once with DeepSeek Sparse Attention (a lightning indexer picks
// top-k keys per query). All attention goes through the public API, dsattn/ops.h.
// Next: train.h (the plan of the run), model.h (the network), report.h (what is told).
#pragma once

#include <cstdint>
#include <string>

#include "dsattn/ops.h"

namespace dsattn::demo {

struct DemoOptions {
  std::string text;          ///< a text file; empty: the licence texts that every Debian carries
  int64_t steps = 200;       ///< optimizer steps of each model
  uint64_t seed = 1;         ///< weights and batches; the same seed gives the same losses
  double seconds = 0;        ///< stop training after this many seconds; 0: no limit
  std::string out;           ///< folder for demo.svg and demo.json; empty: write neither
  int threads = 0;           ///< 0: all cores. The losses do not depend on it
  bool json = false;         ///< print the summary as JSON on stdout, progress on stderr
  std::string save_problem;  ///< write the last step's attention as a .safetensors problem
  Backend backend = Backend::kCpu;
};

/// Trains, reports and judges. Returns the exit status: 0 all targets met, 1 one was missed,
/// 2 unusable input, 3 stopped by `seconds` before the targets were met, or an operation failed.
int run_demo(const DemoOptions& options);

}  // namespace dsattn::demo
