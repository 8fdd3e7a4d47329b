// Shapes of the cast kernel, shared by the device code and by the host code that plans launches.
#pragma once

#include <cstdint>

namespace dsattn::gpu::cast {

inline constexpr int kThreads = 256;
inline constexpr int kVector = 8;  ///< elements per thread and step: 32 bytes read, 16 written

// More blocks than these would only queue; the kernel strides over the rest.
inline constexpr int64_t kMaxRowBlocks = 4096;
inline constexpr int64_t kMaxColumnBlocks = 64;

/// The kernel's one argument.
struct Params {
  const float* src;  // [rows, cols], row stride src_stride
  void* dst;         // [rows, cols] bf16 or f16, row stride dst_stride
  int64_t rows;
  int64_t cols;
  int64_t src_stride;  // elements
  int64_t dst_stride;
};
static_assert(sizeof(Params) == 48);

inline constexpr const char* kModule = "cast";
inline constexpr const char* kEntryBf16 = "dsattn_cast_f32_bf16";
inline constexpr const char* kEntryF16 = "dsattn_cast_f32_f16";

}  // namespace dsattn::gpu::cast
