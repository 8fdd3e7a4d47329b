// Held-out loss and captured attention mass.
#include "evaluate.h"

#include <algorithm>
#include <functional>
#include <numeric>

namespace dsattn::demo {
namespace {

double mass_of(const float* target, const int32_t* ids, int64_t count) {
  double sum = 0.0;
  for (int64_t j = 0; j < count; ++j) {
    if (ids[j] >= 0) sum += static_cast<double>(target[ids[j]]);
  }
  return sum;
}

double best_mass(const float* visible, int64_t count, int64_t k) {
  std::vector<float> sorted(visible, visible + count);
  std::nth_element(sorted.begin(), sorted.begin() + k, sorted.end(), std::greater<>());
  double sum = 0.0;
  for (int64_t j = 0; j < k; ++j) sum += static_cast<double>(sorted[size_t(j)]);
  return sum;
}

// k different keys of the visible ones: the first k places of a shuffle.
double random_mass(const float* visible, int64_t count, int64_t k, Random& random) {
  std::vector<int32_t> ids(static_cast<size_t>(count));
  std::iota(ids.begin(), ids.end(), 0);
  for (int64_t j = 0; j < k; ++j) {
    std::swap(ids[size_t(j)], ids[size_t(j + random.below(count - j))]);
  }
  return mass_of(visible, ids.data(), k);
}

CapturedMass layer_mass(const ModelConfig& config, const std::vector<float>& target,
                        const std::vector<int32_t>& ids, Random& random) {
  CapturedMass sum;
  int64_t queries = 0;
  for (int64_t t = 0; t < config.tokens(); ++t) {
    const int64_t position = t % config.context;
    if (position < config.top_k) continue;
    const float* row = target.data() + t * config.tokens();
    const float* visible = row + (t - position);
    sum.indexer += mass_of(row, ids.data() + t * config.top_k, config.top_k);
    sum.best += best_mass(visible, position + 1, config.top_k);
    sum.random += random_mass(visible, position + 1, config.top_k, random);
    for (int64_t s = position + 1 - config.top_k; s <= position; ++s) {
      sum.recent += static_cast<double>(visible[s]);
    }
    ++queries;
  }
  const double count = static_cast<double>(std::max<int64_t>(1, queries));
  return {sum.indexer / count, sum.best / count, sum.random / count, sum.recent / count};
}

}  // namespace

Result<double> held_out_loss(Model& model, Params& params, const Text& text, int64_t batches,
                             Mode mode) {
  const ModelConfig& config = model.config();
  double sum = 0.0;
  int64_t count = 0;
  for (; count < batches; ++count) {
    const Batch batch = held_out_batch(text, count, config.context, config.sequences);
    if (batch.tokens.empty()) break;
    const Result<double> loss = model.forward(params, batch.tokens, batch.targets, mode);
    if (!loss) return loss;
    sum += *loss;
  }
  return sum / static_cast<double>(std::max<int64_t>(1, count));
}

Result<CapturedMass> captured_mass(Model& model, Params& params, const Text& text, Mode mode) {
  const ModelConfig& config = model.config();
  const Batch batch = held_out_batch(text, 0, config.context, config.sequences);
  if (auto loss = model.forward(params, batch.tokens, batch.targets, mode); !loss) {
    return tl::unexpected(loss.error());
  }
  Random random(1);
  CapturedMass mean;
  std::vector<float> target;
  const double weight = 1.0 / static_cast<double>(config.layers);
  for (int64_t i = 0; i < config.layers; ++i) {
    if (auto done = model.select(params, i); !done) return tl::unexpected(done.error());
    const std::vector<float>& sink = params.layers[size_t(i)].sink.value;
    AttentionState& state = model.state(i);
    if (auto done = model.attention().dense_target(state, sink, target); !done) {
      return tl::unexpected(done.error());
    }
    const CapturedMass layer = layer_mass(config, target, state.topk_idxs, random);
    mean.indexer += weight * layer.indexer;
    mean.best += weight * layer.best;
    mean.random += weight * layer.random;
    mean.recent += weight * layer.recent;
  }
  return mean;
}

}  // namespace dsattn::demo
