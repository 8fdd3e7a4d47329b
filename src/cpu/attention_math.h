// The work of sparse attention that is not a matrix product: loading, packing, softmax, its
// gradient, adding rows. One table of functions per instruction set and storage type; they live in
// attention_math_<isa>.cc, which compile attention_math.inc with that set's options.
//
// Heads lie along the lanes ([slots, heads] matrices), so that no sum runs across a register.
// Widths named *_padded are multiples of 32. E is the type the matrix kernels multiply: bf16 for
// bf16 storage, float for fp16 storage (whose scores and gradients then need no rounding).
#pragma once

#include <cstdint>
#include <type_traits>

#include "base/float16.h"
#include "dsattn/ops.h"

namespace dsattn::cpu {

/// bf16 storage multiplied in fp32: for rows so narrow that rounded weights would not average out.
struct narrow_bf16 {
  uint16_t bits = 0;
};

template <class T>
using ProductType = std::conditional_t<std::is_same_v<T, bf16>, bf16, float>;

/// What the softmax gradient needs of one query; arrays over its padded heads.
struct GradientRow {
  float scale;
  const float* norm;     ///< logaddexp(lse, sink)
  const float* delta;    ///< <out, dout>
  const uint32_t* live;  ///< all ones, or 0: the head has weight 0 in this row
};

template <class T>
struct AttentionMath {
  using E = ProductType<T>;

  /// dst[0..padded) = src[0..n), then zeros.
  void (*load_row)(const T* src, int64_t n, E* dst, int64_t padded);

  /// dst[c, r] = src[r, c] in 32-bit words; rows and columns are multiples of 16.
  void (*transpose)(const uint32_t* src, int64_t ld_src, int64_t rows, int64_t columns,
                    uint32_t* dst, int64_t ld_dst);

  /// Packs k rows of n columns (multiples of 32) as part of a B operand of the given depth.
  void (*pack_rows)(const E* src, int64_t ld, int64_t k, int64_t n, E* dst, int64_t depth);

  /// One block of the running softmax. s: [n, heads] raw dot products. Updates max and sum, leaves
  /// in `rescale` the factor for what was summed before, and writes the weights as 32-bit words
  /// [n_padded * sizeof(E) / 4, heads]: a bf16 word holds two slots.
  void (*softmax_block)(const float* s, int64_t n, int64_t n_padded, int64_t heads, float scale,
                        float* max, float* sum, float* rescale, uint32_t* words);

  /// dS and P of one block from dot products s and dp [n, heads]. rows: [n_padded, 2 * heads] holds
  /// dS | P; words: dS as in softmax_block.
  void (*gradient_block)(const float* s, const float* dp, int64_t n, int64_t n_padded,
                         int64_t heads, const GradientRow& row, E* rows, uint32_t* words);

  /// x[0..n) *= factor.
  void (*scale_row)(float* x, int64_t n, float factor);

  /// dst = src * factor, rounded to storage.
  void (*store_row)(const float* src, int64_t n, float factor, T* dst);

  /// <a, b> over n elements, a multiple of 32.
  float (*dot)(const E* a, const E* b, int64_t n);

  /// dst[ids[j], 0..width) += tile[j, 0..width), j ascending.
  void (*add_rows)(const float* tile, int64_t ld_tile, const int32_t* ids, int64_t n, int64_t width,
                   float* dst, int64_t ld_dst);
};

/// The functions for gemm_for(limit).isa. Defined for bf16, f16 and narrow_bf16.
template <class T>
const AttentionMath<T>& attention_math(CpuIsa limit);

/// The tables of one instruction set.
struct AttentionMathTables {
  AttentionMath<bf16> for_bf16;
  AttentionMath<f16> for_f16;
  AttentionMath<narrow_bf16> for_narrow_bf16;
};
extern const AttentionMathTables kAttentionMathBaseline;
extern const AttentionMathTables kAttentionMathAvx2;
extern const AttentionMathTables kAttentionMathAvx512;

}  // namespace dsattn::cpu
