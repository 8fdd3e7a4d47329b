// The network: byte embedding; layers of RMSNorm, absorbed multi-head latent attention and a
// squared-ReLU MLP; RMSNorm; a linear head. In absorbed form all heads share one row per token,
// kv = [latent | rotary position], whose latent part is also the value; each head brings its own
// query of that row's width. Beside each attention sits an indexer that reads the same layer input,
// learns from the attention alone, and sends no gradient back into the model.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "attention.h"
#include "layers.h"

namespace dsattn::demo {

/// A weight array with its gradient and the optimizer's moments.
struct Param {
  std::vector<float> value, grad, first, second;
  bool decays = false;   ///< weight decay: matrices only
  bool indexer = false;  ///< trained by the indexer's loss
};

struct LayerParams {
  Param attention_norm, w_q, b_q, w_kv, b_kv, kv_norm, sink, w_o;
  Param mlp_norm, w_in, w_out;
  Param w_index_q, b_index_q, w_index_k, b_index_k, w_index_w, b_index_w;
};

/// All weights; copying it forks a training run.
struct Params {
  Param embedding, final_norm, w_head;
  std::vector<LayerParams> layers;

  static Params make(const ModelConfig& config, uint64_t seed);
  std::vector<Param*> all();
  int64_t count() const;
};

/// What the indexer does in a pass.
enum class Mode {
  kDense,        ///< all causal keys; the indexer is left alone
  kDenseWarmup,  ///< all causal keys; the indexer learns from dense attention
  kSparse,       ///< the indexer's top-k; it learns from attention over them
};

struct StepLoss {
  double model = 0.0;    ///< mean nats per byte
  double indexer = 0.0;  ///< mean KL per query, averaged over layers; 0 in kDense
};

class Model {
 public:
  explicit Model(const ModelConfig& config);

  /// Mean loss of predicting targets[t] from tokens[..t]. Spans hold config.tokens() bytes.
  Result<double> forward(Params& params, std::span<const uint8_t> tokens,
                         std::span<const uint8_t> targets, Mode mode);
  /// forward, then gradients of both losses into every Param's grad (zeroed first).
  Result<StepLoss> forward_backward(Params& params, std::span<const uint8_t> tokens,
                                    std::span<const uint8_t> targets, Mode mode);

  /// Runs a layer's indexer on the input of the last forward: fills state(layer).topk_idxs.
  Result<void> select(Params& params, int64_t layer);
  AttentionState& state(int64_t layer) { return layers_[size_t(layer)].attention; }
  Attention& attention() { return attention_; }
  const ModelConfig& config() const { return config_; }

 private:
  using Floats = std::vector<float>;
  struct Layer {  // activations of one layer that its backward needs
    explicit Layer(const ModelConfig& config);
    Floats input, normed, kv_raw, attended, middle, mlp_normed, hidden, activated;
    Floats index_q, index_k;  // [T, Hi * 128], [T, 128] before storage
    AttentionState attention;
  };

  Result<void> attend(LayerParams& p, Layer& layer, Mode mode);
  void feed_forward(LayerParams& p, Layer& layer);
  void project_indexer(LayerParams& p, Layer& layer);
  Result<void> backward_attend(LayerParams& p, Layer& layer, Mode mode);
  void backward_feed_forward(LayerParams& p, Layer& layer);
  Result<double> backward_indexer(LayerParams& p, Layer& layer, Mode mode);

  ModelConfig config_;
  Attention attention_;
  Rotation rotation_, index_rotation_;
  std::vector<Layer> layers_;
  AttentionGradients grads_;
  Floats stream_, final_normed_, logits_;    // [T, C], [T, C], [T, 256]
  Floats d_stream_, d_normed_, d_hidden_;    // [T, C], [T, C], [T, mlp]
  Floats wide_, d_kv_, d_index_q_, branch_;  // [T, H * D], [T, D], [T, Hi * 128], [T, C]
};

}  // namespace dsattn::demo
