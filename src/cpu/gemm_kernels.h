// The matrix kernels by instruction set; gemm.cc chooses. Each gemm_<isa>.cc is compiled with that
// set's options, so it calls no inline function of a shared header: the linker keeps one copy of
// such a function, and it must run on every machine.
#pragma once

#include <cstdint>

#include "base/float16.h"

namespace dsattn::cpu {

#define DSATTN_GEMM_KERNEL(name, T)                                                         \
  void name(int64_t m, int64_t n, int64_t k, const T* a, int64_t lda, const T* b, float* c, \
            int64_t ldc, bool accumulate);

DSATTN_GEMM_KERNEL(gemm_bf16_baseline, bf16)
DSATTN_GEMM_KERNEL(gemm_f32_baseline, float)
DSATTN_GEMM_KERNEL(gemm_bf16_avx2, bf16)
DSATTN_GEMM_KERNEL(gemm_f32_avx2, float)
DSATTN_GEMM_KERNEL(gemm_bf16_avx512, bf16)
DSATTN_GEMM_KERNEL(gemm_f32_avx512, float)
DSATTN_GEMM_KERNEL(gemm_bf16_avx512bf16, bf16)
DSATTN_GEMM_KERNEL(gemm_bf16_amx, bf16)

#undef DSATTN_GEMM_KERNEL

}  // namespace dsattn::cpu
