// The indexer's work that is not a matrix product. One table of functions per instruction set; they
// live in index_math_<isa>.cc, which compile index_math.inc with that set's options. Lengths named
// n are multiples of 16. Products are S[h, key] with keys along the lanes.
#pragma once

#include <cstdint>

#include "base/float16.h"
#include "dsattn/ops.h"

namespace dsattn::cpu {

struct IndexMath {
  /// scores[j] = scale * sum_h relu(s[h, j]) * w[h], h ascending; relu(NaN) is NaN.
  void (*weighted_relu)(const float* s, int64_t ld, const float* w, int64_t heads, int64_t n,
                        float scale, float* scores);

  /// One block of the backward. dw[h] += sum_j x[j] relu(s[h, j]); A[h, j] = [s > 0] x[j] w[h] to
  /// rows [heads_padded, n], and in pairs of heads to words [heads_padded / 2, n].
  void (*gradient_block)(const float* s, int64_t ld, const float* x, const float* w, int64_t heads,
                         int64_t heads_padded, int64_t n, double* dw, bf16* rows, uint32_t* words);

  /// x[j] = exp(x[j] - shift); returns the sum.
  double (*exp_row)(float* x, int64_t n, float shift);

  /// target[j] = sum of exp(scale * s[j, h] - shift[h]) over heads whose live word is all ones.
  void (*target_block)(const float* s, int64_t slots, int64_t heads, float scale,
                       const float* shift, const uint32_t* live, float* target);

  /// Largest scale * s[j, h] over slots, per head: max[h] = max(max[h], ...); NaN if one is NaN.
  void (*max_block)(const float* s, int64_t slots, int64_t heads, float scale, float* max);

  /// Whether any of 16 scores exceeds the bound.
  bool (*any_above)(const float* scores, float bound);
};

/// The functions for gemm_for(limit).isa.
const IndexMath& index_math(CpuIsa limit);

extern const IndexMath kIndexMathBaseline;
extern const IndexMath kIndexMathAvx2;
extern const IndexMath kIndexMathAvx512;

}  // namespace dsattn::cpu
