// Judges a backend: runs a problem on it and compares every output with the float64 reference.
#pragma once

#include <vector>

#include "problem/compare.h"
#include "problem/run.h"

namespace dsattn {

struct VerifyReport {
  std::vector<TensorReport> tensors;
  bool passed() const {
    for (const TensorReport& tensor : tensors) {
      if (!tensor.passed) return false;
    }
    return true;
  }
};

/// The problem with every floating tensor widened to F64, exactly.
Result<Problem> widened(const Problem& problem);

/// Judges `result`, which ctx's backend gave for `completed` (see complete()). A backward is judged
/// on out and lse as that backend stored them. indexer_forward_top_k has to equal the unfused pair
/// of the same backend, whose scores are judged against the reference.
Result<VerifyReport> judge(const Problem& completed, const TensorMap& result,
                           const ExecContext& ctx);

/// complete, run and judge.
Result<VerifyReport> verify(const Problem& problem, const ExecContext& ctx);

}  // namespace dsattn
