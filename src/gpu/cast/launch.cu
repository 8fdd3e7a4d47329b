// The entries of the module "cast". plan.cc says how they are launched.
#include "gpu/cast/kernel.cuh"

using dsattn::gpu::cast::cast_rows;
using dsattn::gpu::cast::kThreads;
using dsattn::gpu::cast::Params;

extern "C" __global__ void __launch_bounds__(kThreads)
    dsattn_cast_f32_bf16(const __grid_constant__ Params params) {
  cast_rows<__nv_bfloat16>(params);
}

extern "C" __global__ void __launch_bounds__(kThreads)
    dsattn_cast_f32_f16(const __grid_constant__ Params params) {
  cast_rows<__half>(params);
}
