// The reference's attention at the edges of the contract, against values worked out by hand: limits
// of the sink and of lse, empty rows, what NaN may reach, strides, and the target.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include "base/float16.h"
#include "dsattn/ops.h"
#include "ref/ref.h"

namespace dsattn {
namespace {

constexpr float kInf = std::numeric_limits<float>::infinity();
constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();
using Floats = std::vector<float>;
using Ints = std::vector<int32_t>;

TensorView view(Floats& values, std::initializer_list<int64_t> shape) {
  return {values.data(), DType::kF32, shape};
}
TensorView view(Ints& values, std::initializer_list<int64_t> shape) {
  return {values.data(), DType::kI32, shape};
}

// One query, one head, D = 2, Dv = 1, scale 1, q = (1, 0): a key (a, b) scores a, its value is a.
struct OneRow {
  Floats q = {1, 0};
  Floats kv = {1, 5, 2, -7, kNaN, kNaN};
  Ints ids = {0, 1, -1, 3};
  Floats sink;
  Floats out = {kNaN}, lse = {kNaN}, max = {kNaN};
  Floats dout = {1}, dq = {kNaN, kNaN}, dkv = Floats(6, kNaN), d_sink = {kNaN};

  template <class Args>
  void bind(Args& args) {
    args.q = view(q, {1, 1, 2});
    args.kv = view(kv, {3, 2});
    args.softmax_scale = 1.0f;
    args.topk_idxs = view(ids, {1, static_cast<int64_t>(ids.size())});
    if (!sink.empty()) args.sink = view(sink, {1});
    args.out = view(out, {1, 1, 1});
    args.lse = view(lse, {1, 1});
  }
  void forward() {
    SparseAttentionForwardArgs args;
    bind(args);
    args.max_logits = view(max, {1, 1});
    ASSERT_TRUE(ref::run(args, {}).has_value());
  }
  void backward() {
    SparseAttentionBackwardArgs args;
    bind(args);
    args.dout = view(dout, {1, 1, 1});
    args.dq = view(dq, {1, 1, 2});
    args.dkv = view(dkv, {3, 2});
    args.d_sink = view(d_sink, {1});
    ASSERT_TRUE(ref::run(args, {}).has_value());
  }
};

TEST(RefAttentionEdge, ForwardByHand) {
  const double e = std::exp(1.0);
  for (const float sink : {-kInf, 0.5f, -2e38f}) {
    OneRow row;
    row.sink = {sink};
    row.forward();
    const double total = e + e * e + std::exp(static_cast<double>(sink));
    EXPECT_FLOAT_EQ(row.out[0], static_cast<float>((e + 2 * e * e) / total)) << sink;
    EXPECT_FLOAT_EQ(row.lse[0], static_cast<float>(std::log(e + e * e))) << sink;
    EXPECT_EQ(row.max[0], 2.0f);
  }
}

TEST(RefAttentionEdge, SinksThatTakeEverything) {
  for (const float sink : {2e38f, 2.4e38f, kInf}) {
    OneRow row;
    row.sink = {sink};
    row.forward();
    EXPECT_EQ(row.out[0], 0.0f);
    EXPECT_FLOAT_EQ(row.lse[0], static_cast<float>(std::log(std::exp(1) + std::exp(2))));
    row.out = {3};  // Delta = 3: only a sink that does not saturate passes it on
    row.backward();
    EXPECT_EQ(row.d_sink[0], sink == 2e38f ? -3.0f : 0.0f) << sink;
    EXPECT_EQ(row.dq, Floats(2, 0.0f));
    EXPECT_EQ(row.dkv, Floats(6, 0.0f));
  }
}

TEST(RefAttentionEdge, NaNSinkReachesItsHeadOnly) {
  OneRow row;
  row.sink = {kNaN};
  row.forward();
  EXPECT_TRUE(std::isnan(row.out[0]));
  EXPECT_EQ(row.max[0], 2.0f);
  EXPECT_TRUE(std::isfinite(row.lse[0]));
  row.backward();
  EXPECT_TRUE(std::isnan(row.dq[0]) && std::isnan(row.d_sink[0]) && std::isnan(row.dkv[0]));
  EXPECT_EQ(row.dkv[4], 0.0f);  // not selected
  row.ids = {-1, 3, 2147483647, -2147483647 - 1};
  row.forward();
  EXPECT_EQ(row.out[0], 0.0f);
}

TEST(RefAttentionEdge, EmptyRow) {
  OneRow row;
  row.ids = {-1, 3};
  row.sink = {1};
  row.forward();
  EXPECT_EQ(row.out[0], 0.0f);
  EXPECT_EQ(row.lse[0], kInf);
  EXPECT_EQ(row.max[0], -kInf);
  row.backward();
  EXPECT_EQ(row.dq, Floats(2, 0.0f));
  EXPECT_EQ(row.dkv, Floats(6, 0.0f));
  EXPECT_EQ(row.d_sink[0], 0.0f);
}

TEST(RefAttentionEdge, InfiniteLseGivesNothing) {
  for (const float lse : {kInf, -kInf}) {
    OneRow row;
    row.sink = {0.5f};
    row.out = {1};
    row.lse = {lse};
    row.backward();
    EXPECT_EQ(row.dq, Floats(2, 0.0f));
    EXPECT_EQ(row.dkv, Floats(6, 0.0f));
    EXPECT_EQ(row.d_sink[0], 0.0f);
  }
}

TEST(RefAttentionEdge, SelectedNaNPropagates) {
  OneRow row;
  row.ids = {0, 2};
  row.forward();
  EXPECT_TRUE(std::isnan(row.out[0]) && std::isnan(row.lse[0]) && std::isnan(row.max[0]));
}

TEST(RefAttentionEdge, OutputsRoundToTheirType) {
  OneRow row;
  std::vector<bf16> out(1);
  SparseAttentionForwardArgs args;
  row.bind(args);
  args.out = {out.data(), DType::kBF16, {1, 1, 1}};
  ASSERT_TRUE(ref::run(args, {}).has_value());
  row.forward();
  EXPECT_EQ(out[0].bits, to_bf16(row.out[0]).bits);
}

TEST(RefAttentionEdge, ProgressCancels) {
  OneRow row;
  SparseAttentionForwardArgs args;
  row.bind(args);
  ExecContext ctx;
  double share = 0;
  ctx.progress = [&](double done) { return (share = done) < 0; };
  const Result<void> result = ref::run(args, ctx);
  ASSERT_FALSE(result.has_value());
  EXPECT_EQ(result.error().code, ErrorCode::kCancelled);
  EXPECT_EQ(share, 1.0);
}

// Heads with huge sinks: the target is still the softmax, not a uniform row of rounding errors.
TEST(RefTargetEdge, SinkNeverEmptiesOrFlattensTheRow) {
  for (const float sink : {-kInf, -2e38f, 30.0f, 120.0f, 2e38f, 2.4e38f, kInf}) {
    OneRow row;
    row.forward();
    Floats target(4, kNaN);
    Floats sinks = {sink};
    SparseAttentionScoresArgs args;
    args.q = view(row.q, {1, 1, 2});
    args.kv = view(row.kv, {3, 2});
    args.softmax_scale = 1.0f;
    args.topk_idxs = view(row.ids, {1, 4});
    args.lse = view(row.lse, {1, 1});
    args.sink = view(sinks, {1});
    args.target = view(target, {1, 4});
    ASSERT_TRUE(ref::run(args, {}).has_value());
    const double first = 1 / (1 + std::exp(1.0));
    EXPECT_FLOAT_EQ(target[0], sink == kInf ? 0.0f : static_cast<float>(first)) << sink;
    EXPECT_FLOAT_EQ(target[1], sink == kInf ? 0.0f : static_cast<float>(1 - first)) << sink;
    EXPECT_EQ(target[2], 0.0f);
    EXPECT_EQ(target[3], 0.0f);
  }
}

// An infinite lse means P = 0, even where the scores themselves are infinite.
TEST(RefTargetEdge, InfiniteLseEmptiesTheRow) {
  for (const float lse : {kInf, -kInf}) {
    OneRow row;
    row.kv[0] = lse;
    row.q[1] = 1;
    Floats target(4, kNaN);
    SparseAttentionScoresArgs args;
    args.q = view(row.q, {1, 1, 2});
    args.kv = view(row.kv, {3, 2});
    args.topk_idxs = view(row.ids, {1, 4});
    row.lse = {lse};
    args.lse = view(row.lse, {1, 1});
    args.target = view(target, {1, 4});
    ASSERT_TRUE(ref::run(args, {}).has_value());
    EXPECT_EQ(target, Floats(4, 0.0f)) << lse;
  }
}

// Two heads with different sinks, dense: the target by its definition.
TEST(RefTargetEdge, SumsHeadsByTheirWeight) {
  Floats q = {1, 0, 0, 0.5f};
  Floats kv = {1, 5, 2, -7};
  Floats sinks = {3, 1};
  Floats lse(2, kNaN), target(2, kNaN);
  DenseAttentionLseArgs lse_args;
  lse_args.q = view(q, {1, 2, 2});
  lse_args.kv = view(kv, {2, 2});
  lse_args.softmax_scale = 1.0f;
  Ints offset = {1};
  lse_args.q_offsets = view(offset, {1});
  lse_args.lse = view(lse, {1, 2});
  ASSERT_TRUE(ref::run(lse_args, {}).has_value());
  const double scores[2][2] = {{1, 2}, {2.5, -3.5}};
  double weights[2] = {};
  for (size_t h = 0; h < 2; ++h) {
    const double sum = std::exp(scores[h][0]) + std::exp(scores[h][1]);
    EXPECT_FLOAT_EQ(lse[h], static_cast<float>(std::log(sum)));
    const double total = sum + std::exp(static_cast<double>(sinks[h]));
    for (size_t s = 0; s < 2; ++s) weights[s] += std::exp(scores[h][s]) / total;
  }
  DenseAttentionScoresArgs args;
  static_cast<AttentionInputs&>(args) = lse_args;
  static_cast<CausalMask&>(args) = lse_args;
  args.lse = view(lse, {1, 2});
  args.sink = view(sinks, {2});
  args.target = view(target, {1, 2});
  ASSERT_TRUE(ref::run(args, {}).has_value());
  for (size_t s = 0; s < 2; ++s) {
    EXPECT_NEAR(target[s], weights[s] / (weights[0] + weights[1]), 1e-6);
  }
}

// Padded kv rows and head-major q and out give what contiguous tensors give.
TEST(RefAttentionEdge, AnyRowStrides) {
  Floats q = {1, 0, 0, 1, 2, 1, 1, 3};                       // [2, 2, 2]
  Floats q_by_head = {1, 0, 2, 1, 0, 1, 1, 3};               // heads outermost
  Floats kv = {1, 5, 2, -7};                                 // [2, 2]
  Floats kv_padded = {1, 5, kNaN, kNaN, 2, -7, kNaN, kNaN};  // rows of 4
  Ints ids = {0, 1, 1, -1};
  Floats out(8, kNaN), out_by_head(8, kNaN), lse(4, kNaN);
  SparseAttentionForwardArgs args;
  args.q = view(q, {2, 2, 2});
  args.kv = view(kv, {2, 2});
  args.topk_idxs = view(ids, {2, 2});
  args.out = view(out, {2, 2, 2});
  args.lse = view(lse, {2, 2});
  ASSERT_TRUE(ref::run(args, {}).has_value());
  args.q.data = q_by_head.data();
  args.out.data = out_by_head.data();
  args.q.strides = args.out.strides = {2, 4, 1, 0};
  args.kv.data = kv_padded.data();
  args.kv.strides[0] = 4;
  ASSERT_TRUE(ref::run(args, {}).has_value());
  for (size_t t = 0; t < 2; ++t) {
    for (size_t h = 0; h < 2; ++h) {
      for (size_t d = 0; d < 2; ++d) {
        EXPECT_EQ(out_by_head[h * 4 + t * 2 + d], out[t * 4 + h * 2 + d]);
      }
    }
  }
}

}  // namespace
}  // namespace dsattn
