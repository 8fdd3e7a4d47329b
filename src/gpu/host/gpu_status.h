// Is there a GPU this build can run on, and if not, why?
#pragma once

#include <string>

namespace dsattn::gpu {

struct GpuStatus {
  bool available = false;
  std::string detail;  ///< the device's name and architecture, or the reason
  std::string arch;    ///< "sm_90a" or "sm_100a" if available
};

/// Looks at CUDA device `ordinal`; starts the driver, but creates no context. Never fails: no
/// driver, no device, an architecture without kernels and a CPU-only build are answers.
GpuStatus gpu_status(int ordinal = 0);

}  // namespace dsattn::gpu
