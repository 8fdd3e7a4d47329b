// Every rule of a call's validation, with the message's two values, and nothing written.
#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "base/float16.h"
#include "ops/execute.h"

namespace dsattn {
namespace {

/// A small valid forward call whose pieces the tests then spoil.
struct ForwardCall {
  std::vector<bf16> q = std::vector<bf16>(2 * 3 * 8);
  std::vector<bf16> kv = std::vector<bf16>(5 * 8);
  std::vector<int32_t> ids = std::vector<int32_t>(2 * 4);
  std::vector<bf16> out = std::vector<bf16>(2 * 3 * 6, bf16{0x1234});
  std::vector<float> lse = std::vector<float>(2 * 3, 7.0f);
  SparseAttentionForwardArgs args;

  ForwardCall() {
    args.q = TensorView(q.data(), DType::kBF16, {2, 3, 8});
    args.kv = TensorView(kv.data(), DType::kBF16, {5, 8});
    args.topk_idxs = TensorView(ids.data(), DType::kI32, {2, 4});
    args.out = TensorView(out.data(), DType::kBF16, {2, 3, 6});
    args.lse = TensorView(lse.data(), DType::kF32, {2, 3});
  }

  void expect_rejected(ErrorCode code, const std::string& text, Backend backend = Backend::kRef) {
    ExecContext ctx;
    ctx.backend = backend;
    const auto result = execute(args, ctx);
    ASSERT_FALSE(result);
    EXPECT_EQ(result.error().code, code) << result.error().message;
    EXPECT_NE(result.error().message.find(text), std::string::npos) << result.error().message;
    for (bf16 x : out) EXPECT_EQ(x.bits, 0x1234);
    for (float x : lse) EXPECT_EQ(x, 7.0f);
  }
};

TEST(Validate, AcceptsTheCall) {
  ForwardCall call;
  EXPECT_TRUE(validate(call.args, Backend::kRef, DataCheck::kRequired));
  EXPECT_TRUE(validate(call.args, Backend::kCpu, DataCheck::kRequired));
}

TEST(Validate, RankIsNamed) {
  ForwardCall call;
  call.args.topk_idxs = TensorView(call.ids.data(), DType::kI32, {2, 2, 2});
  call.expect_rejected(ErrorCode::kInvalidShape, "topk_idxs has 3 dimensions, expected (Sq, K)");
}

TEST(Validate, DisagreeingDimensionNamesBothTensors) {
  ForwardCall call;
  call.args.kv = TensorView(call.kv.data(), DType::kBF16, {5, 7});
  call.expect_rejected(ErrorCode::kInvalidShape, "kv has D=7, but q has D=8");
}

TEST(Validate, ValueWiderThanKey) {
  ForwardCall call;
  std::vector<bf16> wide(2 * 3 * 9);
  call.args.out = TensorView(wide.data(), DType::kBF16, {2, 3, 9});
  call.expect_rejected(ErrorCode::kInvalidShape, "Dv=9 exceeds D=8");
}

TEST(Validate, NegativeAndOverflowingShapes) {
  ForwardCall call;
  call.args.kv = TensorView(call.kv.data(), DType::kBF16, {-5, 8});
  call.expect_rejected(ErrorCode::kInvalidShape, "negative dimension");
  call.args.kv = TensorView(call.kv.data(), DType::kBF16, {5, 8});
  call.args.kv.strides = {INT64_MAX / 2, 1};
  call.expect_rejected(ErrorCode::kInvalidShape, "64 bits");
  call.args.kv.strides = {INT64_MIN, 1};
  call.expect_rejected(ErrorCode::kInvalidShape, "64 bits");
}

TEST(Validate, DTypesMustAgreeAndBeAllowed) {
  ForwardCall call;
  call.args.kv.dtype = DType::kF16;
  call.expect_rejected(ErrorCode::kInvalidDType, "kv is F16, expected BF16");
  call.args.kv.dtype = DType::kBF16;
  call.args.out.dtype = DType::kF32;
  call.expect_rejected(ErrorCode::kInvalidDType, "out is F32, expected BF16");
}

TEST(Validate, F32StorageIsForTheReferenceAlone) {
  ForwardCall call;
  call.args.q.dtype = DType::kF32;
  call.expect_rejected(ErrorCode::kInvalidDType, "q is F32, expected BF16 or F16 on backend cpu",
                       Backend::kCpu);
}

TEST(Validate, LengthsAreIntegers) {
  ForwardCall call;
  float lengths[2] = {NAN, 1};
  call.args.topk_length = TensorView(lengths, DType::kF32, {2});
  call.expect_rejected(ErrorCode::kInvalidDType, "topk_length is F32, expected I32");
}

TEST(Validate, StridesAndAlignment) {
  ForwardCall call;
  call.args.q.strides = {24, 8, 2};
  call.expect_rejected(ErrorCode::kInvalidStride, "q has stride 2 in its last dimension");
  call.args.q.strides = {24, 8, 1};
  call.args.out.strides = {0, 6, 1};
  call.expect_rejected(ErrorCode::kInvalidStride, "out is an output with strides (0, 6, 1)");
  call.args.out.strides = {18, 6, 1};
  call.args.q.data = reinterpret_cast<char*>(call.q.data()) + 1;
  call.expect_rejected(ErrorCode::kInvalidStride, "q starts 1 bytes past a multiple of 2");
}

TEST(Validate, HeadMajorOutputIsFine) {
  ForwardCall call;
  call.args.out.strides = {6, 12, 1};
  EXPECT_TRUE(validate(call.args, Backend::kCpu, DataCheck::kRequired));
}

TEST(Validate, NullDataMatterOnlyForCalls) {
  ForwardCall call;
  call.args.q.data = nullptr;
  call.expect_rejected(ErrorCode::kInvalidValue, "q (2, 3, 8) BF16 on cpu has a null data pointer");
  EXPECT_TRUE(validate(call.args, Backend::kCpu, DataCheck::kIgnored));
}

TEST(Validate, DeviceMemoryIsNotReadOnTheHost) {
  ForwardCall call;
  call.args.kv.device = {DeviceType::kCuda, 1};
  call.expect_rejected(ErrorCode::kInvalidDevice, "kv is on cuda:1");
}

TEST(Validate, MissingTensor) {
  ForwardCall call;
  call.args.kv = {};
  call.expect_rejected(ErrorCode::kMissingTensor, "kv (Skv, D) is required, but absent");
}

TEST(Validate, SoftmaxScale) {
  for (float scale : {0.0f, -1.0f, NAN, INFINITY}) {
    ForwardCall call;
    call.args.softmax_scale = scale;
    call.expect_rejected(ErrorCode::kInvalidValue, "softmax_scale is ");
  }
}

TEST(Validate, WorkspaceIsCheckedBeforeAnythingRuns) {
  ForwardCall call;
  call.expect_rejected(ErrorCode::kWorkspaceTooSmall, "this call needs", Backend::kCpu);
}

TEST(Validate, UnavailableBackendSaysWhy) {
  ForwardCall call;
  call.expect_rejected(ErrorCode::kUnavailable, "backend cuda is unavailable: ", Backend::kCuda);
}

TEST(Validate, PackedLists) {
  std::vector<bf16> index_q(3 * 2 * 128), index_k(4 * 128), index_w(3 * 2);
  std::vector<float> scores(12, 7.0f);
  IndexerForwardArgs args;
  args.index_q = TensorView(index_q.data(), DType::kBF16, {3, 2, 128});
  args.index_k = TensorView(index_k.data(), DType::kBF16, {4, 128});
  args.index_w = TensorView(index_w.data(), DType::kBF16, {3, 2});
  args.scores = TensorView(scores.data(), DType::kF32, {3, 4});
  const auto rejected = [&](std::vector<int32_t> q, std::vector<int32_t> k) {
    args.cu_seqlens_q = TensorView(q.data(), DType::kI32, {static_cast<int64_t>(q.size())});
    args.cu_seqlens_k = TensorView(k.data(), DType::kI32, {static_cast<int64_t>(k.size())});
    const auto result = validate(args, Backend::kRef, DataCheck::kRequired);
    return result ? std::string("accepted") : result.error().message;
  };
  EXPECT_EQ(rejected({0, 1, 3}, {0, 4, 4}), "accepted");
  EXPECT_EQ(rejected({0, 3}, {1, 4}), "cu_seqlens_k[0] is 1, expected 0");
  EXPECT_EQ(rejected({0, 2, 1, 3}, {0, 1, 2, 4}),
            "cu_seqlens_q[2] is 1 after 2: the list may never decrease");
  EXPECT_EQ(rejected({0, 2}, {0, 4}), "cu_seqlens_q ends at 2, expected Sq=3");
  EXPECT_NE(rejected({0, 3}, {0, 2, 4}).find("B="), std::string::npos);
  args.cu_seqlens_k = {};
  EXPECT_EQ(validate(args, Backend::kRef, DataCheck::kRequired).error().code,
            ErrorCode::kMissingTensor);
  args.cu_seqlens_q = {};
  args.ratio = 0;
  EXPECT_EQ(validate(args, Backend::kRef, DataCheck::kRequired).error().message,
            "ratio is 0, expected >= 1");
}

TEST(Names, BackendsAndInstructionSetsRoundTrip) {
  for (const BackendInfo& info : backends()) {
    EXPECT_EQ(parse_backend(to_string(info.backend)), info.backend);
    EXPECT_FALSE(info.detail.empty());
  }
  EXPECT_EQ(parse_backend("gpu").error().code, ErrorCode::kInvalidValue);
  EXPECT_EQ(parse_cpu_isa("amx"), CpuIsa::kAmx);
}

}  // namespace
}  // namespace dsattn
