// Chooses the table of attention_math.h, by the same rule as the matrix kernels.
#include "cpu/attention_math.h"

#include "cpu/gemm.h"

namespace dsattn::cpu {
namespace {

const AttentionMathTables& tables_for(CpuIsa limit) {
#if defined(__x86_64__)
  const CpuIsa isa = gemm_for(limit).isa;
  if (isa >= CpuIsa::kAvx512) return kAttentionMathAvx512;
  if (isa == CpuIsa::kAvx2) return kAttentionMathAvx2;
#else
  (void)limit;
#endif
  return kAttentionMathBaseline;
}

}  // namespace

template <>
const AttentionMath<bf16>& attention_math(CpuIsa limit) {
  return tables_for(limit).for_bf16;
}

template <>
const AttentionMath<f16>& attention_math(CpuIsa limit) {
  return tables_for(limit).for_f16;
}

template <>
const AttentionMath<narrow_bf16>& attention_math(CpuIsa limit) {
  return tables_for(limit).for_narrow_bf16;
}

}  // namespace dsattn::cpu
