// The bridge between the model's fp32 arrays and the library: bf16 copies of what the operations
// read, views of them, and workspaces. Everything about attention and the indexer is computed by
// dsattn/ops.h; nothing of it is computed here.
#pragma once

#include <cstdint>
#include <vector>

#include "dsattn/ops.h"

namespace dsattn::demo {

/// Widths of the model and how its attention runs.
struct ModelConfig {
  int64_t layers = 4;
  int64_t width = 128;      ///< of the residual stream
  int64_t heads = 4;        ///< H
  int64_t latent = 64;      ///< Dv: the values, and the keys' content columns
  int64_t rope = 32;        ///< position columns; D = latent + rope
  int64_t mlp = 512;        ///< hidden width of the MLP
  int64_t index_heads = 2;  ///< Hi
  int64_t index_rope = 64;  ///< position columns among the indexer's 128
  int64_t context = 512;    ///< tokens of a sequence
  int64_t sequences = 4;    ///< sequences of a batch, flattened
  int64_t top_k = 64;       ///< keys per query
  Backend backend = Backend::kCpu;
  DType storage = DType::kBF16;  ///< of attention operands; F32 only on ref, for gradient checks
  int threads = 1;

  int64_t tokens() const { return context * sequences; }
  int64_t key_width() const { return latent + rope; }
};

inline constexpr int64_t kIndexWidth = 128;

/// An array in the storage type of attention.
class Storage {
 public:
  Storage() = default;
  Storage(DType dtype, int64_t count);
  void assign(const float* from, int threads);
  void read(float* to, int threads) const;
  TensorView view(std::initializer_list<int64_t> shape) const;

 private:
  DType dtype_ = DType::kNone;
  int64_t count_ = 0;
  std::vector<uint64_t> memory_;
};

/// What attention of one layer reads and writes, kept for the backward pass.
struct AttentionState {
  explicit AttentionState(const ModelConfig& config);

  Storage q, kv, out, dout;        // [T, H, D], [T, D], [T, H, Dv], [T, H, Dv]
  Storage index_q, index_k;        // [T, Hi, 128], [T, 128]
  std::vector<float> index_w;      // [T, Hi]
  std::vector<float> lse;          // [T, H]
  std::vector<int32_t> topk_idxs;  // [T, k], ids chosen by the indexer
};

/// Gradients of one layer's attention.
struct AttentionGradients {
  explicit AttentionGradients(const ModelConfig& config);

  Storage dq, d_index_q;
  std::vector<float> dkv, d_sink, d_index_k, d_index_w;
};

/// Calls the library on the states of layers; owns the workspace and what batches have in common.
class Attention {
 public:
  explicit Attention(const ModelConfig& config);

  /// Fills state.topk_idxs with the indexer's choice.
  Result<void> select(AttentionState& state);
  /// out and lse; over state.topk_idxs if `sparse`, over all causal keys otherwise.
  Result<void> forward(AttentionState& state, const std::vector<float>& sink, bool sparse);
  Result<void> backward(AttentionState& state, const std::vector<float>& sink, bool sparse,
                        AttentionGradients& grads);
  /// KL of the indexer against attention; its gradients. Same meaning of `sparse`.
  Result<float> indexer_loss(AttentionState& state, const std::vector<float>& sink, bool sparse,
                             AttentionGradients& grads);
  /// Attention over all causal keys, summed over heads: target[T, T], each visible row sums to 1.
  Result<void> dense_target(AttentionState& state, const std::vector<float>& sink,
                            std::vector<float>& target);

  /// The views of a problem: `selection` for sparse or all causal keys.
  SparseSelection selection(AttentionState& state, bool sparse);
  AttentionInputs inputs(AttentionState& state) const;
  const ModelConfig& config() const { return config_; }

 private:
  template <class Op, class Query, class Args>
  Result<void> call(Op op, Query query, const Args& args);
  IndexerInputs indexer(AttentionState& state) const;
  CausalMask mask();

  ModelConfig config_;
  std::vector<int32_t> cu_seqlens_;
  std::vector<int32_t> causal_idxs_;     // [T, context]: every position of the sequence
  std::vector<int32_t> causal_lengths_;  // [T]: position + 1
  std::vector<char> workspace_;
};

}  // namespace dsattn::demo
