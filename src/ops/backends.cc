// Which backends this build and this machine have, and what the shared execution path needs.
#include <fmt/format.h>

#include <array>

#include "cpu/gemm.h"
#include "gpu/host/gpu_status.h"
#include "ops/execute.h"

namespace dsattn {
namespace {

constexpr std::array kBackendNames = {"auto", "ref", "cpu", "cuda", "sim-sm90a", "sim-sm100a"};
constexpr std::array kIsaNames = {"auto", "baseline", "avx2", "avx512", "avx512-bf16", "amx"};

template <class Enum, size_t N>
Result<Enum> parse_name(std::string_view what, std::string_view name,
                        const std::array<const char*, N>& names) {
  for (size_t i = 0; i < N; ++i) {
    if (name == names[i]) return static_cast<Enum>(i);
  }
  return tl::unexpected(Error{
      ErrorCode::kInvalidValue,
      fmt::format("{} '{}' is unknown, expected one of {}", what, name, fmt::join(names, ", "))});
}

}  // namespace

std::string_view to_string(Backend backend) { return kBackendNames[static_cast<size_t>(backend)]; }
std::string_view to_string(CpuIsa isa) { return kIsaNames[static_cast<size_t>(isa)]; }

Result<Backend> parse_backend(std::string_view name) {
  return parse_name<Backend>("backend", name, kBackendNames);
}
Result<CpuIsa> parse_cpu_isa(std::string_view name) {
  return parse_name<CpuIsa>("instruction set", name, kIsaNames);
}

CpuIsa best_cpu_isa() { return cpu::detect_cpu_isa(); }

std::vector<BackendInfo> backends() {
  const gpu::GpuStatus gpu = gpu::gpu_status();
  const std::string no_kernels = "no GPU kernel of these operations is built yet";
  return {
      {Backend::kRef, true, "float64 reference, one thread"},
      {Backend::kCpu, true, fmt::format("CPU engine, {}", to_string(best_cpu_isa()))},
      {Backend::kCuda, false,
       gpu.available ? fmt::format("{}: {}", gpu.detail, no_kernels)
                     : fmt::format("{}; {}", no_kernels, gpu.detail)},
      {Backend::kSimSm90a, false, "no sm_90a kernel of these operations is built yet"},
      {Backend::kSimSm100a, false, "no sm_100a kernel of these operations is built yet"},
  };
}

Result<Backend> resolve_backend(const ExecContext& ctx, const std::vector<BoundTensor>& tensors) {
  Backend wanted = ctx.backend;
  if (wanted == Backend::kAuto) {
    const bool on_gpu = !tensors.empty() && tensors.front().view.device.type == DeviceType::kCuda;
    wanted = on_gpu ? Backend::kCuda : Backend::kCpu;
  }
  if (wanted == Backend::kRef || wanted == Backend::kCpu) return wanted;  // wakes no GPU driver
  for (const BackendInfo& info : backends()) {
    if (info.backend != wanted) continue;
    if (info.available) return wanted;
    return tl::unexpected(
        Error{ErrorCode::kUnavailable,
              fmt::format("backend {} is unavailable: {}", to_string(wanted), info.detail)});
  }
  return tl::unexpected(Error{ErrorCode::kInvalidValue, "ctx.backend is not a Backend"});
}

Result<void> check_workspace(const ExecContext& ctx, int64_t needed_bytes) {
  constexpr uintptr_t kAlignment = 64;
  if (needed_bytes == 0) return {};
  if (ctx.workspace == nullptr || ctx.workspace_bytes < needed_bytes) {
    return fail(ErrorCode::kWorkspaceTooSmall,
                fmt::format("the workspace has {} bytes, this call needs {}: ask the operation's "
                            "workspace query with the same arguments and context",
                            ctx.workspace == nullptr ? 0 : ctx.workspace_bytes, needed_bytes));
  }
  const auto misfit = reinterpret_cast<uintptr_t>(ctx.workspace) % kAlignment;
  if (misfit == 0) return {};
  return fail(ErrorCode::kWorkspaceTooSmall,
              fmt::format("the workspace starts {} bytes past a multiple of {}, expected {}-byte "
                          "alignment",
                          misfit, kAlignment, kAlignment));
}

SparseAttentionForwardArgs forward_half(const SparseAttentionArgs& args) {
  SparseAttentionForwardArgs half;
  static_cast<AttentionInputs&>(half) = args;
  static_cast<SparseSelection&>(half) = args;
  half.sink = args.sink;
  half.out = args.out;
  half.lse = args.lse;
  half.max_logits = args.max_logits;
  return half;
}

SparseAttentionBackwardArgs backward_half(const SparseAttentionArgs& args) {
  SparseAttentionBackwardArgs half;
  static_cast<AttentionInputs&>(half) = args;
  static_cast<SparseSelection&>(half) = args;
  half.sink = args.sink;
  half.out = args.out;
  half.dout = args.dout;
  half.lse = args.lse;
  half.deterministic = args.deterministic;
  half.dq = args.dq;
  half.dkv = args.dkv;
  half.d_sink = args.d_sink;
  return half;
}

ExecContext sub_progress(const ExecContext& ctx, double from, double to) {
  ExecContext sub = ctx;
  if (ctx.progress) {
    sub.progress = [progress = ctx.progress, from, to](double share) {
      return progress(from + (to - from) * share);
    };
  }
  return sub;
}

}  // namespace dsattn
