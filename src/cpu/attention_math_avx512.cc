// attention_math.inc compiled for avx512.
#define DSATTN_MATH_TABLES kAttentionMathAvx512
#include "cpu/attention_math.inc"
