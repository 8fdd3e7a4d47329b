// A rejected call returns the right kind of error and writes nothing, on every backend.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <functional>

#include "cases.h"
#include "problem/run.h"

namespace dsattn {
namespace {

using testing_table::backends_under_test;
using testing_table::Column;
using testing_table::problem_of;

/// A valid call of any operation, its outputs poisoned, and the check that a spoiled one fails.
template <class Args>
class Spoiled {
 public:
  explicit Spoiled(const ExecContext& column) : ctx_(column) {
    GenerateOptions options;
    options.op = Schema<Args>::kName;
    options.queries = 10;
    options.keys = 40;
    options.heads = 3;
    options.d_qk = 24;
    options.d_v = 16;
    options.top_k = 8;
    options.index_heads = 2;
    options.sink = true;
    options.segments_q = {3, 7};
    options.segments_k = {15, 25};
    ExecContext ref;
    ref.backend = Backend::kRef;
    problem_ = *complete(problem_of(options), ref);
  }

  void expect(ErrorCode code, const std::string& what,
              const std::function<void(Args&, ExecContext&)>& spoil) {
    SCOPED_TRACE(what);
    auto call = bind<Args>(problem_, ctx_);
    ASSERT_TRUE(call) << call.error().message;
    ExecContext ctx = ctx_;
    const auto bytes = workspace_bytes(call->args, ctx);
    ASSERT_TRUE(bytes) << bytes.error().message;
    auto workspace = *OwnedTensor::make(DType::kI32, std::vector<int64_t>{*bytes / 4 + 1});
    ctx.workspace = workspace.view().data;
    ctx.workspace_bytes = *bytes;
    spoil(call->args, ctx);
    const auto result = execute(call->args, ctx);
    ASSERT_FALSE(result);
    EXPECT_EQ(result.error().code, code) << result.error().message;
    EXPECT_FALSE(result.error().message.empty());
    for (const auto& [name, tensor] : call->outputs) {
      for (std::byte byte : tensor.bytes()) {
        ASSERT_EQ(byte, std::byte{kPoison}) << name << " was written";
      }
    }
  }

  /// Every tensor of the operation, spoiled in every way that its description forbids.
  void expect_tensors_checked() {
    for (const auto& field : Schema<Args>::tensors()) {
      const auto member = field.member;
      const std::string name(field.spec.name);
      if (!(bind<Args>(problem_, ctx_)->args.*member).defined()) continue;
      const auto with = [member](auto change) {
        return [member, change](Args& args, ExecContext&) { change(args.*member); };
      };
      if (!field.spec.is_optional()) {
        expect(ErrorCode::kMissingTensor, name + " absent",
               with([](TensorView& view) { view = TensorView{}; }));
      }
      expect(ErrorCode::kInvalidDType, name + " dtype", with([](TensorView& view) {
               view.dtype = view.dtype == DType::kI32 ? DType::kF32 : DType::kI32;
             }));
      expect(ErrorCode::kInvalidDevice, name + " device", with([](TensorView& view) {
               view.device = {DeviceType::kCuda, 0};
             }));
      expect(ErrorCode::kInvalidStride, name + " alignment",
             with([](TensorView& view) { view.data = view.ptr<char>() + 1; }));
      expect(ErrorCode::kInvalidValue, name + " null",
             with([](TensorView& view) { view.data = nullptr; }));
      expect(ErrorCode::kInvalidShape, name + " rank", with([](TensorView& view) {
               view.rank = 4;
               view.shape = {1, 1, 1, 1};
             }));
      expect(ErrorCode::kInvalidShape, name + " negative",
             with([](TensorView& view) { view.shape[0] = -1; }));
      if (field.spec.dims.find(',') == std::string_view::npos) continue;
      expect(ErrorCode::kInvalidStride, name + " stride",
             with([](TensorView& view) { view.strides[static_cast<size_t>(view.rank - 1)] = 2; }));
    }
  }

  const ExecContext& context() const { return ctx_; }
  const Problem& problem() const { return problem_; }

 private:
  ExecContext ctx_;
  Problem problem_;
};

class Rejected : public testing::TestWithParam<Column> {};

TEST_P(Rejected, SpoiledTensorsWriteNothing) {
  for_each_op([&]<class Args>() {
    SCOPED_TRACE(Schema<Args>::kName);
    Spoiled<Args>(GetParam().ctx).expect_tensors_checked();
  });
}

TEST_P(Rejected, DisagreeingShapes) {
  Spoiled<SparseAttentionForwardArgs> forward(GetParam().ctx);
  const auto code = ErrorCode::kInvalidShape;
  forward.expect(code, "Sq of lse", [](auto& args, auto&) { args.lse.shape[0] -= 1; });
  forward.expect(code, "D of kv", [](auto& args, auto&) { args.kv.shape[1] -= 1; });
  forward.expect(code, "H of sink", [](auto& args, auto&) { args.sink.shape[0] -= 1; });
  forward.expect(code, "Dv above D", [](auto& args, auto&) {
    args.out.shape[2] = 25;
    args.out.set_contiguous_strides();
  });
  forward.expect(code, "K above the limit", [](auto& args, auto&) {
    args.topk_idxs.shape[1] = 65537;
    args.topk_idxs.strides[0] = 0;
  });
  Spoiled<IndexerForwardArgs> scores(GetParam().ctx);
  scores.expect(code, "width 127", [](auto& args, auto&) { args.index_k.shape[1] = 127; });
}

TEST_P(Rejected, OutputTypesAreTheContracts) {
  Spoiled<SparseAttentionForwardArgs> forward(GetParam().ctx);
  forward.expect(ErrorCode::kInvalidDType, "out F16 for bf16",
                 [](auto& args, auto&) { args.out.dtype = DType::kF16; });
  forward.expect(ErrorCode::kInvalidDType, "lse BF16",
                 [](auto& args, auto&) { args.lse.dtype = DType::kBF16; });
  Spoiled<SparseAttentionBackwardArgs> backward(GetParam().ctx);
  backward.expect(ErrorCode::kInvalidDType, "dkv F16",
                  [](auto& args, auto&) { args.dkv.dtype = DType::kF16; });
}

TEST_P(Rejected, OutputRowsThatOverlap) {
  Spoiled<SparseAttentionForwardArgs> forward(GetParam().ctx);
  forward.expect(ErrorCode::kInvalidStride, "out rows on one another",
                 [](auto& args, auto&) { args.out.strides[0] = 0; });
}

TEST_P(Rejected, Parameters) {
  const auto code = ErrorCode::kInvalidValue;
  Spoiled<SparseAttentionForwardArgs> forward(GetParam().ctx);
  for (float scale : {std::nanf(""), INFINITY, 0.0f, -1.0f}) {
    forward.expect(code, "softmax_scale", [=](auto& args, auto&) { args.softmax_scale = scale; });
  }
  Spoiled<IndexerForwardArgs> scores(GetParam().ctx);
  for (int64_t ratio : {0, -4}) {
    scores.expect(code, "ratio", [=](auto& args, auto&) { args.ratio = ratio; });
  }
  scores.expect(code, "sm_scale", [](auto& args, auto&) { args.sm_scale = std::nanf(""); });
  Spoiled<IndexerBackwardArgs> backward(GetParam().ctx);
  backward.expect(code, "loss_coeff", [](auto& args, auto&) { args.loss_coeff = INFINITY; });
  backward.expect(code, "num_tokens", [](auto& args, auto&) { args.num_tokens = -1; });
}

TEST_P(Rejected, SequenceLists) {
  Spoiled<IndexerForwardArgs> scores(GetParam().ctx);
  int32_t list[3] = {0, 3, 10};
  const auto with = [&](int32_t a, int32_t b, int32_t c) {
    list[0] = a;
    list[1] = b;
    list[2] = c;
    return [&](auto& args, auto&) { args.cu_seqlens_q.data = list; };
  };
  const auto code = ErrorCode::kInvalidValue;
  scores.expect(code, "starts late", with(1, 3, 10));
  scores.expect(code, "decreases", with(0, 11, 10));
  scores.expect(code, "ends early", with(0, 3, 9));
  scores.expect(code, "ends late", with(0, 3, 11));
  scores.expect(code, "negative", with(0, -3, 10));
  scores.expect(ErrorCode::kMissingTensor, "one list only",
                [](auto& args, auto&) { args.cu_seqlens_k = TensorView{}; });
}

TEST_P(Rejected, Workspace) {
  for_each_op([&]<class Args>() {
    SCOPED_TRACE(Schema<Args>::kName);
    Spoiled<Args> call(GetParam().ctx);
    auto bound = bind<Args>(call.problem(), call.context());
    const auto bytes = workspace_bytes(bound->args, call.context());
    ASSERT_TRUE(bytes) << bytes.error().message;
    if (*bytes == 0) return;
    const auto code = ErrorCode::kWorkspaceTooSmall;
    call.expect(code, "one byte short", [](Args&, ExecContext& ctx) { ctx.workspace_bytes -= 1; });
    call.expect(code, "absent", [](Args&, ExecContext& ctx) { ctx.workspace = nullptr; });
    call.expect(code, "misaligned", [](Args&, ExecContext& ctx) {
      ctx.workspace = static_cast<char*>(ctx.workspace) + 32;
    });
  });
}

INSTANTIATE_TEST_SUITE_P(Contract, Rejected, testing::ValuesIn(backends_under_test()),
                         [](const auto& instance) { return instance.param.name; });

}  // namespace
}  // namespace dsattn
