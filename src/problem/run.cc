#include "problem/run.h"

#include <fmt/format.h>

#include <array>
#include <cstring>

namespace dsattn {
namespace {

/// Scratch is filled with this before a call: an operation that relies on zeros fails at once.
constexpr int kDirt = 0xA5;

template <class Args>
Result<TensorMap> run_as(const Problem& problem, const ExecContext& ctx_in, OutputTypes types) {
  auto call = bind<Args>(problem, ctx_in, types);
  if (!call) return tl::unexpected(call.error());
  ExecContext ctx = ctx_in;
  auto bytes = workspace_bytes(call->args, ctx);
  if (!bytes) return tl::unexpected(bytes.error());
  // Backed by I32 elements, because a tensor is what owns aligned memory here.
  auto workspace = OwnedTensor::make(DType::kI32, std::array{(*bytes + 3) / 4});
  if (!workspace) {
    return fail(workspace.error().code,
                fmt::format("workspace of {} bytes: {}", *bytes, workspace.error().message));
  }
  if (*bytes > 0) std::memset(workspace->bytes().data(), kDirt, workspace->bytes().size());
  ctx.workspace = workspace->bytes().data();
  ctx.workspace_bytes = *bytes;
  if (auto done = execute(call->args, ctx); !done) return tl::unexpected(done.error());
  return std::move(call->outputs);
}

/// Runs `op` on the problem's inputs and copies the named results into it.
Result<Problem> with_results_of(const Problem& problem, std::string_view op,
                                std::initializer_list<std::string_view> names,
                                const ExecContext& ctx) {
  Problem helper = problem;
  helper.op = op;
  auto results = run_problem(helper, ctx);
  if (!results) return tl::unexpected(results.error());
  Problem completed = problem;
  for (std::string_view name : names) {
    completed.tensors.insert_or_assign(std::string(name), results->find(name)->second);
  }
  return completed;
}

}  // namespace

Result<Problem> complete(const Problem& problem, const ExecContext& ctx) {
  if (problem.op == "sparse_attention_backward" && !problem.has("out") && !problem.has("lse")) {
    Problem shaped = problem;  // the forward has to store out as wide as dout is
    const TensorView dout = problem.view("dout");
    if (dout.rank == 3 && !problem.parameter("d_v")) {
      shaped.metadata["d_v"] = std::to_string(dout.size(2));
    }
    return with_results_of(shaped, "sparse_attention_forward", {"out", "lse"}, ctx);
  }
  if (problem.op == "dense_attention_scores" && !problem.has("lse")) {
    return with_results_of(problem, "dense_attention_lse", {"lse"}, ctx);
  }
  return problem;
}

Result<TensorMap> run_problem(const Problem& problem, const ExecContext& ctx, OutputTypes types) {
  auto completed = complete(problem, ctx);
  if (!completed) return tl::unexpected(completed.error());
  return for_op<TensorMap>(problem.op,
                           [&]<class Args>() { return run_as<Args>(*completed, ctx, types); });
}

Result<void> save_result(const std::filesystem::path& path, const Problem& problem,
                         const TensorMap& result) {
  Problem file;
  file.op = problem.op;
  file.tensors = result;
  file.metadata = problem.metadata;
  return save_problem(path, file);
}

}  // namespace dsattn
