// The cast kernel without a GPU: its plan, its compiled files, and what the runner says here.
#include <gtest/gtest.h>

#include <array>
#include <cstring>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>

#include "gpu/cast/config.h"
#include "gpu/cast/plan.h"
#include "gpu/host/gpu_status.h"
#include "gpu/host/modules.h"
#include "gpu/host/run_plan.h"
#include "plan/json.h"
#include "plan/pack.h"
#include "plan/validate.h"

namespace dsattn::gpu {
namespace {

TensorView matrix(DType dtype, int64_t rows, int64_t cols, int64_t stride) {
  TensorView view(nullptr, dtype, {rows, cols});
  view.strides[0] = stride;
  return view;
}

TEST(CastPlan, SerialisesWithItsOneStruct) {
  const auto plan = cast::make_plan("sm_90a", matrix(DType::kF32, 1000, 576, 600),
                                    matrix(DType::kBF16, 1000, 576, 576));
  ASSERT_TRUE(plan) << plan.error().message;
  ASSERT_TRUE(plan::validate(*plan));
  const auto json = nlohmann::json::parse(plan::to_json(*plan, "ptx"));
  EXPECT_EQ(json["buffers"]["src"]["shape"], nlohmann::json({999 * 600 + 576}));
  EXPECT_EQ(json["buffers"]["dst"]["dtype"], "bf16");
  const auto& launch = json["launches"][0];
  EXPECT_EQ(launch["module"], "ptx/cast.sm_90a.ptx");
  EXPECT_EQ(launch["entry"], "dsattn_cast_f32_bf16");
  EXPECT_EQ(launch["grid"], nlohmann::json({500, 1, 1}));  // 72 vectors: 128 threads x 2 rows
  EXPECT_EQ(launch["block"], nlohmann::json({128, 2, 1}));
  EXPECT_EQ(launch["args"], nlohmann::json::parse(R"([{"struct": [
      {"buffer": "src", "offset_bytes": 0}, {"buffer": "dst", "offset_bytes": 0},
      {"i64": 1000}, {"i64": 576}, {"i64": 600}, {"i64": 576}]}])"));
}

TEST(CastPlan, ArgumentIsTheKernelsStruct) {
  const auto plan =
      cast::make_plan("sm_90a", matrix(DType::kF32, 3, 5, 8), matrix(DType::kF16, 3, 5, 6));
  ASSERT_TRUE(plan);
  const auto& kernel = std::get<plan::KernelNode>(plan->nodes[0].work);
  EXPECT_EQ(kernel.entry, "dsattn_cast_f32_f16");
  const std::array<uint64_t, 2> addresses = {0x1000, 0x2000};
  const auto bytes = plan::pack(kernel.args[0], addresses, {});
  ASSERT_TRUE(bytes);
  ASSERT_EQ(bytes->size(), sizeof(cast::Params));
  cast::Params params{};
  std::memcpy(&params, bytes->data(), sizeof params);
  EXPECT_EQ(reinterpret_cast<uintptr_t>(params.src), 0x1000u);
  EXPECT_EQ(reinterpret_cast<uintptr_t>(params.dst), 0x2000u);
  EXPECT_EQ(params.rows, 3);
  EXPECT_EQ(params.cols, 5);
  EXPECT_EQ(params.src_stride, 8);
  EXPECT_EQ(params.dst_stride, 6);
}

TEST(CastPlan, AnySizeGivesALegalLaunch) {
  constexpr int64_t kHuge = int64_t{1} << 40;
  const std::array<std::array<int64_t, 2>, 6> sizes = {
      {{1, 1}, {1, kHuge}, {kHuge, 1}, {kHuge, 128}, {7, 2047}, {100000, 2049}}};
  for (const auto& [rows, cols] : sizes) {
    const auto plan = cast::make_plan("sm_100a", matrix(DType::kF32, rows, cols, cols),
                                      matrix(DType::kBF16, rows, cols, cols));
    ASSERT_TRUE(plan);
    const auto valid = plan::validate(*plan);
    EXPECT_TRUE(valid) << rows << " x " << cols << ": " << valid.error().message;
    EXPECT_EQ(plan->nodes.size(), 1u);
  }
}

TEST(CastPlan, EmptyTensorHasNoKernel) {
  const auto plan =
      cast::make_plan("sm_90a", matrix(DType::kF32, 0, 5, 5), matrix(DType::kBF16, 0, 5, 5));
  ASSERT_TRUE(plan);
  EXPECT_TRUE(plan->nodes.empty());
}

TEST(CastPlan, RejectsWhatTheKernelCannotDo) {
  const auto code = [](const TensorView& src, const TensorView& dst) {
    const auto plan = cast::make_plan("sm_90a", src, dst);
    return plan ? ErrorCode::kInternal : plan.error().code;
  };
  const TensorView src = matrix(DType::kF32, 4, 8, 8);
  EXPECT_EQ(code(src, matrix(DType::kF32, 4, 8, 8)), ErrorCode::kInvalidDType);
  EXPECT_EQ(code(matrix(DType::kBF16, 4, 8, 8), matrix(DType::kBF16, 4, 8, 8)),
            ErrorCode::kInvalidDType);
  EXPECT_EQ(code(src, matrix(DType::kBF16, 4, 7, 7)), ErrorCode::kInvalidShape);
  EXPECT_EQ(code(src, matrix(DType::kBF16, 4, 8, 7)), ErrorCode::kInvalidStride);
  TensorView column_major = matrix(DType::kF32, 4, 8, 1);
  column_major.strides[1] = 4;
  EXPECT_EQ(code(column_major, matrix(DType::kBF16, 4, 8, 8)), ErrorCode::kInvalidStride);
}

#if DSATTN_HAVE_CUDA
std::string read_file(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

TEST(CastModule, PtxAndCubinAreBuiltForEveryArchitecture) {
  for (const std::string arch : {"sm_90a", "sm_100a"}) {
    const std::string stem = std::string(DSATTN_PTX_DIR) + "/cast." + arch;
    const std::string ptx = read_file(stem + ".ptx");
    EXPECT_NE(ptx.find(".target " + arch), std::string::npos) << stem;
    for (const char* entry : {cast::kEntryBf16, cast::kEntryF16}) {
      EXPECT_NE(ptx.find(std::string(".entry ") + entry), std::string::npos) << entry;
    }
    const EmbeddedModule* module = find_module("cast", arch);
    ASSERT_NE(module, nullptr) << arch;
    EXPECT_EQ(std::string(module->cubin.begin(), module->cubin.end()), read_file(stem + ".cubin"));
    EXPECT_EQ(std::string(module->cubin.begin(), module->cubin.begin() + 4),
              "\x7f"
              "ELF");
  }
  EXPECT_EQ(find_module("cast", "sm_80"), nullptr);
}
#endif

TEST(GpuStatus, SaysWhyThereIsNoGpu) {
  const GpuStatus status = gpu_status();
  EXPECT_FALSE(status.detail.empty());
  EXPECT_EQ(status.available, !status.arch.empty());
  if (embedded_modules().empty()) {
    EXPECT_NE(status.detail.find("CPU-only build"), std::string::npos) << status.detail;
  }
}

TEST(GpuRunner, WithoutAGpuIsUnavailableWithTheReason) {
  const GpuStatus status = gpu_status();
  if (status.available) GTEST_SKIP() << "this machine has " << status.detail;
  const auto plan =
      cast::make_plan("sm_90a", matrix(DType::kF32, 4, 8, 8), matrix(DType::kBF16, 4, 8, 8));
  ASSERT_TRUE(plan);
  const std::array<uint64_t, 2> addresses = {0x1000, 0x2000};
  const auto result = run_plan(*plan, addresses);
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().code, ErrorCode::kUnavailable);
  EXPECT_EQ(result.error().message, status.detail);
}

TEST(GpuRunner, ChecksThePlanFirst) {
  auto plan =
      cast::make_plan("sm_90a", matrix(DType::kF32, 4, 8, 8), matrix(DType::kBF16, 4, 8, 8));
  ASSERT_TRUE(plan);
  const std::array<uint64_t, 1> too_few = {0x1000};
  const auto result = run_plan(*plan, too_few);
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().code, ErrorCode::kInvalidValue);
  EXPECT_EQ(result.error().message, "1 addresses for a plan of 2 buffers");
}

}  // namespace
}  // namespace dsattn::gpu
