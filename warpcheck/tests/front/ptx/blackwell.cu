// Tensor memory: alloc, mma, commit, ld, dealloc.
#include <cstdint>

extern "C" __global__ void tensor_memory(float* out, uint64_t a, uint64_t b, uint32_t idesc) {
  __shared__ uint32_t base;
  __shared__ alignas(8) uint64_t done;
  const uint32_t slot = static_cast<uint32_t>(__cvta_generic_to_shared(&base));
  const uint32_t bar = static_cast<uint32_t>(__cvta_generic_to_shared(&done));
  if (threadIdx.x < 32) {
    asm volatile("tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [%0], 64;\n"
                 "tcgen05.relinquish_alloc_permit.cta_group::1.sync.aligned;" ::"r"(slot) : "memory");
  }
  if (threadIdx.x == 0) asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(bar));
  __syncthreads();
  const uint32_t tmem = base;
  if (threadIdx.x == 0) {
    asm volatile("{\n.reg .pred p;\nsetp.ne.b32 p, %4, 0;\n"
                 "tcgen05.mma.cta_group::1.kind::f16 [%0], %1, %2, %3, p;\n"
                 "tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.b64 [%5];\n}" ::
                 "r"(tmem), "l"(a), "l"(b), "r"(idesc), "r"(0), "r"(bar) : "memory");
  }
  asm volatile("{\n.reg .pred ok;\nwait: mbarrier.try_wait.parity.shared::cta.b64 ok, [%0], 0;\n"
               "@!ok bra wait;\n}\ntcgen05.fence::after_thread_sync;" ::"r"(bar) : "memory");
  uint32_t r[4];
  asm volatile("tcgen05.ld.sync.aligned.32x32b.x4.b32 {%0, %1, %2, %3}, [%4];\n"
               "tcgen05.wait::ld.sync.aligned;"
               : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3]) : "r"(tmem) : "memory");
  for (int i = 0; i < 4; ++i) out[threadIdx.x * 4 + i] = __uint_as_float(r[i]);
  __syncthreads();
  if (threadIdx.x < 32) {
    asm volatile("tcgen05.dealloc.cta_group::1.sync.aligned.b32 %0, 64;" ::"r"(tmem));
  }
}
