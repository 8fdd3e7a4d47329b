// How much arithmetic a problem asks for: the floating-point operations of its matrix products
// over valid slots or visible keys, a product and a sum counting as two. Softmax is not counted.
#pragma once

#include "problem/problem.h"

namespace dsattn {

/// 0 for indexer_top_k, which multiplies nothing.
double floating_operations(const Problem& problem);

}  // namespace dsattn
