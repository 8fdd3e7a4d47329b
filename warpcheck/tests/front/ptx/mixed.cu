// printf and assert, atomics, shuffles, votes, f64, by-value structs, cp.async, half precision.
#include <cassert>
#include <cstdint>
#include <cstdio>
#include <cuda_bf16.h>

struct Shape {
  int rows, columns;
  double scale;
  float* data;
};

__constant__ float table[4] = {1.0f, 2.0f, 4.0f, 8.0f};
__device__ unsigned counter;

extern "C" __global__ void __launch_bounds__(128, 2) struct_and_double(Shape s, double* out) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  assert(s.rows > 0);
  if (i >= s.rows) return;
  double sum = 0;
  for (int c = 0; c < s.columns; ++c) sum += sqrt(s.scale * s.data[i * s.columns + c]);
  out[i] = sum / s.columns + exp(sum);
  if (i == 0) printf("row %d: %f\n", i, sum);
}

extern "C" __global__ void warp_sum(float* out, const float* in, unsigned* bits) {
  float v = in[threadIdx.x] * table[threadIdx.x & 3];
  for (int d = 16; d > 0; d /= 2) v += __shfl_xor_sync(~0u, v, d);
  const unsigned ballot = __ballot_sync(~0u, v > 1.0f);
  if (threadIdx.x % 32 == 0) {
    atomicAdd(out, v);
    atomicMax(&counter, ballot);
    bits[atomicCAS(&counter, 0u, 1u) & 1] = __reduce_add_sync(1u, ballot);
    __threadfence();
  }
}

extern "C" __global__ void copy_async(__nv_bfloat16* out, const __nv_bfloat16* in) {
  __shared__ alignas(16) __nv_bfloat16 tile[1024];
  const uint32_t to = static_cast<uint32_t>(__cvta_generic_to_shared(tile + threadIdx.x * 8));
  asm volatile("cp.async.cg.shared.global.L2::128B [%0], [%1], 16;" ::"r"(to),
               "l"(in + threadIdx.x * 8));
  asm volatile("cp.async.commit_group;\ncp.async.wait_group 0;" ::: "memory");
  __syncthreads();
  out[threadIdx.x] = __hfma(tile[threadIdx.x], tile[1023 - threadIdx.x], in[0]);
}
