// One warp stores, an mbarrier tells another warp. kVariant 0: only lane 0 arrives, 31 lanes are
// unordered; 1: __syncwarp first; 2: every lane arrives.
#include <cstdint>

__device__ inline uint32_t smem_address(const void* p) {
  return static_cast<uint32_t>(__cvta_generic_to_shared(p));
}

template <int kVariant>
__device__ void hand_over(float* out, const float* in) {
  __shared__ float staged[32];
  __shared__ alignas(8) uint64_t ready;
  const uint32_t lane = threadIdx.x % 32;
  const uint32_t bar = smem_address(&ready);
  if (threadIdx.x == 0) {
    asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(bar), "r"(kVariant == 2 ? 32 : 1));
  }
  __syncthreads();
  if (threadIdx.x < 32) {
    staged[lane] = in[lane] * 2.0f;
    if (kVariant == 1) __syncwarp();
    if (kVariant == 2 || lane == 0) {
      asm volatile("{ .reg .b64 state; mbarrier.arrive.shared::cta.b64 state, [%0]; }" ::"r"(bar)
                   : "memory");
    }
  } else {
    asm volatile(
        "{\n .reg .pred done;\nwait:\n"
        " mbarrier.try_wait.parity.shared::cta.b64 done, [%0], 0;\n @!done bra wait;\n}" ::"r"(bar)
        : "memory");
    out[lane] = staged[lane ^ 1];
  }
}

extern "C" __global__ void lane0_arrives(float* out, const float* in) { hand_over<0>(out, in); }
extern "C" __global__ void syncwarp_first(float* out, const float* in) { hand_over<1>(out, in); }
extern "C" __global__ void all_arrive(float* out, const float* in) { hand_over<2>(out, in); }
