// The attention of a training step as a problem file (contract section 10), so that kernels can be
// tried on the distributions of a real model.
#pragma once

#include <string>

#include "model.h"

namespace dsattn::demo {

/// Writes q, kv, topk_idxs, sink and dout of the middle layer, as the last training step left them:
/// a `sparse_attention` problem. If that step was not `sparse`, the indexer chooses the ids now.
/// Errors: kIo.
Result<void> save_problem(const std::string& path, Model& model, Params& params, bool sparse);

}  // namespace dsattn::demo
