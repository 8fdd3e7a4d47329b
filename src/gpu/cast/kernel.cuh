// fp32 rows to bf16 or f16 rows, rounding to nearest even. Bound by memory: 6 bytes per element.
//
// A block is blockDim.x threads along a row times blockDim.y rows; blocks stride over rows
// (grid.x) and over vectors of a row (grid.y), so any size takes any grid. Offsets are 64-bit.
// Where a row is aligned, a step reads 32 bytes and writes 16; elsewhere it goes element by
// element.
#pragma once

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include "gpu/cast/config.h"

namespace dsattn::gpu::cast {

template <class T>
__device__ T convert(float x);
template <>
__device__ inline __nv_bfloat16 convert<__nv_bfloat16>(float x) {
  return __float2bfloat16_rn(x);
}
template <>
__device__ inline __half convert<__half>(float x) {
  return __float2half_rn(x);
}

template <class T>
__device__ void cast_vector(const float* src, T* dst) {
  static_assert(kVector == 8 && sizeof(T) == 2);
  const float4 low = *reinterpret_cast<const float4*>(src);
  const float4 high = *reinterpret_cast<const float4*>(src + 4);
  alignas(16) T out[kVector] = {convert<T>(low.x),  convert<T>(low.y),  convert<T>(low.z),
                                convert<T>(low.w),  convert<T>(high.x), convert<T>(high.y),
                                convert<T>(high.z), convert<T>(high.w)};
  *reinterpret_cast<uint4*>(dst) = *reinterpret_cast<const uint4*>(out);
}

template <class T>
__device__ void cast_rows(const Params& p) {
  const int64_t vectors = (p.cols + kVector - 1) / kVector;
  const int64_t row_step = static_cast<int64_t>(gridDim.x) * blockDim.y;
  const int64_t vector_step = static_cast<int64_t>(gridDim.y) * blockDim.x;
  const int64_t first_row = static_cast<int64_t>(blockIdx.x) * blockDim.y + threadIdx.y;
  const int64_t first_vector = static_cast<int64_t>(blockIdx.y) * blockDim.x + threadIdx.x;
  for (int64_t row = first_row; row < p.rows; row += row_step) {
    const float* src = p.src + row * p.src_stride;
    T* dst = static_cast<T*>(p.dst) + row * p.dst_stride;
    const bool aligned =
        reinterpret_cast<uintptr_t>(src) % 16 == 0 && reinterpret_cast<uintptr_t>(dst) % 16 == 0;
    for (int64_t v = first_vector; v < vectors; v += vector_step) {
      const int64_t begin = v * kVector;
      if (aligned && begin + kVector <= p.cols) {
        cast_vector(src + begin, dst + begin);
        continue;
      }
      const int64_t end = begin + kVector < p.cols ? begin + kVector : p.cols;
      for (int64_t c = begin; c < end; ++c) dst[c] = convert<T>(src[c]);
    }
  }
}

}  // namespace dsattn::gpu::cast
