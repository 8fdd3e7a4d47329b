// Memory of CUDA device 0 for tests: allocated, filled and read back through the driver.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <utility>
#include <vector>

#include "gpu/host/driver.h"

namespace dsattn::gpu {

template <class T>
class DeviceArray {
 public:
  explicit DeviceArray(const std::vector<T>& host) : size_(host.size()) {
    const driver::Api& api = **load_driver();
    auto scope = ContextScope::enter(api, 0);
    EXPECT_TRUE(scope);
    expect(api, api.allocate(&address_, size_ * sizeof(T)), "cuMemAlloc");
    expect(api, api.copy_in(address_, host.data(), size_ * sizeof(T), nullptr), "cuMemcpyHtoD");
    expect(api, api.stream_synchronize(nullptr), "cuStreamSynchronize");
  }
  DeviceArray(const DeviceArray&) = delete;
  DeviceArray& operator=(const DeviceArray&) = delete;
  ~DeviceArray() {
    const driver::Api& api = **load_driver();
    auto scope = ContextScope::enter(api, 0);
    expect(api, api.release(address_), "cuMemFree");
  }

  uint64_t address() const { return address_; }

  /// Waits for the default stream, then copies.
  std::vector<T> read() const {
    const driver::Api& api = **load_driver();
    auto scope = ContextScope::enter(api, 0);
    std::vector<T> host(size_);
    expect(api, api.copy_out(host.data(), address_, size_ * sizeof(T), nullptr), "cuMemcpyDtoH");
    expect(api, api.stream_synchronize(nullptr), "cuStreamSynchronize");
    return host;
  }

 private:
  static void expect(const driver::Api& api, driver::Status status, const char* call) {
    const auto done = check(api, status, call);
    EXPECT_TRUE(done) << done.error().message;
  }

  size_t size_;
  driver::DevicePtr address_ = 0;
};

}  // namespace dsattn::gpu
