// What the indexer's CPU code owes the contract beyond finite inputs, and parallel_for's promise
// that the caller's progress function is always heard.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

#include "base/float16.h"
#include "base/owned_tensor.h"
#include "cpu/parallel.h"
#include "dsattn/ops.h"

namespace dsattn {
namespace {

constexpr float kInf = std::numeric_limits<float>::infinity();
constexpr int64_t kQueries = 3;
constexpr int64_t kKeys = 40;
constexpr int64_t kHeads = 2;

/// All ones, so that every score is exact; the tests spoil single elements.
struct ScoreCall {
  std::vector<bf16> q = std::vector<bf16>(kQueries * kHeads * 128, to_bf16(1));
  std::vector<bf16> k = std::vector<bf16>(kKeys * 128, to_bf16(1));
  std::vector<float> w = std::vector<float>(kQueries * kHeads, 1.0f);
  std::vector<float> scores = std::vector<float>(kQueries * kKeys);
  IndexerForwardArgs args;

  std::vector<float> run(Backend backend, CpuIsa isa) {
    args.index_q = TensorView(q.data(), DType::kBF16, {kQueries, kHeads, 128});
    args.index_k = TensorView(k.data(), DType::kBF16, {kKeys, 128});
    args.index_w = TensorView(w.data(), DType::kF32, {kQueries, kHeads});
    args.scores = TensorView(scores.data(), DType::kF32, {kQueries, kKeys});
    ExecContext ctx;
    ctx.backend = backend;
    ctx.cpu_isa = isa;
    const int64_t bytes = indexer_forward_workspace(args, ctx).value();
    const OwnedTensor workspace =
        *OwnedTensor::make(DType::kF32, std::vector<int64_t>{bytes / 4 + 1});
    ctx.workspace = workspace.view().data;
    ctx.workspace_bytes = bytes;
    EXPECT_TRUE(indexer_forward(args, ctx));
    return scores;
  }
};

/// Backends agree bit for bit, NaN for NaN; the last two keys or more are hidden from every query.
void expect_same_pattern(ScoreCall call) {
  std::vector<int32_t> offset = {static_cast<int32_t>(kKeys - 2 - kQueries)};
  call.args.q_offsets = TensorView(offset.data(), DType::kI32, {1});
  const std::vector<float> expected = call.run(Backend::kRef, CpuIsa::kAuto);
  for (CpuIsa isa :
       {CpuIsa::kBaseline, CpuIsa::kAvx2, CpuIsa::kAvx512, CpuIsa::kAvx512Bf16, CpuIsa::kAmx}) {
    const std::vector<float> got = call.run(Backend::kCpu, isa);
    for (size_t i = 0; i < got.size(); ++i) {
      if (std::isnan(expected[i])) {
        EXPECT_TRUE(std::isnan(got[i])) << to_string(isa) << " element " << i << ": " << got[i];
      } else {
        EXPECT_EQ(got[i], expected[i]) << to_string(isa) << " element " << i;
      }
    }
  }
}

TEST(CpuIndexer, NaNInAVisibleKeyIsItsScore) {
  ScoreCall call;
  call.k[5 * 128 + 7] = to_bf16(NAN);
  call.k[(kKeys - 1) * 128] = to_bf16(NAN);  // hidden: its scores stay -inf
  expect_same_pattern(call);
}

TEST(CpuIndexer, NaNInAQueryIsItsRow) {
  ScoreCall call;
  call.q[128 * kHeads + 3] = to_bf16(NAN);
  expect_same_pattern(call);
}

TEST(CpuIndexer, InfiniteWeightOfAnInactiveHeadIsNaN) {
  ScoreCall call;
  for (int64_t i = 0; i < 128; ++i) call.q[static_cast<size_t>(i)] = to_bf16(-1);
  call.w[0] = kInf;  // relu gives 0, and 0 * inf is NaN as the formula has it
  call.k[9 * 128] = to_bf16(-kInf);
  expect_same_pattern(call);
}

TEST(ParallelFor, ARefusalAtTheEndIsHeardWhicheverThreadEnds) {
  ExecContext ctx;
  ctx.progress = [](double share) { return share < 1; };
  for (int repeat = 0; repeat < 500; ++repeat) {
    std::vector<int> done(8, 0);
    ASSERT_FALSE(cpu::parallel_for(8, 2, ctx, 0, 1, [&](int64_t item, int) {
      done[static_cast<size_t>(item)] = 1;
    })) << repeat;
    ASSERT_EQ(done, std::vector<int>(8, 1));
  }
}

}  // namespace
}  // namespace dsattn
