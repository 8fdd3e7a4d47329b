// The operations of DeepSeek Sparse Attention: one argument struct, one function and one
// workspace query each. docs/contract.md holds the exact mathematics, edge cases and tolerances.
//
// Words: Sq query tokens, Skv key rows, H query heads, K top-k slots, D = width of q and kv,
// Dv = width of a value (the first Dv columns of kv), Hi indexer heads. Every tensor of rank >= 2
// takes any row strides with unit innermost stride. Outputs must not overlap inputs. Every output
// element is written on every successful call; a rejected call writes nothing.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "dsattn/result.h"
#include "dsattn/tensor.h"

namespace dsattn {

// ---------------------------------------------------------------------------------- backends

/// Who computes. kAuto takes CUDA for tensors in GPU memory and the CPU engine otherwise.
enum class Backend : uint8_t { kAuto, kRef, kCpu, kCuda, kSimSm90a, kSimSm100a };

/// "auto", "ref", "cpu", "cuda", "sim-sm90a", "sim-sm100a".
std::string_view to_string(Backend backend);
Result<Backend> parse_backend(std::string_view name);

struct BackendInfo {
  Backend backend = Backend::kAuto;
  bool available = false;
  std::string detail;  ///< what it runs on, or why it is unavailable
};

/// Every backend of this build, available or not, in the order of the enum.
std::vector<BackendInfo> backends();

/// Instruction sets of the CPU engine, ascending. kAuto takes the best the machine has.
enum class CpuIsa : uint8_t { kAuto, kBaseline, kAvx2, kAvx512, kAvx512Bf16, kAmx };

std::string_view to_string(CpuIsa isa);
Result<CpuIsa> parse_cpu_isa(std::string_view name);

/// The best instruction set of this machine (never kAuto).
CpuIsa best_cpu_isa();

/// How to execute a call.
struct ExecContext {
  Backend backend = Backend::kAuto;

  /// Scratch memory on the tensors' device, 64-byte aligned, at least as large as the operation's
  /// workspace query says for this very context. Contents are ignored and overwritten.
  void* workspace = nullptr;
  int64_t workspace_bytes = 0;

  /// CUDA stream (a cudaStream_t or CUstream); GPU backends order all work on it.
  void* stream = nullptr;

  /// CPU engine: threads to use; 0 = all cores. Results do not depend on it.
  int num_threads = 0;

  /// CPU engine: the instruction set to use at most.
  CpuIsa cpu_isa = CpuIsa::kAuto;

  /// CPU and ref: called now and then on the calling thread with the share done, in [0, 1].
  /// Returning false cancels: the call returns kCancelled and its outputs are unspecified.
  std::function<bool(double)> progress;
};

// -------------------------------------------------------------------------- groups of arguments

/// Queries and the latent rows that serve as keys (all D columns) and values (the first Dv).
struct AttentionInputs {
  TensorView q;                        ///< [Sq, H, D] BF16 or F16
  TensorView kv;                       ///< [Skv, D] q's dtype
  std::optional<float> softmax_scale;  ///< finite, > 0; default D^-0.5
};

/// Which rows each query attends to. Slot j of query t is valid iff
/// j < clamp(topk_length[t], 0, K) and 0 <= topk_idxs[t, j] < Skv.
struct SparseSelection {
  TensorView topk_idxs;    ///< [Sq, K] I32, K <= 65,536
  TensorView topk_length;  ///< [Sq] I32, optional: absent = K
};

/// The lightning indexer's operands.
struct IndexerInputs {
  TensorView index_q;     ///< [Sq, Hi, 128] BF16
  TensorView index_k;     ///< [Skv, 128] BF16
  TensorView index_w;     ///< [Sq, Hi] BF16 or F32
  float sm_scale = 1.0f;  ///< multiplies once, after the sum over heads; finite
};

/// Causal mask with compression ratio: in segment b, local key s is visible to local query t iff
/// s < clamp((q_offsets[b] + t + 1) / ratio, 0, Skv_b). Without cu_seqlens there is one segment.
struct CausalMask {
  int64_t ratio = 1;        ///< >= 1
  TensorView cu_seqlens_q;  ///< [B + 1] I32, optional (both or neither): 0, ..., Sq
  TensorView cu_seqlens_k;  ///< [B + 1] I32, optional: 0, ..., Skv
  TensorView q_offsets;     ///< [B] I32, optional: global position of a segment's first query
};

/// How the indexer's loss is scaled and differentiated, and where its gradients go.
struct IndexerGradients {
  TensorView grad_loss;        ///< [] or [1] F32, optional: default 1
  float loss_coeff = 1.0f;     ///< finite
  int64_t num_tokens = 0;      ///< N, the divisor of the loss; 0 = Sq
  bool clipped = false;        ///< the published form that clips at e^-100; default exact
  bool deterministic = false;  ///< d_index_k bitwise repeatable (always so on ref and cpu)
  TensorView d_index_q;        ///< out [Sq, Hi, 128] index_q's dtype
  TensorView d_index_k;        ///< out [Skv, 128] index_k's dtype or F32
  TensorView d_index_w;        ///< out [Sq, Hi] F32
};

/// Order of the ids that a top-k writes; padding (-1) always comes last.
enum class TopKOrder : uint8_t { kId, kScore };

/// Whether ids count rows of index_k (global) or rows of the query's own segment (local).
enum class IdSpace : uint8_t { kGlobal, kLocal };

// --------------------------------------------------------------------------------- operations

/// out = softmax over the valid slots (and the sink), times values. Contract section 1.
struct SparseAttentionForwardArgs : AttentionInputs, SparseSelection {
  TensorView sink;        ///< [H] F32, optional: absent = -inf
  TensorView out;         ///< out [Sq, H, Dv] q's dtype
  TensorView lse;         ///< out [Sq, H] F32: natural log, keys only; +inf for an empty row
  TensorView max_logits;  ///< out [Sq, H] F32, optional: -inf for an empty row
};

/// Gradients of sparse_attention_forward. Contract section 2.
struct SparseAttentionBackwardArgs : AttentionInputs, SparseSelection {
  TensorView sink;             ///< [H] F32, optional
  TensorView out;              ///< [Sq, H, Dv] q's dtype, as the forward stored it
  TensorView dout;             ///< [Sq, H, Dv] q's dtype
  TensorView lse;              ///< [Sq, H] F32, as the forward stored it
  bool deterministic = false;  ///< dkv and d_sink bitwise repeatable (always so on ref and cpu)
  TensorView dq;               ///< out [Sq, H, D] q's dtype
  TensorView dkv;              ///< out [Skv, D] kv's dtype or F32
  TensorView d_sink;           ///< out [H] F32, optional
};

/// Forward, then backward from the stored (rounded) out and lse.
struct SparseAttentionArgs : AttentionInputs, SparseSelection {
  TensorView sink;  ///< [H] F32, optional
  TensorView dout;  ///< [Sq, H, Dv] q's dtype
  bool deterministic = false;
  TensorView out;         ///< out [Sq, H, Dv] q's dtype
  TensorView lse;         ///< out [Sq, H] F32
  TensorView max_logits;  ///< out [Sq, H] F32, optional
  TensorView dq;          ///< out [Sq, H, D] q's dtype
  TensorView dkv;         ///< out [Skv, D] kv's dtype or F32
  TensorView d_sink;      ///< out [H] F32, optional
};

/// scores[t, s] = sm_scale * sum_h relu(<index_q[t, h], index_k[s]>) * index_w[t, h]; hidden
/// keys are exactly -inf. Contract section 3.
struct IndexerForwardArgs : IndexerInputs, CausalMask {
  TensorView scores;  ///< out [Sq, Skv] F32
};

/// The k largest finite-or-+inf scores of each row; ties: smallest ids win. Contract section 4.
struct IndexerTopKArgs {
  TensorView scores;    ///< [Sq, Skv] F32
  TensorView seq_lens;  ///< [Sq] I32, optional: only the first seq_lens[t] columns count
  TopKOrder order = TopKOrder::kId;
  TensorView topk_idxs;    ///< out [Sq, K] I32, K <= 65,536: the width gives k; padding -1
  TensorView topk_values;  ///< out [Sq, K] F32, optional: padding -inf
};

/// indexer_forward and indexer_top_k without the score matrix: memory O(Sq K).
struct IndexerForwardTopKArgs : IndexerInputs, CausalMask {
  TopKOrder order = TopKOrder::kId;
  IdSpace ids = IdSpace::kGlobal;
  TensorView topk_idxs;    ///< out [Sq, K] I32
  TensorView topk_values;  ///< out [Sq, K] F32, optional
};

/// predict = softmax of the indexer's scores over the row's valid slots. Contract section 5.
struct SparseIndexerScoresArgs : IndexerInputs, SparseSelection {
  TensorView predict;  ///< out [Sq, K] F32
};

/// target = attention probability summed over heads, normalised over the row's valid slots.
struct SparseAttentionScoresArgs : AttentionInputs, SparseSelection {
  TensorView lse;     ///< [Sq, H] F32
  TensorView sink;    ///< [H] F32, optional
  TensorView target;  ///< out [Sq, K] F32
};

/// predict over all visible keys.
struct DenseIndexerScoresArgs : IndexerInputs, CausalMask {
  TensorView predict;  ///< out [Sq, Skv] F32
};

/// lse of dense masked attention, as dense_attention_scores needs it; +inf for an empty row.
struct DenseAttentionLseArgs : AttentionInputs, CausalMask {
  TensorView lse;  ///< out [Sq, H] F32
};

/// target over all visible keys.
struct DenseAttentionScoresArgs : AttentionInputs, CausalMask {
  TensorView lse;     ///< [Sq, H] F32
  TensorView sink;    ///< [H] F32, optional
  TensorView target;  ///< out [Sq, Skv] F32
};

/// Gradients of the KL loss with respect to the indexer, sparse rows. Contract section 6.
struct IndexerBackwardArgs : IndexerInputs, SparseSelection, IndexerGradients {
  TensorView predict;  ///< [Sq, K] F32
  TensorView target;   ///< [Sq, K] F32
};

/// The same over all visible keys.
struct DenseIndexerBackwardArgs : IndexerInputs, CausalMask, IndexerGradients {
  TensorView predict;  ///< [Sq, Skv] F32
  TensorView target;   ///< [Sq, Skv] F32
};

/// Loss and gradients in one pass over the sparse rows; predict and target are never stored.
struct SparseIndexerLossArgs : IndexerInputs, AttentionInputs, SparseSelection, IndexerGradients {
  TensorView lse;   ///< [Sq, H] F32
  TensorView sink;  ///< [H] F32, optional
  TensorView loss;  ///< out [] or [1] F32
};

/// Loss and gradients over all visible keys, streamed: no (Sq, Skv) tensor.
struct DenseIndexerLossArgs : IndexerInputs, AttentionInputs, CausalMask, IndexerGradients {
  TensorView lse;   ///< [Sq, H] F32
  TensorView sink;  ///< [H] F32, optional
  TensorView loss;  ///< out [] or [1] F32
};

// Each function validates, then runs on ctx.backend. Each query returns the bytes of workspace
// that the same arguments (data pointers may be null) and context need.
#define DSATTN_DECLARE_OP(name, Args)                               \
  Result<void> name(const Args& args, const ExecContext& ctx = {}); \
  Result<int64_t> name##_workspace(const Args& args, const ExecContext& ctx = {});

DSATTN_DECLARE_OP(sparse_attention_forward, SparseAttentionForwardArgs)
DSATTN_DECLARE_OP(sparse_attention_backward, SparseAttentionBackwardArgs)
DSATTN_DECLARE_OP(sparse_attention, SparseAttentionArgs)
DSATTN_DECLARE_OP(indexer_forward, IndexerForwardArgs)
DSATTN_DECLARE_OP(indexer_top_k, IndexerTopKArgs)
DSATTN_DECLARE_OP(indexer_forward_top_k, IndexerForwardTopKArgs)
DSATTN_DECLARE_OP(sparse_indexer_scores, SparseIndexerScoresArgs)
DSATTN_DECLARE_OP(sparse_attention_scores, SparseAttentionScoresArgs)
DSATTN_DECLARE_OP(dense_indexer_scores, DenseIndexerScoresArgs)
DSATTN_DECLARE_OP(dense_attention_lse, DenseAttentionLseArgs)
DSATTN_DECLARE_OP(dense_attention_scores, DenseAttentionScoresArgs)
DSATTN_DECLARE_OP(indexer_backward, IndexerBackwardArgs)
DSATTN_DECLARE_OP(dense_indexer_backward, DenseIndexerBackwardArgs)
DSATTN_DECLARE_OP(sparse_indexer_loss, SparseIndexerLossArgs)
DSATTN_DECLARE_OP(dense_indexer_loss, DenseIndexerLossArgs)

#undef DSATTN_DECLARE_OP

}  // namespace dsattn
