// The edge table of the contract (section 9) as named changes to a generated problem. The command
// makes files of them, and tests/numerics runs each on every backend.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "problem/problem.h"
#include "problem/rng.h"

namespace dsattn {

struct Edge {
  std::string name;
  std::string about;
  std::string tensor;  ///< the edge applies to operations that read this tensor
  std::function<void(Problem&, Rng&)> apply;
};

const std::vector<Edge>& edges();

/// Whether `op` has this tensor among its inputs.
bool reads_tensor(std::string_view op, std::string_view tensor);

/// Errors: kInvalidValue (no such edge, or one that does not concern the operation).
Result<const Edge*> find_edge(std::string_view name, std::string_view op);

}  // namespace dsattn
