// Arguments of the operations from the states of a layer, and the calls.
#include "attention.h"

#include <algorithm>
#include <cmath>

#include "base/float16.h"

namespace dsattn::demo {
namespace {

constexpr int64_t kAlignment = 64;

TensorView f32(std::vector<float>& data, std::initializer_list<int64_t> shape) {
  return {data.data(), DType::kF32, shape};
}

TensorView i32(std::vector<int32_t>& data, std::initializer_list<int64_t> shape) {
  return {data.data(), DType::kI32, shape};
}

// Arguments name sinks as outputs do, by a mutable pointer; inputs are never written.
TensorView sink_view(const std::vector<float>& sink) {
  return {const_cast<float*>(sink.data()), DType::kF32, {static_cast<int64_t>(sink.size())}};
}

// Sums over `index_heads` products of two rows of 128 unit entries stay near 1.
float index_scale(const ModelConfig& config) {
  return 1.0f / std::sqrt(static_cast<float>(kIndexWidth * config.index_heads));
}

}  // namespace

Storage::Storage(DType dtype, int64_t count)
    : dtype_(dtype), count_(count), memory_(size_t(count * size_bytes(dtype) + 7) / 8) {}

void Storage::assign(const float* from, int threads) {
  if (dtype_ == DType::kF32) {
    std::copy(from, from + count_, reinterpret_cast<float*>(memory_.data()));
    return;
  }
  bf16* to = reinterpret_cast<bf16*>(memory_.data());
#pragma omp parallel for schedule(static) num_threads(threads)
  for (int64_t i = 0; i < count_; ++i) to[i] = to_bf16(from[i]);
}

void Storage::read(float* to, int threads) const {
  if (dtype_ == DType::kF32) {
    const float* from = reinterpret_cast<const float*>(memory_.data());
    std::copy(from, from + count_, to);
    return;
  }
  const bf16* from = reinterpret_cast<const bf16*>(memory_.data());
#pragma omp parallel for schedule(static) num_threads(threads)
  for (int64_t i = 0; i < count_; ++i) to[i] = to_float(from[i]);
}

TensorView Storage::view(std::initializer_list<int64_t> shape) const {
  return {const_cast<uint64_t*>(memory_.data()), dtype_, shape};
}

AttentionState::AttentionState(const ModelConfig& c)
    : q(c.storage, c.tokens() * c.heads * c.key_width()),
      kv(c.storage, c.tokens() * c.key_width()),
      out(c.storage, c.tokens() * c.heads * c.latent),
      dout(c.storage, c.tokens() * c.heads * c.latent),
      index_q(c.storage, c.tokens() * c.index_heads * kIndexWidth),
      index_k(c.storage, c.tokens() * kIndexWidth),
      index_w(size_t(c.tokens() * c.index_heads)),
      lse(size_t(c.tokens() * c.heads)),
      topk_idxs(size_t(c.tokens() * c.top_k), -1) {}

AttentionGradients::AttentionGradients(const ModelConfig& c)
    : dq(c.storage, c.tokens() * c.heads * c.key_width()),
      d_index_q(c.storage, c.tokens() * c.index_heads * kIndexWidth),
      dkv(size_t(c.tokens() * c.key_width())),
      d_sink(size_t(c.heads)),
      d_index_k(size_t(c.tokens() * kIndexWidth)),
      d_index_w(size_t(c.tokens() * c.index_heads)) {}

Attention::Attention(const ModelConfig& config) : config_(config) {
  for (int64_t b = 0; b <= config.sequences; ++b) {
    cu_seqlens_.push_back(static_cast<int32_t>(b * config.context));
  }
  causal_idxs_.reserve(size_t(config.tokens() * config.context));
  for (int64_t t = 0; t < config.tokens(); ++t) {
    const int64_t position = t % config.context;
    causal_lengths_.push_back(static_cast<int32_t>(position + 1));
    for (int64_t s = 0; s < config.context; ++s) {
      causal_idxs_.push_back(s <= position ? static_cast<int32_t>(t - position + s) : -1);
    }
  }
}

template <class Op, class Query, class Args>
Result<void> Attention::call(Op op, Query query, const Args& args) {
  ExecContext ctx;
  ctx.backend = config_.backend;
  ctx.num_threads = config_.threads;
  const Result<int64_t> bytes = query(args, ctx);
  if (!bytes) return tl::unexpected(bytes.error());
  const size_t wanted = static_cast<size_t>(*bytes + kAlignment);
  if (workspace_.size() < wanted) workspace_.resize(wanted);
  const auto start = reinterpret_cast<uintptr_t>(workspace_.data());
  ctx.workspace = workspace_.data() + (kAlignment - start % kAlignment) % kAlignment;
  ctx.workspace_bytes = *bytes;
  return op(args, ctx);
}

AttentionInputs Attention::inputs(AttentionState& state) const {
  AttentionInputs inputs;
  inputs.q = state.q.view({config_.tokens(), config_.heads, config_.key_width()});
  inputs.kv = state.kv.view({config_.tokens(), config_.key_width()});
  return inputs;
}

SparseSelection Attention::selection(AttentionState& state, bool sparse) {
  SparseSelection selection;
  if (sparse) {
    selection.topk_idxs = i32(state.topk_idxs, {config_.tokens(), config_.top_k});
  } else {
    selection.topk_idxs = i32(causal_idxs_, {config_.tokens(), config_.context});
    selection.topk_length = i32(causal_lengths_, {config_.tokens()});
  }
  return selection;
}

IndexerInputs Attention::indexer(AttentionState& state) const {
  IndexerInputs inputs;
  inputs.index_q = state.index_q.view({config_.tokens(), config_.index_heads, kIndexWidth});
  inputs.index_k = state.index_k.view({config_.tokens(), kIndexWidth});
  inputs.index_w = f32(state.index_w, {config_.tokens(), config_.index_heads});
  inputs.sm_scale = index_scale(config_);
  return inputs;
}

CausalMask Attention::mask() {
  CausalMask mask;
  mask.cu_seqlens_q = i32(cu_seqlens_, {config_.sequences + 1});
  mask.cu_seqlens_k = mask.cu_seqlens_q;
  return mask;
}

Result<void> Attention::select(AttentionState& state) {
  IndexerForwardTopKArgs args;
  static_cast<IndexerInputs&>(args) = indexer(state);
  static_cast<CausalMask&>(args) = mask();
  args.topk_idxs = i32(state.topk_idxs, {config_.tokens(), config_.top_k});
  return call(indexer_forward_top_k, indexer_forward_top_k_workspace, args);
}

Result<void> Attention::forward(AttentionState& state, const std::vector<float>& sink,
                                bool sparse) {
  SparseAttentionForwardArgs args;
  static_cast<AttentionInputs&>(args) = inputs(state);
  static_cast<SparseSelection&>(args) = selection(state, sparse);
  args.sink = sink_view(sink);
  args.out = state.out.view({config_.tokens(), config_.heads, config_.latent});
  args.lse = f32(state.lse, {config_.tokens(), config_.heads});
  return call(sparse_attention_forward, sparse_attention_forward_workspace, args);
}

Result<void> Attention::backward(AttentionState& state, const std::vector<float>& sink, bool sparse,
                                 AttentionGradients& grads) {
  SparseAttentionBackwardArgs args;
  static_cast<AttentionInputs&>(args) = inputs(state);
  static_cast<SparseSelection&>(args) = selection(state, sparse);
  args.sink = sink_view(sink);
  args.out = state.out.view({config_.tokens(), config_.heads, config_.latent});
  args.dout = state.dout.view({config_.tokens(), config_.heads, config_.latent});
  args.lse = f32(state.lse, {config_.tokens(), config_.heads});
  args.deterministic = true;
  args.dq = grads.dq.view({config_.tokens(), config_.heads, config_.key_width()});
  args.dkv = f32(grads.dkv, {config_.tokens(), config_.key_width()});
  args.d_sink = f32(grads.d_sink, {config_.heads});
  return call(sparse_attention_backward, sparse_attention_backward_workspace, args);
}

Result<float> Attention::indexer_loss(AttentionState& state, const std::vector<float>& sink,
                                      bool sparse, AttentionGradients& grads) {
  float loss = 0.0f;
  const auto fill = [&](auto& args) {
    static_cast<IndexerInputs&>(args) = indexer(state);
    static_cast<AttentionInputs&>(args) = inputs(state);
    args.lse = f32(state.lse, {config_.tokens(), config_.heads});
    args.sink = sink_view(sink);
    args.deterministic = true;
    args.d_index_q = grads.d_index_q.view({config_.tokens(), config_.index_heads, kIndexWidth});
    args.d_index_k = f32(grads.d_index_k, {config_.tokens(), kIndexWidth});
    args.d_index_w = f32(grads.d_index_w, {config_.tokens(), config_.index_heads});
    args.loss = TensorView(&loss, DType::kF32, {1});
  };
  Result<void> done;
  if (sparse) {
    SparseIndexerLossArgs args;
    fill(args);
    static_cast<SparseSelection&>(args) = selection(state, true);
    done = call(sparse_indexer_loss, sparse_indexer_loss_workspace, args);
  } else {
    DenseIndexerLossArgs args;
    fill(args);
    static_cast<CausalMask&>(args) = mask();
    done = call(dense_indexer_loss, dense_indexer_loss_workspace, args);
  }
  if (!done) return tl::unexpected(done.error());
  return loss;
}

Result<void> Attention::dense_target(AttentionState& state, const std::vector<float>& sink,
                                     std::vector<float>& target) {
  const int64_t tokens = config_.tokens();
  std::vector<float> dense_lse(size_t(tokens * config_.heads));
  DenseAttentionLseArgs lse_args;
  static_cast<AttentionInputs&>(lse_args) = inputs(state);
  static_cast<CausalMask&>(lse_args) = mask();
  lse_args.lse = f32(dense_lse, {tokens, config_.heads});
  if (auto done = call(dense_attention_lse, dense_attention_lse_workspace, lse_args); !done) {
    return done;
  }
  target.resize(size_t(tokens * tokens));
  DenseAttentionScoresArgs args;
  static_cast<AttentionInputs&>(args) = inputs(state);
  static_cast<CausalMask&>(args) = mask();
  args.lse = lse_args.lse;
  args.sink = sink_view(sink);
  args.target = f32(target, {tokens, tokens});
  return call(dense_attention_scores, dense_attention_scores_workspace, args);
}

}  // namespace dsattn::demo
