// The plan of a run. Phase 1: dense attention, while the indexer learns to imitate it. Phase 2:
// the weights fork; one copy goes on dense (the baseline), the other attends to the indexer's top-k
// keys only, the indexer learning on. Both see the same batches. The indexer sends nothing back
// into the model, so phase 1 is, bit for bit, the baseline's own first phase and is run once.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "evaluate.h"
#include "optimizer.h"

namespace dsattn::demo {

struct TrainConfig {
  ModelConfig model;
  OptimizerConfig optimizer;
  int64_t steps = 0;
  int64_t dense_steps = 0;  ///< of phase 1
  int64_t evaluate_every = 1;
  int64_t curve_batches = 2;  ///< held-out batches behind a point of the curve
  uint64_t seed = 1;
  double seconds = 0;  ///< stop after these; 0: never
};

/// A curve over steps.
struct Series {
  std::vector<double> step, value;
  void add(int64_t at, double y) {
    step.push_back(static_cast<double>(at));
    value.push_back(y);
  }
};

struct TrainResult {
  Series dense_train, sparse_train, dense_held_out, sparse_held_out;  // nats per byte
  Series indexer_loss, indexer_share, random_share, recent_share;
  double dense_loss = 0.0;  ///< of the whole held-out text, after the last step
  double sparse_loss = 0.0;
  CapturedMass mass;
  int64_t steps_done = 0;
  bool stopped_early = false;
  double seconds = 0.0;
  double dense_step_seconds = 0.0;  ///< mean, phase 2
  double sparse_step_seconds = 0.0;
};

struct Progress {
  int64_t step = 0;
  bool sparse = false;
  double dense_loss = 0.0;
  double sparse_loss = 0.0;
  double indexer_loss = 0.0;
  double indexer_share = 0.0;
  double seconds = 0.0;
};

struct TrainHooks {
  std::function<void(const Progress&)> progress;  ///< after each step
  /// The model's states are those of the last step, which was sparse or not.
  std::function<Result<void>(Model&, Params&, bool sparse)> after_last_step;
};

Result<TrainResult> train(const TrainConfig& config, const Text& text, const TrainHooks& hooks);

}  // namespace dsattn::demo
