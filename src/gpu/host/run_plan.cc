// Nodes go to one stream in order, which satisfies every dependency. A module is loaded once per
// process: libraries of the driver belong to no context.
#include "gpu/host/run_plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <mutex>
#include <string>
#include <vector>

#include "gpu/host/driver.h"
#include "gpu/host/gpu_status.h"
#include "gpu/host/modules.h"
#include "gpu/host/tensor_map.h"
#include "plan/pack.h"
#include "plan/validate.h"

namespace dsattn::gpu {
namespace {

constexpr int64_t kDefaultSharedBytes = 48 * 1024;  // beyond it a kernel must be told
constexpr int64_t kPortableCluster = 8;

Result<driver::Kernel> load_kernel(const driver::Api& api, const std::string& module,
                                   const std::string& arch, const std::string& entry) {
  static std::mutex mutex;
  static std::map<const EmbeddedModule*, driver::Library> libraries;
  const EmbeddedModule* embedded = find_module(module, arch);
  if (embedded == nullptr) {
    return fail(ErrorCode::kUnavailable,
                fmt::format("this build has no module '{}' for {}", module, arch));
  }
  const std::lock_guard lock(mutex);
  driver::Library& library = libraries[embedded];
  if (library == nullptr) {
    auto loaded = check(api,
                        api.library_load(&library, embedded->cubin.data(), nullptr, nullptr, 0,
                                         nullptr, nullptr, 0),
                        "cuLibraryLoadData");
    if (!loaded) return tl::unexpected(loaded.error());
  }
  driver::Kernel kernel = nullptr;
  auto found = check(api, api.library_kernel(&kernel, library, entry.c_str()),
                     fmt::format("cuLibraryGetKernel({})", entry));
  if (!found) return tl::unexpected(found.error());
  return kernel;
}

class Runner {
 public:
  Runner(const driver::Api& api, driver::Device device, const std::string& arch,
         std::span<const uint64_t> addresses, driver::Stream stream)
      : api_(api), device_(device), arch_(arch), addresses_(addresses), stream_(stream) {}

  Result<void> operator()(const plan::MemsetNode& node) const {
    if (node.bytes == 0) return {};
    const uint64_t target = addresses_[static_cast<size_t>(node.target.buffer)] +
                            static_cast<uint64_t>(node.target.offset_bytes);
    return check(api_, api_.memset_u8(target, node.value, static_cast<size_t>(node.bytes), stream_),
                 "cuMemsetD8Async");
  }

  Result<void> operator()(const plan::KernelNode& node) const {
    auto kernel = load_kernel(api_, node.module, arch_, node.entry);
    if (!kernel) return tl::unexpected(kernel.error());
    if (auto prepared = set_limits(*kernel, node); !prepared) return prepared;

    std::vector<std::vector<std::byte>> packed;
    std::vector<void*> params;
    for (const plan::Arg& arg : node.args) {
      auto bytes = plan::pack(arg, addresses_,
                              [&](const plan::TensorMap& map, uint64_t base, std::byte* encoded) {
                                return encode_tensor_map(api_, map, base, encoded);
                              });
      if (!bytes) return tl::unexpected(bytes.error());
      packed.push_back(std::move(*bytes));
    }
    params.reserve(packed.size());
    for (auto& bytes : packed) params.push_back(bytes.data());
    return launch(*kernel, node, params);
  }

 private:
  Result<void> set_limits(driver::Kernel kernel, const plan::KernelNode& node) const {
    if (node.shared_bytes > kDefaultSharedBytes) {
      auto set =
          check(api_,
                api_.kernel_set_attribute(driver::kMaxDynamicSharedBytes,
                                          static_cast<int>(node.shared_bytes), kernel, device_),
                "cuKernelSetAttribute(shared bytes)");
      if (!set) return set;
    }
    if (node.cluster[0] * node.cluster[1] * node.cluster[2] <= kPortableCluster) return {};
    return check(api_,
                 api_.kernel_set_attribute(driver::kNonPortableClusterAllowed, 1, kernel, device_),
                 "cuKernelSetAttribute(cluster size)");
  }

  Result<void> launch(driver::Kernel kernel, const plan::KernelNode& node,
                      std::vector<void*>& params) const {
    std::array<driver::LaunchAttribute, 2> attributes{};
    driver::LaunchConfig config{};
    const auto narrow = [](int64_t value) { return static_cast<unsigned>(value); };
    std::transform(node.grid.begin(), node.grid.end(), config.grid, narrow);
    std::transform(node.block.begin(), node.block.end(), config.block, narrow);
    config.shared_bytes = narrow(node.shared_bytes);
    config.stream = stream_;
    config.attributes = attributes.data();
    if (node.cluster != std::array<int64_t, 3>{1, 1, 1}) {
      auto& attribute = attributes[config.num_attributes++];
      attribute.id = driver::kAttributeClusterDimension;
      std::transform(node.cluster.begin(), node.cluster.end(), attribute.value.cluster, narrow);
    }
    if (node.programmatic) {
      auto& attribute = attributes[config.num_attributes++];
      attribute.id = driver::kAttributeProgrammaticStream;
      attribute.value.programmatic = 1;
    }
    // The driver takes a kernel of a library where it takes a function.
    const auto function = reinterpret_cast<driver::Function>(kernel);
    return check(api_, api_.launch(&config, function, params.data(), nullptr),
                 fmt::format("cuLaunchKernelEx({})", node.entry));
  }

  const driver::Api& api_;
  driver::Device device_;
  const std::string& arch_;
  std::span<const uint64_t> addresses_;
  driver::Stream stream_;
};

}  // namespace

Result<void> run_plan(const plan::LaunchPlan& plan, std::span<const uint64_t> addresses,
                      void* stream, int ordinal) {
  if (auto valid = plan::validate(plan); !valid) return valid;
  if (addresses.size() != plan.buffers.size()) {
    return fail(ErrorCode::kInvalidValue, fmt::format("{} addresses for a plan of {} buffers",
                                                      addresses.size(), plan.buffers.size()));
  }
  const GpuStatus status = gpu_status(ordinal);
  if (!status.available) return fail(ErrorCode::kUnavailable, status.detail);
  if (status.arch != plan.arch) {
    return fail(ErrorCode::kUnavailable,
                fmt::format("the plan is for {}, the device is {}", plan.arch, status.detail));
  }
  auto loaded = load_driver();
  if (!loaded) return tl::unexpected(loaded.error());
  auto scope = ContextScope::enter(**loaded, ordinal);
  if (!scope) return tl::unexpected(scope.error());
  const Runner runner(**loaded, scope->device(), plan.arch, addresses,
                      static_cast<driver::Stream>(stream));
  for (const plan::Node& node : plan.nodes) {
    if (auto done = std::visit(runner, node.work); !done) return done;
  }
  return {};
}

}  // namespace dsattn::gpu
