// Opens libcuda.so.1. The handle stays open until the process ends: the driver owns threads.
#include "gpu/host/driver.h"

#include <dlfcn.h>
#include <fmt/format.h>

#include <array>
#include <mutex>
#include <utility>

namespace dsattn::gpu {
namespace {

std::string describe(const driver::Api& api, driver::Status status) {
  const char* text = nullptr;
  if (api.error_text(status, &text) != driver::kSuccess || text == nullptr) text = "unknown error";
  return fmt::format("{} (CUDA error {})", text, status);
}

Result<driver::Api> open_driver() {
  void* handle = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
  if (handle == nullptr) {
    return fail(ErrorCode::kUnavailable,
                fmt::format("there is no CUDA driver on this machine: {}", dlerror()));
  }
  driver::Api api;
  const char* absent = nullptr;
#define DSATTN_DRIVER_LOAD(name, symbol, params)                          \
  api.name = reinterpret_cast<decltype(api.name)>(dlsym(handle, symbol)); \
  if (api.name == nullptr && absent == nullptr) absent = symbol;
  DSATTN_DRIVER_FUNCTIONS(DSATTN_DRIVER_LOAD)
#undef DSATTN_DRIVER_LOAD
  if (absent != nullptr) {
    return fail(
        ErrorCode::kUnavailable,
        fmt::format("the CUDA driver is too old: it has no {} (12.0 or later has)", absent));
  }
  if (const driver::Status status = api.init(0); status != driver::kSuccess) {
    return fail(ErrorCode::kUnavailable,
                status == driver::kErrorNoDevice
                    ? "the CUDA driver finds no GPU on this machine"
                    : fmt::format("the CUDA driver does not start: {}", describe(api, status)));
  }
  return api;
}

}  // namespace

Result<const driver::Api*> load_driver() {
  static const Result<driver::Api> loaded = open_driver();
  if (!loaded) return tl::unexpected(loaded.error());
  return &*loaded;
}

Result<void> check(const driver::Api& api, driver::Status status, std::string_view call) {
  if (status == driver::kSuccess) return {};
  return fail(ErrorCode::kInternal, fmt::format("{}: {}", call, describe(api, status)));
}

Result<ContextScope> ContextScope::enter(const driver::Api& api, int ordinal) {
  // One retain per device and process: releasing would destroy memory that others still use.
  constexpr size_t kMaxDevices = 64;
  static std::mutex mutex;
  static std::array<driver::Context, kMaxDevices> contexts{};
  if (ordinal < 0 || static_cast<size_t>(ordinal) >= kMaxDevices) {
    return fail(ErrorCode::kInvalidDevice,
                fmt::format("CUDA device {}, allowed 0 to {}", ordinal, kMaxDevices - 1));
  }
  driver::Device device = 0;
  auto got = check(api, api.device_get(&device, ordinal), "cuDeviceGet");
  if (!got) return tl::unexpected(got.error());
  driver::Context context = nullptr;
  {
    const std::lock_guard lock(mutex);
    driver::Context& slot = contexts[static_cast<size_t>(ordinal)];
    if (slot == nullptr) {
      auto kept = check(api, api.context_retain(&slot, device), "cuDevicePrimaryCtxRetain");
      if (!kept) return tl::unexpected(kept.error());
    }
    context = slot;
  }
  auto pushed = check(api, api.context_push(context), "cuCtxPushCurrent");
  if (!pushed) return tl::unexpected(pushed.error());
  return ContextScope(api, device);
}

ContextScope::ContextScope(ContextScope&& other) noexcept
    : api_(std::exchange(other.api_, nullptr)), device_(other.device_) {}

ContextScope::~ContextScope() {
  driver::Context popped = nullptr;
  if (api_ != nullptr) api_->context_pop(&popped);
}

}  // namespace dsattn::gpu
