// Runs a LaunchPlan on a GPU.
#pragma once

#include <cstdint>
#include <span>

#include "dsattn/result.h"
#include "plan/plan.h"

namespace dsattn::gpu {

/// Enqueues every node of the plan on one stream of CUDA device `ordinal` and returns without
/// waiting; stream order satisfies the plan's dependencies. addresses[i] is the device address of
/// buffer i; the plan's `init` members are not acted on. stream: a CUstream, null = the default.
/// Errors: kInvalidValue (plan), kUnavailable (no driver, no device, the plan's architecture is not
/// the device's, no such module), kInternal (the driver refused; the message has its text).
Result<void> run_plan(const plan::LaunchPlan& plan, std::span<const uint64_t> addresses,
                      void* stream = nullptr, int ordinal = 0);

}  // namespace dsattn::gpu
