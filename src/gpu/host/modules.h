// The compiled kernels that this build carries inside itself: one cubin per module and GPU
// architecture. The table is generated (cmake/DsattnCuda.cmake); a CPU-only build has none.
#pragma once

#include <span>
#include <string_view>

namespace dsattn::gpu {

struct EmbeddedModule {
  std::string_view name;        ///< e.g. "cast", as KernelNode::module says
  std::string_view arch;        ///< "sm_90a" or "sm_100a"
  std::span<const char> cubin;  ///< an ELF image
};

std::span<const EmbeddedModule> embedded_modules();

/// The cubin of a module for an architecture, or null.
const EmbeddedModule* find_module(std::string_view name, std::string_view arch);

}  // namespace dsattn::gpu
