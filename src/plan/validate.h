// Rules that every plan keeps, checked once so that no runner has to.
#pragma once

#include "dsattn/result.h"
#include "plan/plan.h"

namespace dsattn::plan {

/// Errors (kInvalidValue): a buffer without or with a repeated name, an address outside its buffer,
/// a dependency that is not an earlier node, launch sizes beyond the hardware's limits, a cluster
/// that does not divide the grid, a malformed tensor map.
Result<void> validate(const LaunchPlan& plan);

}  // namespace dsattn::plan
