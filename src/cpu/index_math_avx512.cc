// index_math.inc compiled for avx512.
#define DSATTN_INDEX_TABLE kIndexMathAvx512
#include "cpu/index_math.inc"
