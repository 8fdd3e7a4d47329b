// Weights: their shapes and first values.
#include <algorithm>
#include <cmath>

#include "model.h"
#include "random.h"

namespace dsattn::demo {
namespace {

constexpr int64_t kBytes = 256;

Param constant(int64_t count, float value) {
  Param p;
  p.value.assign(size_t(count), value);
  p.grad.assign(size_t(count), 0.0f);
  p.first = p.grad;
  p.second = p.grad;
  return p;
}

// A matrix whose products with unit entries have standard deviation `spread`.
Param matrix_param(Random& random, int64_t rows, int64_t cols, float spread) {
  Param p = constant(rows * cols, 0.0f);
  const float scale = spread / std::sqrt(static_cast<float>(rows));
  for (float& x : p.value) x = scale * random.normal();
  p.decays = true;
  return p;
}

// A bias for the position columns [first, first + width) of each head: with a key's bias of
// `strength` towards angle 0, head h's query meets it best at the position `lag` + h * `lag_step`
// back. Attention and indexer thus start with a taste for recent bytes, which training refines.
Param position_bias(const ModelConfig& c, int64_t heads, int64_t head_width, int64_t first,
                    int64_t width, float strength, int64_t lag, int64_t lag_step) {
  Param p = constant(heads * head_width, 0.0f);
  for (int64_t h = 0; h < heads; ++h) {
    for (int64_t i = 0; i < width / 2; ++i) {
      const double angle =
          static_cast<double>(lag + h * lag_step) * Rotation::rate(c.context, width, i);
      const size_t at = size_t(h * head_width + first + i);
      p.value[at] = strength * static_cast<float>(std::cos(angle));
      p.value[at + size_t(width / 2)] = -strength * static_cast<float>(std::sin(angle));
    }
  }
  return p;
}

LayerParams make_layer(const ModelConfig& c, Random& random) {
  // Each layer adds two branches to the stream; their sum over all layers starts at unit size.
  const float branch = 1.0f / std::sqrt(2.0f * static_cast<float>(c.layers));
  LayerParams p;
  p.attention_norm = constant(c.width, 1.0f);
  p.w_q = matrix_param(random, c.width, c.heads * c.key_width(), 1.0f);
  p.b_q = position_bias(c, c.heads, c.key_width(), c.latent, c.rope, 2.0f, 1, 1);
  p.w_kv = matrix_param(random, c.width, c.key_width(), 1.0f);
  p.b_kv = position_bias(c, 1, c.key_width(), c.latent, c.rope, 1.0f, 0, 0);
  p.kv_norm = constant(c.latent, 1.0f);
  p.sink = constant(c.heads, 0.0f);
  p.w_o = matrix_param(random, c.heads * c.latent, c.width, branch);
  p.mlp_norm = constant(c.width, 1.0f);
  p.w_in = matrix_param(random, c.width, c.mlp, 1.0f);
  p.w_out = matrix_param(random, c.mlp, c.width, branch);
  p.w_index_q = matrix_param(random, c.width, c.index_heads * kIndexWidth, 1.0f);
  p.b_index_q = position_bias(c, c.index_heads, kIndexWidth, 0, c.index_rope, 1.0f, 1, 1);
  p.w_index_k = matrix_param(random, c.width, kIndexWidth, 1.0f);
  p.b_index_k = position_bias(c, 1, kIndexWidth, 0, c.index_rope, 1.0f, 0, 0);
  p.w_index_w = matrix_param(random, c.width, c.index_heads, 0.1f);
  p.b_index_w = constant(c.index_heads, 1.0f);
  for (Param* index :
       {&p.w_index_q, &p.b_index_q, &p.w_index_k, &p.b_index_k, &p.w_index_w, &p.b_index_w}) {
    index->indexer = true;
  }
  return p;
}

}  // namespace

Params Params::make(const ModelConfig& config, uint64_t seed) {
  Random random(seed);
  Params p;
  p.embedding = matrix_param(random, 1, kBytes * config.width, 0.5f);
  p.embedding.decays = false;
  p.final_norm = constant(config.width, 1.0f);
  p.w_head = matrix_param(random, config.width, kBytes, 0.1f);
  for (int64_t i = 0; i < config.layers; ++i) p.layers.push_back(make_layer(config, random));
  return p;
}

std::vector<Param*> Params::all() {
  std::vector<Param*> list = {&embedding, &final_norm, &w_head};
  for (LayerParams& p : layers) {
    for (Param* param : {&p.attention_norm, &p.w_q, &p.b_q, &p.w_kv, &p.b_kv, &p.kv_norm, &p.sink,
                         &p.w_o, &p.mlp_norm, &p.w_in, &p.w_out, &p.w_index_q, &p.b_index_q,
                         &p.w_index_k, &p.b_index_k, &p.w_index_w, &p.b_index_w}) {
      list.push_back(param);
    }
  }
  return list;
}

int64_t Params::count() const {
  int64_t total = 0;
  for (const Param* p : const_cast<Params*>(this)->all()) {
    total += static_cast<int64_t>(p->value.size());
  }
  return total;
}

}  // namespace dsattn::demo
