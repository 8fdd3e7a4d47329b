// Gradients of the model, layer by layer from the loss down. Sums over tokens are matrix products
// or fixed blocks, so a gradient's bits do not depend on the number of threads.
#include <algorithm>

#include "matmul.h"
#include "model.h"

namespace dsattn::demo {
namespace {

constexpr int64_t kBytes = 256;

}  // namespace

Result<StepLoss> Model::forward_backward(Params& params, std::span<const uint8_t> tokens,
                                         std::span<const uint8_t> targets, Mode mode) {
  const int64_t rows = config_.tokens();
  const int64_t width = config_.width;
  const int threads = config_.threads;
  for (Param* p : params.all()) std::fill(p->grad.begin(), p->grad.end(), 0.0f);
  const Result<double> loss = forward(params, tokens, targets, mode);
  if (!loss) return tl::unexpected(loss.error());
  StepLoss result{*loss, 0.0};

  const Matrix d_logits = matrix(logits_, rows, kBytes);
  matmul(transposed(matrix(final_normed_, rows, width)), d_logits, params.w_head.grad, true,
         threads);
  matmul(d_logits, transposed(matrix(params.w_head.value, width, kBytes)), d_normed_, false,
         threads);
  rms_norm_backward(rows, {width, 0, width}, stream_.data(), params.final_norm.value.data(),
                    d_normed_.data(), d_stream_.data(), false, params.final_norm.grad, threads);
  for (int64_t i = config_.layers; i-- > 0;) {
    LayerParams& p = params.layers[size_t(i)];
    Layer& layer = layers_[size_t(i)];
    backward_feed_forward(p, layer);
    if (auto done = backward_attend(p, layer, mode); !done) return tl::unexpected(done.error());
    if (mode == Mode::kDense) continue;
    const Result<double> kl = backward_indexer(p, layer, mode);
    if (!kl) return tl::unexpected(kl.error());
    result.indexer += *kl / static_cast<double>(config_.layers);
  }
  for (int64_t t = 0; t < rows; ++t) {
    float* to = params.embedding.grad.data() + tokens[size_t(t)] * width;
    for (int64_t i = 0; i < width; ++i) to[i] += d_stream_[size_t(t * width + i)];
  }
  return result;
}

void Model::backward_feed_forward(LayerParams& p, Layer& layer) {
  const ModelConfig& c = config_;
  const int64_t rows = c.tokens();
  const Matrix d_out = matrix(d_stream_, rows, c.width);
  matmul(transposed(matrix(layer.activated, rows, c.mlp)), d_out, p.w_out.grad, true, c.threads);
  matmul(d_out, transposed(matrix(p.w_out.value, c.mlp, c.width)), d_hidden_, false, c.threads);
  squared_relu_backward(rows * c.mlp, layer.hidden.data(), d_hidden_.data(), d_hidden_.data(),
                        c.threads);
  const Matrix d_hidden = matrix(d_hidden_, rows, c.mlp);
  matmul(transposed(matrix(layer.mlp_normed, rows, c.width)), d_hidden, p.w_in.grad, true,
         c.threads);
  matmul(d_hidden, transposed(matrix(p.w_in.value, c.width, c.mlp)), d_normed_, false, c.threads);
  rms_norm_backward(rows, {c.width, 0, c.width}, layer.middle.data(), p.mlp_norm.value.data(),
                    d_normed_.data(), d_stream_.data(), true, p.mlp_norm.grad, c.threads);
}

Result<void> Model::backward_attend(LayerParams& p, Layer& layer, Mode mode) {
  const ModelConfig& c = config_;
  const int64_t rows = c.tokens();
  const int64_t out_width = c.heads * c.latent;
  const int64_t q_width = c.heads * c.key_width();
  const Matrix d_out = matrix(d_stream_, rows, c.width);
  matmul(transposed(matrix(layer.attended, rows, out_width)), d_out, p.w_o.grad, true, c.threads);
  // `attended` has served its purpose: it takes its own gradient.
  matmul(d_out, transposed(matrix(p.w_o.value, out_width, c.width)), layer.attended, false,
         c.threads);
  layer.attention.dout.assign(layer.attended.data(), c.threads);
  const bool sparse = mode == Mode::kSparse;
  if (auto done = attention_.backward(layer.attention, p.sink.value, sparse, grads_); !done) {
    return done;
  }
  p.sink.grad = grads_.d_sink;

  const Matrix input = transposed(matrix(layer.normed, rows, c.width));
  grads_.dq.read(wide_.data(), c.threads);
  rotation_.apply(rows, c.heads, c.key_width(), c.latent, -1.0f, wide_.data(), c.threads);
  add_row_sums(rows, q_width, wide_.data(), p.b_q.grad, c.threads);
  matmul(input, matrix(wide_, rows, q_width), p.w_q.grad, true, c.threads);
  matmul(matrix(wide_, rows, q_width), transposed(matrix(p.w_q.value, c.width, q_width)), d_normed_,
         false, c.threads);

  rotation_.apply(rows, 1, c.key_width(), c.latent, -1.0f, grads_.dkv.data(), c.threads);
  d_kv_ = grads_.dkv;
  rms_norm_backward(rows, {c.key_width(), 0, c.latent}, layer.kv_raw.data(), p.kv_norm.value.data(),
                    grads_.dkv.data(), d_kv_.data(), false, p.kv_norm.grad, c.threads);
  add_row_sums(rows, c.key_width(), d_kv_.data(), p.b_kv.grad, c.threads);
  matmul(input, matrix(d_kv_, rows, c.key_width()), p.w_kv.grad, true, c.threads);
  matmul(matrix(d_kv_, rows, c.key_width()),
         transposed(matrix(p.w_kv.value, c.width, c.key_width())), d_normed_, true, c.threads);
  rms_norm_backward(rows, {c.width, 0, c.width}, layer.input.data(), p.attention_norm.value.data(),
                    d_normed_.data(), d_stream_.data(), true, p.attention_norm.grad, c.threads);
  return {};
}

Result<double> Model::backward_indexer(LayerParams& p, Layer& layer, Mode mode) {
  const ModelConfig& c = config_;
  const int64_t rows = c.tokens();
  const int64_t q_width = c.index_heads * kIndexWidth;
  const Result<float> loss =
      attention_.indexer_loss(layer.attention, p.sink.value, mode == Mode::kSparse, grads_);
  if (!loss) return tl::unexpected(loss.error());
  const Matrix input = transposed(matrix(layer.normed, rows, c.width));
  grads_.d_index_q.read(d_index_q_.data(), c.threads);
  index_rotation_.apply(rows, c.index_heads, kIndexWidth, 0, -1.0f, d_index_q_.data(), c.threads);
  add_row_sums(rows, q_width, d_index_q_.data(), p.b_index_q.grad, c.threads);
  matmul(input, matrix(d_index_q_, rows, q_width), p.w_index_q.grad, true, c.threads);
  index_rotation_.apply(rows, 1, kIndexWidth, 0, -1.0f, grads_.d_index_k.data(), c.threads);
  add_row_sums(rows, kIndexWidth, grads_.d_index_k.data(), p.b_index_k.grad, c.threads);
  matmul(input, matrix(grads_.d_index_k, rows, kIndexWidth), p.w_index_k.grad, true, c.threads);
  matmul(input, matrix(grads_.d_index_w, rows, c.index_heads), p.w_index_w.grad, true, c.threads);
  add_row_sums(rows, c.index_heads, grads_.d_index_w.data(), p.b_index_w.grad, c.threads);
  return static_cast<double>(*loss);
}

}  // namespace dsattn::demo
