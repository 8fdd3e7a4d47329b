// The one path every operation takes: choose the backend, validate, check the workspace, run.
// ops.cc gives it the public names.
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>

#include "cpu/cpu.h"
#include "ops/validate.h"
#include "ref/ref.h"

namespace dsattn {

/// The backend a call runs on: ctx.backend, with kAuto decided by where the tensors are.
/// Errors: kUnavailable, with the reason, if this build or machine cannot run it.
Result<Backend> resolve_backend(const ExecContext& ctx, const std::vector<BoundTensor>& tensors);

Result<void> check_workspace(const ExecContext& ctx, int64_t needed_bytes);

/// The two halves of the combined operation. Both see the same out and lse.
SparseAttentionForwardArgs forward_half(const SparseAttentionArgs& args);
SparseAttentionBackwardArgs backward_half(const SparseAttentionArgs& args);

/// ctx whose progress reports [from, to] of the whole.
ExecContext sub_progress(const ExecContext& ctx, double from, double to);

template <class Args>
int64_t workspace_on(Backend backend, const Args& args, const ExecContext& ctx) {
  if constexpr (std::is_same_v<Args, SparseAttentionArgs>) {
    return std::max(workspace_on(backend, forward_half(args), ctx),
                    workspace_on(backend, backward_half(args), ctx));
  } else {
    return backend == Backend::kCpu ? cpu::workspace_bytes(args, ctx) : 0;
  }
}

template <class Args>
Result<void> run_on(Backend backend, const Args& args, const ExecContext& ctx) {
  if constexpr (std::is_same_v<Args, SparseAttentionArgs>) {
    constexpr double kForwardShare = 0.3;
    auto done = run_on(backend, forward_half(args), sub_progress(ctx, 0, kForwardShare));
    if (!done) return done;
    return run_on(backend, backward_half(args), sub_progress(ctx, kForwardShare, 1));
  } else {
    if (backend == Backend::kRef) return ref::run(args, ctx);
    return cpu::run(args, ctx);
  }
}

template <class Args>
Result<int64_t> workspace_bytes(const Args& args, const ExecContext& ctx) {
  auto backend = resolve_backend(ctx, bound_tensors(args));
  if (!backend) return tl::unexpected(backend.error());
  auto valid = validate(args, *backend, DataCheck::kIgnored);
  if (!valid) return tl::unexpected(valid.error());
  return workspace_on(*backend, args, ctx);
}

template <class Args>
Result<void> execute(const Args& args, const ExecContext& ctx) {
  auto backend = resolve_backend(ctx, bound_tensors(args));
  if (!backend) return tl::unexpected(backend.error());
  auto valid = validate(args, *backend, DataCheck::kRequired);
  if (!valid) return valid;
  auto space = check_workspace(ctx, workspace_on(*backend, args, ctx));
  if (!space) return space;
  return run_on(*backend, args, ctx);
}

}  // namespace dsattn
