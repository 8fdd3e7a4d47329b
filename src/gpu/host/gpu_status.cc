// An "a" architecture runs on exactly one compute capability: sm_90a on 9.0, sm_100a on 10.0.
#include "gpu/host/gpu_status.h"

#include <fmt/format.h>

#include <array>
#include <set>

#include "gpu/host/driver.h"
#include "gpu/host/modules.h"

namespace dsattn::gpu {
namespace {

std::string built_archs() {
  std::set<std::string_view> archs;
  for (const EmbeddedModule& module : embedded_modules()) archs.insert(module.arch);
  return fmt::format("{}", fmt::join(archs, ", "));
}

bool has_arch(std::string_view arch) {
  for (const EmbeddedModule& module : embedded_modules()) {
    if (module.arch == arch) return true;
  }
  return false;
}

}  // namespace

const EmbeddedModule* find_module(std::string_view name, std::string_view arch) {
  for (const EmbeddedModule& module : embedded_modules()) {
    if (module.name == name && module.arch == arch) return &module;
  }
  return nullptr;
}

GpuStatus gpu_status(int ordinal) {
  if (embedded_modules().empty()) {
    return {false, "this is a CPU-only build: there was no nvcc when it was made", ""};
  }
  auto loaded = load_driver();
  if (!loaded) return {false, loaded.error().message, ""};
  const driver::Api& api = **loaded;
  int count = 0;
  if (api.device_count(&count) != driver::kSuccess || count == 0) {
    return {false, "the CUDA driver finds no GPU on this machine", ""};
  }
  if (ordinal < 0 || ordinal >= count) {
    return {false, fmt::format("there is no CUDA device {}, this machine has {}", ordinal, count),
            ""};
  }
  driver::Device device = 0;
  std::array<char, 128> name{};
  int major = 0;
  int minor = 0;
  const bool read =
      api.device_get(&device, ordinal) == driver::kSuccess &&
      api.device_name(name.data(), static_cast<int>(name.size()) - 1, device) == driver::kSuccess &&
      api.device_attribute(&major, driver::kComputeCapabilityMajor, device) == driver::kSuccess &&
      api.device_attribute(&minor, driver::kComputeCapabilityMinor, device) == driver::kSuccess;
  if (!read) return {false, fmt::format("CUDA device {} does not answer", ordinal), ""};
  const std::string arch = fmt::format("sm_{}{}a", major, minor);
  if (!has_arch(arch)) {
    return {false,
            fmt::format("{} has compute capability {}.{}, this build has kernels for {}",
                        name.data(), major, minor, built_archs()),
            ""};
  }
  return {true, fmt::format("{}, {}", name.data(), arch), arch};
}

}  // namespace dsattn::gpu
