// The part of the CUDA driver API that we call, declared here so that a build needs no CUDA header
// and a binary no CUDA library: libcuda.so.1 is opened at run time. Values and layouts are those
// of cuda.h (the tests compare them where a toolkit is installed).
#pragma once

#include <cstddef>
#include <cstdint>

namespace dsattn::gpu::driver {

using Status = int;  // CUresult; 0 is success
using Device = int;
using DevicePtr = unsigned long long;
using Context = struct ContextTag*;
using Library = struct LibraryTag*;
using Kernel = struct KernelTag*;
using Function = struct FunctionTag*;
using Stream = struct StreamTag*;

inline constexpr Status kSuccess = 0;
inline constexpr Status kErrorNoDevice = 100;

inline constexpr int kComputeCapabilityMajor = 75;  // CUdevice_attribute
inline constexpr int kComputeCapabilityMinor = 76;
inline constexpr int kMaxDynamicSharedBytes = 8;        // CUfunction_attribute
inline constexpr int kNonPortableClusterAllowed = 14;   // CUfunction_attribute
inline constexpr int kAttributeClusterDimension = 4;    // CUlaunchAttributeID
inline constexpr int kAttributeProgrammaticStream = 6;  // CUlaunchAttributeID

struct LaunchAttribute {
  int id;
  int pad;
  union {
    unsigned cluster[3];
    int programmatic;
    char bytes[64];
  } value;
};

struct LaunchConfig {
  unsigned grid[3];
  unsigned block[3];
  unsigned shared_bytes;
  Stream stream;
  LaunchAttribute* attributes;
  unsigned num_attributes;
};

struct alignas(128) TensorMapImage {  // CUtensorMap
  uint64_t opaque[16];
};

// name of the member, symbol in libcuda, parameters
#define DSATTN_DRIVER_FUNCTIONS(X)                                                                \
  X(init, "cuInit", (unsigned flags))                                                             \
  X(error_text, "cuGetErrorString", (Status status, const char** text))                           \
  X(driver_version, "cuDriverGetVersion", (int* version))                                         \
  X(device_count, "cuDeviceGetCount", (int* count))                                               \
  X(device_get, "cuDeviceGet", (Device * device, int ordinal))                                    \
  X(device_name, "cuDeviceGetName", (char* name, int capacity, Device device))                    \
  X(device_attribute, "cuDeviceGetAttribute", (int* value, int attribute, Device device))         \
  X(context_retain, "cuDevicePrimaryCtxRetain", (Context * context, Device device))               \
  X(context_push, "cuCtxPushCurrent_v2", (Context context))                                       \
  X(context_pop, "cuCtxPopCurrent_v2", (Context * context))                                       \
  X(library_load, "cuLibraryLoadData",                                                            \
    (Library * library, const void* image, int* jit_options, void** jit_values, unsigned num_jit, \
     int* options, void** values, unsigned num_options))                                          \
  X(library_kernel, "cuLibraryGetKernel", (Kernel * kernel, Library library, const char* name))   \
  X(kernel_set_attribute, "cuKernelSetAttribute",                                                 \
    (int attribute, int value, Kernel kernel, Device device))                                     \
  X(launch, "cuLaunchKernelEx",                                                                   \
    (const LaunchConfig* config, Function function, void** params, void** extra))                 \
  X(memset_u8, "cuMemsetD8Async",                                                                 \
    (DevicePtr target, unsigned char value, size_t count, Stream stream))                         \
  X(allocate, "cuMemAlloc_v2", (DevicePtr * address, size_t bytes))                               \
  X(release, "cuMemFree_v2", (DevicePtr address))                                                 \
  X(copy_in, "cuMemcpyHtoDAsync_v2",                                                              \
    (DevicePtr target, const void* source, size_t bytes, Stream stream))                          \
  X(copy_out, "cuMemcpyDtoHAsync_v2",                                                             \
    (void* target, DevicePtr source, size_t bytes, Stream stream))                                \
  X(stream_synchronize, "cuStreamSynchronize", (Stream stream))                                   \
  X(encode_tiled, "cuTensorMapEncodeTiled",                                                       \
    (TensorMapImage * map, int type, unsigned rank, void* base, const uint64_t* shape,            \
     const uint64_t* strides, const unsigned* box, const unsigned* element_strides,               \
     int interleave, int swizzle, int l2_promotion, int oob_fill))

/// The functions by name. Null members do not occur in an Api that load_driver() returned.
struct Api {
#define DSATTN_DRIVER_MEMBER(name, symbol, params) Status(*name) params = nullptr;
  DSATTN_DRIVER_FUNCTIONS(DSATTN_DRIVER_MEMBER)
#undef DSATTN_DRIVER_MEMBER
};

}  // namespace dsattn::gpu::driver
