// Chooses the matrix kernels: what the processor offers, what the operating system lets us use
// (AMX needs its permission, once per process), and what the caller allows.
#include "cpu/gemm.h"

#include "cpu/gemm_kernels.h"

#if defined(__x86_64__)
#include <cpuid.h>
#include <sys/syscall.h>
#include <unistd.h>
#endif

namespace dsattn::cpu {
namespace {

#if defined(__x86_64__)

// The tile unit is there, its state is enabled, and Linux grants it to this process.
bool amx_usable() {
  constexpr unsigned kAmxBf16 = 1u << 22;  // CPUID leaf 7, EDX
  constexpr unsigned kAmxTile = 1u << 24;
  unsigned eax = 0, ebx = 0, ecx = 0, edx = 0;
  if (__get_cpuid_count(7, 0, &eax, &ebx, &ecx, &edx) == 0) return false;
  if ((edx & (kAmxBf16 | kAmxTile)) != (kAmxBf16 | kAmxTile)) return false;
  unsigned features_low = 0, features_high = 0;
  __asm__("xgetbv" : "=a"(features_low), "=d"(features_high) : "c"(0));
  constexpr unsigned kTileState = 3u << 17;  // XCR0: tile configuration and tile data
  if ((features_low & kTileState) != kTileState) return false;
#if defined(__linux__)
  constexpr int kRequestPermission = 0x1023;  // ARCH_REQ_XCOMP_PERM
  constexpr int kTileData = 18;
  return syscall(SYS_arch_prctl, kRequestPermission, kTileData) == 0;
#else
  return false;
#endif
}

CpuIsa detect() {
  __builtin_cpu_init();
  if (!__builtin_cpu_supports("avx2") || !__builtin_cpu_supports("fma")) return CpuIsa::kBaseline;
  if (!__builtin_cpu_supports("avx512f") || !__builtin_cpu_supports("avx512bw") ||
      !__builtin_cpu_supports("avx512dq") || !__builtin_cpu_supports("avx512vl")) {
    return CpuIsa::kAvx2;
  }
  if (!__builtin_cpu_supports("avx512bf16")) return CpuIsa::kAvx512;
  return amx_usable() ? CpuIsa::kAmx : CpuIsa::kAvx512Bf16;
}

constexpr Gemm kKernels[] = {
    {CpuIsa::kBaseline, gemm_bf16_baseline, gemm_f32_baseline},
    {CpuIsa::kAvx2, gemm_bf16_avx2, gemm_f32_avx2},
    {CpuIsa::kAvx512, gemm_bf16_avx512, gemm_f32_avx512},
    {CpuIsa::kAvx512Bf16, gemm_bf16_avx512bf16, gemm_f32_avx512},
    {CpuIsa::kAmx, gemm_bf16_amx, gemm_f32_avx512},
};

#else

CpuIsa detect() { return CpuIsa::kBaseline; }

constexpr Gemm kKernels[] = {{CpuIsa::kBaseline, gemm_bf16_baseline, gemm_f32_baseline}};

#endif

}  // namespace

CpuIsa detect_cpu_isa() {
  static const CpuIsa best = detect();
  return best;
}

const Gemm& gemm_for(CpuIsa limit) {
  const CpuIsa best = detect_cpu_isa();
  const CpuIsa isa = limit == CpuIsa::kAuto || limit > best ? best : limit;
  return kKernels[static_cast<int>(isa) - static_cast<int>(CpuIsa::kBaseline)];
}

}  // namespace dsattn::cpu
