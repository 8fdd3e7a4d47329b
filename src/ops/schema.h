// Each operation described as data: its tensors (name, dimensions, element types) and its scalar
// parameters, with the member that holds each. Validation, the command and the tests read it, so
// that a tensor is described once. A new operation is a struct in ops.h and a Schema here.
#pragma once

#include <optional>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <variant>
#include <vector>

#include "dsattn/ops.h"

namespace dsattn {

enum class Access : uint8_t { kIn, kOptionalIn, kOut, kOptionalOut };

/// Which element types a tensor takes. On the ref backend every floating tensor also takes F64,
/// and storage types also take F32.
enum class TypeRule : uint8_t {
  kStorage,       ///< BF16 or F16; all kStorage tensors of a call agree
  kStorageOrF32,  ///< the call's storage type, or F32
  kIndex,         ///< BF16 (the indexer's operands)
  kIndexOrF32,    ///< BF16 or F32
  kF32,
  kI32,
};

struct TensorSpec {
  std::string_view name;
  std::string_view dims;  ///< comma-separated symbols, numbers or B+1; "scalar": () or (1,)
  TypeRule type;
  Access access;

  bool is_output() const { return access == Access::kOut || access == Access::kOptionalOut; }
  bool is_optional() const {
    return access == Access::kOptionalIn || access == Access::kOptionalOut;
  }
};

template <class Args>
struct TensorField {
  TensorSpec spec;
  TensorView Args::*member;
};

template <class Args>
struct ParamField {
  using Member = std::variant<float Args::*, std::optional<float> Args::*, int64_t Args::*,
                              bool Args::*, TopKOrder Args::*, IdSpace Args::*>;
  std::string_view name;  ///< as in a problem file's metadata
  Member member;
};

/// Schema<Args>::kName, ::tensors(), ::params(). Specialised for every operation below.
template <class Args>
struct Schema;

namespace schema_detail {

template <class Args>
using Tensors = std::vector<TensorField<Args>>;
template <class Args>
using Params = std::vector<ParamField<Args>>;

template <class T>
std::vector<T> join(std::initializer_list<std::vector<T>> parts) {
  std::vector<T> all;
  for (const auto& part : parts) all.insert(all.end(), part.begin(), part.end());
  return all;
}

using enum Access;
using enum TypeRule;

template <class A>
Tensors<A> attention() {
  return {{{"q", "Sq,H,D", kStorage, kIn}, &A::q}, {{"kv", "Skv,D", kStorage, kIn}, &A::kv}};
}
template <class A>
Params<A> attention_params() {
  return {{"softmax_scale", &A::softmax_scale}};
}
template <class A>
Tensors<A> selection() {
  return {{{"topk_idxs", "Sq,K", kI32, kIn}, &A::topk_idxs},
          {{"topk_length", "Sq", kI32, kOptionalIn}, &A::topk_length}};
}
template <class A>
Tensors<A> sink() {
  return {{{"sink", "H", kF32, kOptionalIn}, &A::sink}};
}
template <class A>
Tensors<A> lse_in() {
  return {{{"lse", "Sq,H", kF32, kIn}, &A::lse}};
}
template <class A>
Tensors<A> indexer() {
  return {{{"index_q", "Sq,Hi,128", kIndex, kIn}, &A::index_q},
          {{"index_k", "Skv,128", kIndex, kIn}, &A::index_k},
          {{"index_w", "Sq,Hi", kIndexOrF32, kIn}, &A::index_w}};
}
template <class A>
Params<A> indexer_params() {
  return {{"sm_scale", &A::sm_scale}};
}
template <class A>
Tensors<A> mask() {
  return {{{"cu_seqlens_q", "B+1", kI32, kOptionalIn}, &A::cu_seqlens_q},
          {{"cu_seqlens_k", "B+1", kI32, kOptionalIn}, &A::cu_seqlens_k},
          {{"q_offsets", "B", kI32, kOptionalIn}, &A::q_offsets}};
}
template <class A>
Params<A> mask_params() {
  return {{"ratio", &A::ratio}};
}
template <class A>
Tensors<A> forward_outputs() {
  return {{{"out", "Sq,H,Dv", kStorage, kOut}, &A::out},
          {{"lse", "Sq,H", kF32, kOut}, &A::lse},
          {{"max_logits", "Sq,H", kF32, kOptionalOut}, &A::max_logits}};
}
template <class A>
Tensors<A> backward_outputs() {
  return {{{"dq", "Sq,H,D", kStorage, kOut}, &A::dq},
          {{"dkv", "Skv,D", kStorageOrF32, kOut}, &A::dkv},
          {{"d_sink", "H", kF32, kOptionalOut}, &A::d_sink}};
}
template <class A>
Params<A> deterministic_param() {
  return {{"deterministic", &A::deterministic}};
}
template <class A>
Tensors<A> index_gradients() {
  return {{{"grad_loss", "scalar", kF32, kOptionalIn}, &A::grad_loss},
          {{"d_index_q", "Sq,Hi,128", kIndex, kOut}, &A::d_index_q},
          {{"d_index_k", "Skv,128", kIndexOrF32, kOut}, &A::d_index_k},
          {{"d_index_w", "Sq,Hi", kF32, kOut}, &A::d_index_w}};
}
template <class A>
Params<A> index_gradient_params() {
  return {{"loss_coeff", &A::loss_coeff},
          {"num_tokens", &A::num_tokens},
          {"clipped", &A::clipped},
          {"deterministic", &A::deterministic}};
}

}  // namespace schema_detail

#define DSATTN_SCHEMA(Args, name, tensor_list, param_list)             \
  template <>                                                          \
  struct Schema<Args> {                                                \
    using A = Args;                                                    \
    static constexpr std::string_view kName = name;                    \
    static const std::vector<TensorField<A>>& tensors() {              \
      using namespace schema_detail;                                   \
      static const Tensors<A> list = join<TensorField<A>> tensor_list; \
      return list;                                                     \
    }                                                                  \
    static const std::vector<ParamField<A>>& params() {                \
      using namespace schema_detail;                                   \
      static const Params<A> list = join<ParamField<A>> param_list;    \
      return list;                                                     \
    }                                                                  \
  };

DSATTN_SCHEMA(SparseAttentionForwardArgs, "sparse_attention_forward",
              ({attention<A>(), selection<A>(), sink<A>(), forward_outputs<A>()}),
              ({attention_params<A>()}))
DSATTN_SCHEMA(SparseAttentionBackwardArgs, "sparse_attention_backward",
              ({attention<A>(), selection<A>(), sink<A>(),
                Tensors<A>{{{"out", "Sq,H,Dv", kStorage, kIn}, &A::out},
                           {{"dout", "Sq,H,Dv", kStorage, kIn}, &A::dout}},
                lse_in<A>(), backward_outputs<A>()}),
              ({attention_params<A>(), deterministic_param<A>()}))
DSATTN_SCHEMA(SparseAttentionArgs, "sparse_attention",
              ({attention<A>(), selection<A>(), sink<A>(),
                Tensors<A>{{{"dout", "Sq,H,Dv", kStorage, kIn}, &A::dout}}, forward_outputs<A>(),
                backward_outputs<A>()}),
              ({attention_params<A>(), deterministic_param<A>()}))
DSATTN_SCHEMA(IndexerForwardArgs, "indexer_forward",
              ({indexer<A>(), mask<A>(),
                Tensors<A>{{{"scores", "Sq,Skv", kF32, kOut}, &A::scores}}}),
              ({indexer_params<A>(), mask_params<A>()}))
DSATTN_SCHEMA(IndexerTopKArgs, "indexer_top_k",
              ({Tensors<A>{{{"scores", "Sq,Skv", kF32, kIn}, &A::scores},
                           {{"seq_lens", "Sq", kI32, kOptionalIn}, &A::seq_lens},
                           {{"topk_idxs", "Sq,K", kI32, kOut}, &A::topk_idxs},
                           {{"topk_values", "Sq,K", kF32, kOptionalOut}, &A::topk_values}}}),
              ({Params<A>{{"order", &A::order}}}))
DSATTN_SCHEMA(IndexerForwardTopKArgs, "indexer_forward_top_k",
              ({indexer<A>(), mask<A>(),
                Tensors<A>{{{"topk_idxs", "Sq,K", kI32, kOut}, &A::topk_idxs},
                           {{"topk_values", "Sq,K", kF32, kOptionalOut}, &A::topk_values}}}),
              ({indexer_params<A>(), mask_params<A>(),
                Params<A>{{"order", &A::order}, {"ids", &A::ids}}}))
DSATTN_SCHEMA(SparseIndexerScoresArgs, "sparse_indexer_scores",
              ({indexer<A>(), selection<A>(),
                Tensors<A>{{{"predict", "Sq,K", kF32, kOut}, &A::predict}}}),
              ({indexer_params<A>()}))
DSATTN_SCHEMA(SparseAttentionScoresArgs, "sparse_attention_scores",
              ({attention<A>(), selection<A>(), lse_in<A>(), sink<A>(),
                Tensors<A>{{{"target", "Sq,K", kF32, kOut}, &A::target}}}),
              ({attention_params<A>()}))
DSATTN_SCHEMA(DenseIndexerScoresArgs, "dense_indexer_scores",
              ({indexer<A>(), mask<A>(),
                Tensors<A>{{{"predict", "Sq,Skv", kF32, kOut}, &A::predict}}}),
              ({indexer_params<A>(), mask_params<A>()}))
DSATTN_SCHEMA(DenseAttentionLseArgs, "dense_attention_lse",
              ({attention<A>(), mask<A>(), Tensors<A>{{{"lse", "Sq,H", kF32, kOut}, &A::lse}}}),
              ({attention_params<A>(), mask_params<A>()}))
DSATTN_SCHEMA(DenseAttentionScoresArgs, "dense_attention_scores",
              ({attention<A>(), lse_in<A>(), sink<A>(), mask<A>(),
                Tensors<A>{{{"target", "Sq,Skv", kF32, kOut}, &A::target}}}),
              ({attention_params<A>(), mask_params<A>()}))
DSATTN_SCHEMA(IndexerBackwardArgs, "indexer_backward",
              ({indexer<A>(),
                Tensors<A>{{{"predict", "Sq,K", kF32, kIn}, &A::predict},
                           {{"target", "Sq,K", kF32, kIn}, &A::target}},
                selection<A>(), index_gradients<A>()}),
              ({indexer_params<A>(), index_gradient_params<A>()}))
DSATTN_SCHEMA(DenseIndexerBackwardArgs, "dense_indexer_backward",
              ({indexer<A>(),
                Tensors<A>{{{"predict", "Sq,Skv", kF32, kIn}, &A::predict},
                           {{"target", "Sq,Skv", kF32, kIn}, &A::target}},
                mask<A>(), index_gradients<A>()}),
              ({indexer_params<A>(), mask_params<A>(), index_gradient_params<A>()}))
DSATTN_SCHEMA(SparseIndexerLossArgs, "sparse_indexer_loss",
              ({indexer<A>(), attention<A>(), lse_in<A>(), sink<A>(), selection<A>(),
                Tensors<A>{{{"loss", "scalar", kF32, kOut}, &A::loss}}, index_gradients<A>()}),
              ({indexer_params<A>(), attention_params<A>(), index_gradient_params<A>()}))
DSATTN_SCHEMA(DenseIndexerLossArgs, "dense_indexer_loss",
              ({indexer<A>(), attention<A>(), lse_in<A>(), sink<A>(), mask<A>(),
                Tensors<A>{{{"loss", "scalar", kF32, kOut}, &A::loss}}, index_gradients<A>()}),
              ({indexer_params<A>(), attention_params<A>(), mask_params<A>(),
                index_gradient_params<A>()}))

#undef DSATTN_SCHEMA

/// Every operation, in the order of the contract's table.
using AllOps =
    std::tuple<SparseAttentionForwardArgs, SparseAttentionBackwardArgs, SparseAttentionArgs,
               IndexerForwardArgs, IndexerTopKArgs, IndexerForwardTopKArgs, SparseIndexerScoresArgs,
               SparseAttentionScoresArgs, DenseIndexerScoresArgs, DenseAttentionLseArgs,
               DenseAttentionScoresArgs, IndexerBackwardArgs, DenseIndexerBackwardArgs,
               SparseIndexerLossArgs, DenseIndexerLossArgs>;

/// Calls f.template operator()<Args>() for every operation.
template <class F>
void for_each_op(F&& f) {
  [&]<class... Args>(std::type_identity<std::tuple<Args...>>) {
    (f.template operator()<Args>(), ...);
  }(std::type_identity<AllOps>{});
}

}  // namespace dsattn
