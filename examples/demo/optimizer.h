// AdamW with clipping of the gradient's norm, and the schedule of its learning rate. The indexer is
// clipped and scaled apart from the model: its loss must not reach the model even through a norm.
#pragma once

#include <cstdint>

#include "model.h"

namespace dsattn::demo {

struct OptimizerConfig {
  double model_rate = 4e-3;  ///< peak learning rates
  double indexer_rate = 4e-3;
  double beta1 = 0.9;
  double beta2 = 0.95;
  double epsilon = 1e-9;
  double weight_decay = 0.05;  ///< of matrices, times the rate
  double clip_norm = 1.0;
  double warmup_share = 0.06;  ///< of the steps: the rate rises linearly, then falls as a cosine
  double final_share = 0.05;   ///< of the peak rate at the last step
};

/// Share of the peak rate at a step in [0, steps).
double schedule(const OptimizerConfig& config, int64_t step, int64_t steps);

/// Updates the values from the gradients; step counts from 0.
void adamw(const OptimizerConfig& config, int64_t step, int64_t steps, Params& params, int threads);

}  // namespace dsattn::demo
