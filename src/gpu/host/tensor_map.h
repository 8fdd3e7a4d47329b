// Encodes a plan's tensor map with the driver.
#pragma once

#include "dsattn/result.h"
#include "gpu/host/driver_api.h"
#include "plan/plan.h"

namespace dsattn::gpu {

/// Writes plan::kTensorMapBytes bytes. Error: kInternal if the driver refuses the map.
Result<void> encode_tensor_map(const driver::Api& api, const plan::TensorMap& map, uint64_t base,
                               std::byte* encoded);

}  // namespace dsattn::gpu
