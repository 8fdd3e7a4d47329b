// The size of the terms that dq and d_sink sum up: where they cancel, an error is judged against
// the terms and not against what is left of them (contract section 8).
#pragma once

#include <string_view>
#include <vector>

#include "problem/problem.h"

namespace dsattn {

/// Per element of the backward's output `name`: for dq 1e-2 * sum_j P_j (|dP_j| + |Delta|) scale
/// |k_j|, for d_sink sum_t |exp(sink - L) Delta|; empty for other outputs. `problem` is a
/// sparse_attention_backward with out and lse.
Result<std::vector<double>> term_sizes(const Problem& problem, std::string_view name);

}  // namespace dsattn
