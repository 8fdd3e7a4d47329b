// TMA load with an mbarrier, wgmma, cluster barrier, elect, setmaxnreg, TMA store.
#include <cstdint>

struct alignas(64) TensorMap {
  uint64_t words[16];
};

extern "C" __global__ void __cluster_dims__(2, 1, 1) __launch_bounds__(256)
    tma_wgmma(const __grid_constant__ TensorMap map, float* out, uint64_t desc_a, uint64_t desc_b) {
  extern __shared__ __align__(1024) unsigned char tile[];
  __shared__ alignas(8) uint64_t full;
  const uint32_t to = static_cast<uint32_t>(__cvta_generic_to_shared(tile));
  const uint32_t bar = static_cast<uint32_t>(__cvta_generic_to_shared(&full));
  if (threadIdx.x == 0) {
    asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;\nfence.mbarrier_init.release.cluster;" ::"r"(bar));
  }
  asm volatile("barrier.cluster.arrive.relaxed.aligned;\nbarrier.cluster.wait.acquire.aligned;" ::: "memory");
  if (threadIdx.x >= 128) {
    asm volatile("setmaxnreg.dec.sync.aligned.u32 40;");
    asm volatile(
        "{\n.reg .pred one;\nelect.sync _|one, 0xffffffff;\n"
        "@one mbarrier.arrive.expect_tx.release.cta.shared::cta.b64 _, [%0], 8192;\n"
        "@one cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes"
        ".multicast::cluster [%1], [%2, {%3, %4}], [%0], %5;\n}" ::"r"(bar), "r"(to), "l"(&map),
        "r"(0), "r"(64), "h"(static_cast<uint16_t>(3)) : "memory");
    return;
  }
  asm volatile("setmaxnreg.inc.sync.aligned.u32 232;");
  asm volatile("{\n.reg .pred done;\nwait: mbarrier.try_wait.parity.shared::cta.b64 done, [%0], %1;\n"
               "@!done bra wait;\n}" ::"r"(bar), "r"(0) : "memory");
  float c[4] = {};
  asm volatile(
      "{\n.reg .pred p;\nsetp.ne.b32 p, %6, 0;\nwgmma.fence.sync.aligned;\n"
      "wgmma.mma_async.sync.aligned.m64n8k16.f32.bf16.bf16 {%0, %1, %2, %3}, %4, %5, p, 1, 1, 0, 0;\n"
      "wgmma.commit_group.sync.aligned;\nwgmma.wait_group.sync.aligned 0;\n}"
      : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3]) : "l"(desc_a), "l"(desc_b), "r"(1) : "memory");
  asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
  asm volatile("cp.async.bulk.tensor.2d.global.shared::cta.tile.bulk_group [%0, {%1, %2}], [%3];\n"
               "cp.async.bulk.commit_group;\ncp.async.bulk.wait_group.read 0;" ::"l"(&map), "r"(0),
               "r"(0), "r"(to) : "memory");
  for (int i = 0; i < 4; ++i) out[threadIdx.x * 4 + i] = c[i];
}
