// Our declarations of the CUDA driver API against cuda.h, where a toolkit's headers are installed.
#include <cuda.h>
#include <gtest/gtest.h>

#include <cstddef>
#include <type_traits>

#include "gpu/host/driver_api.h"

namespace dsattn::gpu::driver {
namespace {

static_assert(kSuccess == CUDA_SUCCESS && kErrorNoDevice == CUDA_ERROR_NO_DEVICE);
static_assert(kComputeCapabilityMajor == CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR);
static_assert(kComputeCapabilityMinor == CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR);
static_assert(kMaxDynamicSharedBytes == CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES);
static_assert(kNonPortableClusterAllowed == CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED);
static_assert(kAttributeClusterDimension == CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION);
static_assert(kAttributeProgrammaticStream ==
              CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION);
static_assert(std::is_same_v<DevicePtr, CUdeviceptr> && std::is_same_v<Device, CUdevice>);

static_assert(sizeof(LaunchAttribute) == sizeof(CUlaunchAttribute));
static_assert(offsetof(LaunchAttribute, value) == offsetof(CUlaunchAttribute, value));
static_assert(sizeof(LaunchConfig) == sizeof(CUlaunchConfig));
static_assert(offsetof(LaunchConfig, block) == offsetof(CUlaunchConfig, blockDimX));
static_assert(offsetof(LaunchConfig, shared_bytes) == offsetof(CUlaunchConfig, sharedMemBytes));
static_assert(offsetof(LaunchConfig, stream) == offsetof(CUlaunchConfig, hStream));
static_assert(offsetof(LaunchConfig, attributes) == offsetof(CUlaunchConfig, attrs));
static_assert(offsetof(LaunchConfig, num_attributes) == offsetof(CUlaunchConfig, numAttrs));
static_assert(sizeof(TensorMapImage) == sizeof(CUtensorMap));
static_assert(alignof(TensorMapImage) == alignof(CUtensorMap));

// tensor_map.cc writes these numbers.
static_assert(CU_TENSOR_MAP_DATA_TYPE_UINT8 == 0 && CU_TENSOR_MAP_DATA_TYPE_INT32 == 3 &&
              CU_TENSOR_MAP_DATA_TYPE_FLOAT16 == 6 && CU_TENSOR_MAP_DATA_TYPE_FLOAT32 == 7 &&
              CU_TENSOR_MAP_DATA_TYPE_FLOAT64 == 8 && CU_TENSOR_MAP_DATA_TYPE_BFLOAT16 == 9);
static_assert(CU_TENSOR_MAP_SWIZZLE_NONE == 0 && CU_TENSOR_MAP_SWIZZLE_32B == 1 &&
              CU_TENSOR_MAP_SWIZZLE_64B == 2 && CU_TENSOR_MAP_SWIZZLE_128B == 3);
static_assert(CU_TENSOR_MAP_INTERLEAVE_NONE == 0 && CU_TENSOR_MAP_L2_PROMOTION_L2_256B == 3 &&
              CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE == 0);

TEST(DriverAbi, ClusterDimensionsLieWhereTheDriverReadsThem) {
  LaunchAttribute ours{};
  ours.id = kAttributeClusterDimension;
  ours.value.cluster[0] = 2;
  ours.value.cluster[1] = 3;
  ours.value.cluster[2] = 4;
  const auto& theirs = reinterpret_cast<const CUlaunchAttribute&>(ours);
  EXPECT_EQ(theirs.id, CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION);
  EXPECT_EQ(theirs.value.clusterDim.x, 2u);
  EXPECT_EQ(theirs.value.clusterDim.y, 3u);
  EXPECT_EQ(theirs.value.clusterDim.z, 4u);
}

}  // namespace
}  // namespace dsattn::gpu::driver
