// attention_math.inc compiled for baseline.
#define DSATTN_MATH_TABLES kAttentionMathBaseline
#include "cpu/attention_math.inc"
