// Runs a problem on a backend and hands back its result tensors.
#pragma once

#include "problem/bind.h"

namespace dsattn {

/// Calls f.operator()<Args>() for the operation of this name and returns its result.
/// Errors: kInvalidValue for a name that no operation has.
template <class T, class F>
Result<T> for_op(std::string_view op, F&& f) {
  if (auto known = check_op_name(op); !known) return tl::unexpected(known.error());
  Result<T> result = fail(ErrorCode::kInternal, "for_op found no operation");
  for_each_op([&]<class Args>() {
    if (Schema<Args>::kName == op) result = f.template operator()<Args>();
  });
  return result;
}

/// Adds what the command makes up for: `out` and `lse` of a backward that has neither, and `lse`
/// of dense_attention_scores. They are computed on ctx's backend, in the types it would store.
Result<Problem> complete(const Problem& problem, const ExecContext& ctx);

/// Completes and runs; the outputs by name. ctx.workspace is replaced by one of the right size.
Result<TensorMap> run_problem(const Problem& problem, const ExecContext& ctx,
                              OutputTypes types = OutputTypes::kContract);

/// A result tensor map as a problem-like file.
Result<void> save_result(const std::filesystem::path& path, const Problem& problem,
                         const TensorMap& result);

}  // namespace dsattn
