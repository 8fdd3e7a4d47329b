// index_math.inc compiled for avx2.
#define DSATTN_INDEX_TABLE kIndexMathAvx2
#include "cpu/index_math.inc"
