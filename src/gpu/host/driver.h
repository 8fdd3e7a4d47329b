// Access to the driver: loading it, and turning its status codes into errors.
#pragma once

#include <string_view>

#include "dsattn/result.h"
#include "gpu/host/driver_api.h"

namespace dsattn::gpu {

/// The driver, opened and initialised once per process. Error: kUnavailable (no libcuda.so.1, a
/// driver too old for a function we need, cuInit failed), with the reason.
Result<const driver::Api*> load_driver();

/// Success, or kInternal naming the call and the driver's text.
Result<void> check(const driver::Api& api, driver::Status status, std::string_view call);

/// Makes the primary context of a device current while alive; the caller's context comes back.
class ContextScope {
 public:
  static Result<ContextScope> enter(const driver::Api& api, int ordinal);
  ContextScope(ContextScope&& other) noexcept;
  ContextScope& operator=(ContextScope&&) = delete;
  ~ContextScope();

  driver::Device device() const { return device_; }

 private:
  ContextScope(const driver::Api& api, driver::Device device) : api_(&api), device_(device) {}
  const driver::Api* api_;
  driver::Device device_;
};

}  // namespace dsattn::gpu
