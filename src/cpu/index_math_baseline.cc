// index_math.inc compiled for baseline.
#define DSATTN_INDEX_TABLE kIndexMathBaseline
#include "cpu/index_math.inc"
