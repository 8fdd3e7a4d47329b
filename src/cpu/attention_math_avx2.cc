// attention_math.inc compiled for avx2.
#define DSATTN_MATH_TABLES kAttentionMathAvx2
#include "cpu/attention_math.inc"
