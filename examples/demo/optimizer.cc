// One AdamW step over all parameters.
#include "optimizer.h"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace dsattn::demo {
namespace {

// One sum, in the order of the parameters.
double gradient_norm(const std::vector<Param*>& params, bool indexer) {
  double sum = 0.0;
  for (const Param* p : params) {
    if (p->indexer != indexer) continue;
    for (float g : p->grad) sum += static_cast<double>(g) * static_cast<double>(g);
  }
  return std::sqrt(sum);
}

}  // namespace

double schedule(const OptimizerConfig& config, int64_t step, int64_t steps) {
  const double done = static_cast<double>(step + 1);
  const double warmup = std::max(1.0, config.warmup_share * static_cast<double>(steps));
  if (done < warmup) return done / warmup;
  const double share = (done - warmup) / std::max(1.0, static_cast<double>(steps) - warmup);
  const double cosine = 0.5 * (1.0 + std::cos(std::numbers::pi * share));
  return config.final_share + (1.0 - config.final_share) * cosine;
}

void adamw(const OptimizerConfig& config, int64_t step, int64_t steps, Params& params,
           int threads) {
  const std::vector<Param*> all = params.all();
  const double share = schedule(config, step, steps);
  const double power = static_cast<double>(step + 1);
  const double unbias1 = 1.0 / (1.0 - std::pow(config.beta1, power));
  const double unbias2 = 1.0 / (1.0 - std::pow(config.beta2, power));
  const auto beta1 = static_cast<float>(config.beta1);
  const auto beta2 = static_cast<float>(config.beta2);
  const auto epsilon = static_cast<float>(config.epsilon);
  for (const bool indexer : {false, true}) {
    const double norm = gradient_norm(all, indexer);
    const auto clip = static_cast<float>(norm > config.clip_norm ? config.clip_norm / norm : 1.0);
    const double rate = share * (indexer ? config.indexer_rate : config.model_rate);
    const auto scale1 = static_cast<float>(rate * unbias1);
    const auto scale2 = static_cast<float>(unbias2);
    for (Param* p : all) {
      if (p->indexer != indexer) continue;
      const auto keep = static_cast<float>(p->decays ? 1.0 - rate * config.weight_decay : 1.0);
      const auto count = static_cast<int64_t>(p->value.size());
#pragma omp parallel for schedule(static) num_threads(threads) if (count > 4096)
      for (int64_t i = 0; i < count; ++i) {
        const size_t at = static_cast<size_t>(i);
        const float g = p->grad[at] * clip;
        p->first[at] = beta1 * p->first[at] + (1.0f - beta1) * g;
        p->second[at] = beta2 * p->second[at] + (1.0f - beta2) * g * g;
        p->value[at] = p->value[at] * keep -
                       scale1 * p->first[at] / (std::sqrt(p->second[at] * scale2) + epsilon);
      }
    }
  }
}

}  // namespace dsattn::demo
