// The contract in code: obvious loops in float64, one file per operation. Slow on purpose.
// Arguments have been validated by src/ops. Takes BF16, F16, F32 and F64 storage.
#pragma once

#include "dsattn/ops.h"

namespace dsattn::ref {

Result<void> run(const SparseAttentionForwardArgs& args, const ExecContext& ctx);
Result<void> run(const SparseAttentionBackwardArgs& args, const ExecContext& ctx);
Result<void> run(const IndexerForwardArgs& args, const ExecContext& ctx);
Result<void> run(const IndexerTopKArgs& args, const ExecContext& ctx);
Result<void> run(const IndexerForwardTopKArgs& args, const ExecContext& ctx);
Result<void> run(const SparseIndexerScoresArgs& args, const ExecContext& ctx);
Result<void> run(const SparseAttentionScoresArgs& args, const ExecContext& ctx);
Result<void> run(const DenseIndexerScoresArgs& args, const ExecContext& ctx);
Result<void> run(const DenseAttentionLseArgs& args, const ExecContext& ctx);
Result<void> run(const DenseAttentionScoresArgs& args, const ExecContext& ctx);
Result<void> run(const IndexerBackwardArgs& args, const ExecContext& ctx);
Result<void> run(const DenseIndexerBackwardArgs& args, const ExecContext& ctx);
Result<void> run(const SparseIndexerLossArgs& args, const ExecContext& ctx);
Result<void> run(const DenseIndexerLossArgs& args, const ExecContext& ctx);

}  // namespace dsattn::ref
