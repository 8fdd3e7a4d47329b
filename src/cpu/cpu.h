// The fast CPU engine: one pair of functions per operation. Arguments have been validated by
// src/ops (shapes, dtypes, strides, cu_seqlens, workspace size). One file per operation.
#pragma once

#include "dsattn/ops.h"

namespace dsattn::cpu {

// workspace_bytes: scratch that run() needs for these arguments and this context (64-byte aligned).
// run() allocates nothing that grows with the problem; it carves ctx.workspace.
#define DSATTN_CPU_OP(Args)                                          \
  int64_t workspace_bytes(const Args& args, const ExecContext& ctx); \
  Result<void> run(const Args& args, const ExecContext& ctx);

DSATTN_CPU_OP(SparseAttentionForwardArgs)
DSATTN_CPU_OP(SparseAttentionBackwardArgs)
DSATTN_CPU_OP(IndexerForwardArgs)
DSATTN_CPU_OP(IndexerTopKArgs)
DSATTN_CPU_OP(IndexerForwardTopKArgs)
DSATTN_CPU_OP(SparseIndexerScoresArgs)
DSATTN_CPU_OP(SparseAttentionScoresArgs)
DSATTN_CPU_OP(DenseIndexerScoresArgs)
DSATTN_CPU_OP(DenseAttentionLseArgs)
DSATTN_CPU_OP(DenseAttentionScoresArgs)
DSATTN_CPU_OP(IndexerBackwardArgs)
DSATTN_CPU_OP(DenseIndexerBackwardArgs)
DSATTN_CPU_OP(SparseIndexerLossArgs)
DSATTN_CPU_OP(DenseIndexerLossArgs)

#undef DSATTN_CPU_OP

}  // namespace dsattn::cpu
