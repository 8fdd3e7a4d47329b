// The public names of the operations: each is execute() and workspace_bytes() on its arguments.
#include "ops/execute.h"

namespace dsattn {

#define DSATTN_DEFINE_OP(name, Args)                                                         \
  Result<void> name(const Args& args, const ExecContext& ctx) { return execute(args, ctx); } \
  Result<int64_t> name##_workspace(const Args& args, const ExecContext& ctx) {               \
    return workspace_bytes(args, ctx);                                                       \
  }

DSATTN_DEFINE_OP(sparse_attention_forward, SparseAttentionForwardArgs)
DSATTN_DEFINE_OP(sparse_attention_backward, SparseAttentionBackwardArgs)
DSATTN_DEFINE_OP(sparse_attention, SparseAttentionArgs)
DSATTN_DEFINE_OP(indexer_forward, IndexerForwardArgs)
DSATTN_DEFINE_OP(indexer_top_k, IndexerTopKArgs)
DSATTN_DEFINE_OP(indexer_forward_top_k, IndexerForwardTopKArgs)
DSATTN_DEFINE_OP(sparse_indexer_scores, SparseIndexerScoresArgs)
DSATTN_DEFINE_OP(sparse_attention_scores, SparseAttentionScoresArgs)
DSATTN_DEFINE_OP(dense_indexer_scores, DenseIndexerScoresArgs)
DSATTN_DEFINE_OP(dense_attention_lse, DenseAttentionLseArgs)
DSATTN_DEFINE_OP(dense_attention_scores, DenseAttentionScoresArgs)
DSATTN_DEFINE_OP(indexer_backward, IndexerBackwardArgs)
DSATTN_DEFINE_OP(dense_indexer_backward, DenseIndexerBackwardArgs)
DSATTN_DEFINE_OP(sparse_indexer_loss, SparseIndexerLossArgs)
DSATTN_DEFINE_OP(dense_indexer_loss, DenseIndexerLossArgs)

#undef DSATTN_DEFINE_OP

}  // namespace dsattn
