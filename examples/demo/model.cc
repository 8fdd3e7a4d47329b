// Activations and the forward pass. The backward pass is in model_backward.cc.
#include "model.h"

#include <algorithm>

#include "matmul.h"

namespace dsattn::demo {
namespace {

constexpr int64_t kBytes = 256;

std::vector<float> floats(int64_t count) { return std::vector<float>(size_t(count)); }

}  // namespace

Model::Layer::Layer(const ModelConfig& c)
    : input(floats(c.tokens() * c.width)),
      normed(input),
      kv_raw(floats(c.tokens() * c.key_width())),
      attended(floats(c.tokens() * c.heads * c.latent)),
      middle(input),
      mlp_normed(input),
      hidden(floats(c.tokens() * c.mlp)),
      activated(hidden),
      index_q(floats(c.tokens() * c.index_heads * kIndexWidth)),
      index_k(floats(c.tokens() * kIndexWidth)),
      attention(c) {}

Model::Model(const ModelConfig& c)
    : config_(c),
      attention_(c),
      rotation_(c.context, c.rope),
      index_rotation_(c.context, c.index_rope),
      layers_(size_t(c.layers), Layer(c)),
      grads_(c),
      stream_(floats(c.tokens() * c.width)),
      final_normed_(stream_),
      logits_(floats(c.tokens() * kBytes)),
      d_stream_(stream_),
      d_normed_(stream_),
      d_hidden_(floats(c.tokens() * c.mlp)),
      wide_(floats(c.tokens() * c.heads * c.key_width())),
      d_kv_(floats(c.tokens() * c.key_width())),
      d_index_q_(floats(c.tokens() * c.index_heads * kIndexWidth)),
      branch_(stream_) {}

Result<double> Model::forward(Params& params, std::span<const uint8_t> tokens,
                              std::span<const uint8_t> targets, Mode mode) {
  const int64_t rows = config_.tokens();
  const int64_t width = config_.width;
  for (int64_t t = 0; t < rows; ++t) {
    const float* from = params.embedding.value.data() + tokens[size_t(t)] * width;
    std::copy(from, from + width, stream_.data() + t * width);
  }
  for (int64_t i = 0; i < config_.layers; ++i) {
    if (auto done = attend(params.layers[size_t(i)], layers_[size_t(i)], mode); !done) {
      return tl::unexpected(done.error());
    }
    feed_forward(params.layers[size_t(i)], layers_[size_t(i)]);
  }
  rms_norm(rows, {width, 0, width}, stream_.data(), params.final_norm.value.data(),
           final_normed_.data(), config_.threads);
  matmul(matrix(final_normed_, rows, width), matrix(params.w_head.value, width, kBytes), logits_,
         false, config_.threads);
  return cross_entropy(rows, kBytes, logits_.data(), targets.data(), config_.threads);
}

Result<void> Model::attend(LayerParams& p, Layer& layer, Mode mode) {
  const ModelConfig& c = config_;
  const int64_t rows = c.tokens();
  layer.input = stream_;
  rms_norm(rows, {c.width, 0, c.width}, stream_.data(), p.attention_norm.value.data(),
           layer.normed.data(), c.threads);
  const Matrix input = matrix(layer.normed, rows, c.width);
  matmul(input, matrix(p.w_q.value, c.width, c.heads * c.key_width()), wide_, false, c.threads);
  add_bias(rows, c.heads * c.key_width(), p.b_q.value.data(), wide_.data(), c.threads);
  rotation_.apply(rows, c.heads, c.key_width(), c.latent, 1.0f, wide_.data(), c.threads);
  layer.attention.q.assign(wide_.data(), c.threads);

  matmul(input, matrix(p.w_kv.value, c.width, c.key_width()), layer.kv_raw, false, c.threads);
  add_bias(rows, c.key_width(), p.b_kv.value.data(), layer.kv_raw.data(), c.threads);
  d_kv_ = layer.kv_raw;
  rms_norm(rows, {c.key_width(), 0, c.latent}, layer.kv_raw.data(), p.kv_norm.value.data(),
           d_kv_.data(), c.threads);
  rotation_.apply(rows, 1, c.key_width(), c.latent, 1.0f, d_kv_.data(), c.threads);
  layer.attention.kv.assign(d_kv_.data(), c.threads);

  if (mode != Mode::kDense) project_indexer(p, layer);
  if (mode == Mode::kSparse) {
    if (auto done = attention_.select(layer.attention); !done) return done;
  }
  if (auto done = attention_.forward(layer.attention, p.sink.value, mode == Mode::kSparse); !done) {
    return done;
  }
  layer.attention.out.read(layer.attended.data(), c.threads);
  matmul(matrix(layer.attended, rows, c.heads * c.latent),
         matrix(p.w_o.value, c.heads * c.latent, c.width), stream_, true, c.threads);
  return {};
}

void Model::project_indexer(LayerParams& p, Layer& layer) {
  const ModelConfig& c = config_;
  const int64_t rows = c.tokens();
  const Matrix input = matrix(layer.normed, rows, c.width);
  matmul(input, matrix(p.w_index_q.value, c.width, c.index_heads * kIndexWidth), layer.index_q,
         false, c.threads);
  add_bias(rows, c.index_heads * kIndexWidth, p.b_index_q.value.data(), layer.index_q.data(),
           c.threads);
  index_rotation_.apply(rows, c.index_heads, kIndexWidth, 0, 1.0f, layer.index_q.data(), c.threads);
  layer.attention.index_q.assign(layer.index_q.data(), c.threads);
  matmul(input, matrix(p.w_index_k.value, c.width, kIndexWidth), layer.index_k, false, c.threads);
  add_bias(rows, kIndexWidth, p.b_index_k.value.data(), layer.index_k.data(), c.threads);
  index_rotation_.apply(rows, 1, kIndexWidth, 0, 1.0f, layer.index_k.data(), c.threads);
  layer.attention.index_k.assign(layer.index_k.data(), c.threads);
  matmul(input, matrix(p.w_index_w.value, c.width, c.index_heads), layer.attention.index_w, false,
         c.threads);
  add_bias(rows, c.index_heads, p.b_index_w.value.data(), layer.attention.index_w.data(),
           c.threads);
}

void Model::feed_forward(LayerParams& p, Layer& layer) {
  const ModelConfig& c = config_;
  const int64_t rows = c.tokens();
  layer.middle = stream_;
  rms_norm(rows, {c.width, 0, c.width}, stream_.data(), p.mlp_norm.value.data(),
           layer.mlp_normed.data(), c.threads);
  matmul(matrix(layer.mlp_normed, rows, c.width), matrix(p.w_in.value, c.width, c.mlp),
         layer.hidden, false, c.threads);
  squared_relu(rows * c.mlp, layer.hidden.data(), layer.activated.data(), c.threads);
  matmul(matrix(layer.activated, rows, c.mlp), matrix(p.w_out.value, c.mlp, c.width), stream_, true,
         c.threads);
}

Result<void> Model::select(Params& params, int64_t layer) {
  Layer& activations = layers_[size_t(layer)];
  project_indexer(params.layers[size_t(layer)], activations);
  return attention_.select(activations.attention);
}

}  // namespace dsattn::demo
