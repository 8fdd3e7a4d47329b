// The size of the terms that the indexer's gradients and loss sum up (contract section 8): rows
// whose predict equals their target leave nothing but rounding.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "problem/problem.h"

namespace dsattn {

/// Per element of each output of an indexer backward or streaming loss; empty for other operations.
/// With x_j = sm_scale coeff/N |grad_loss| (predict_j sum(target) + target_j):
/// 5e-2 sum_j x_j |w_h| [S_jh > 0] |k_j| for d_index_q, likewise for d_index_k,
/// sum_j x_j relu(S_jh) for d_index_w, coeff/N sum target (|ln target| + |ln predict|) for loss.
Result<std::map<std::string, std::vector<double>, std::less<>>> index_term_sizes(
    const Problem& problem);

}  // namespace dsattn
