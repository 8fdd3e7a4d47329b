// Chooses the table of index_math.h, by the same rule as the matrix kernels.
#include "cpu/index_math.h"

#include "cpu/gemm.h"

namespace dsattn::cpu {

const IndexMath& index_math(CpuIsa limit) {
#if defined(__x86_64__)
  const CpuIsa isa = gemm_for(limit).isa;
  if (isa >= CpuIsa::kAvx512) return kIndexMathAvx512;
  if (isa == CpuIsa::kAvx2) return kIndexMathAvx2;
#else
  (void)limit;
#endif
  return kIndexMathBaseline;
}

}  // namespace dsattn::cpu
