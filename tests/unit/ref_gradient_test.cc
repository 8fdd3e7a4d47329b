// The reference's gradients against finite differences of its own forward and losses, in float64.
// The reference judges every backend, so its formulas are checked here by something that does not
// share them. Problems hold invalid and duplicate slots, an empty row, packed segments and NaN in
// rows that nothing selects.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "dsattn/ops.h"
#include "ref/ref.h"

namespace dsattn {
namespace {

constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();
constexpr double kTolerance = 1e-6;
constexpr uint64_t kSeed = 20261201;

using Values = std::vector<double>;

TensorView view(Values& values, std::initializer_list<int64_t> shape) {
  return {values.data(), DType::kF64, shape};
}
TensorView view(std::vector<int32_t>& values, std::initializer_list<int64_t> shape) {
  return {values.data(), DType::kI32, shape};
}

Values normal(std::mt19937_64& random, int64_t count, double deviation) {
  std::normal_distribution<double> draw(0.0, deviation);
  Values values(static_cast<size_t>(count));
  for (double& value : values) value = draw(random);
  return values;
}

Values unwritten(int64_t count) { return Values(static_cast<size_t>(count), kNaN); }

template <class Args>
void run_ok(const Args& args) {
  const Result<void> result = ref::run(args, {});
  ASSERT_TRUE(result.has_value()) << result.error().message;
}

/// Fourth-order central differences of f with respect to every element of x.
Values differences(Values& x, double step, const std::function<double()>& f) {
  Values gradient;
  for (double& element : x) {
    const double origin = element;
    const auto at = [&](double distance) {
      element = origin + distance * step;
      return f();
    };
    gradient.push_back((8 * (at(1) - at(-1)) - (at(2) - at(-2))) / (12 * step));
    element = origin;
  }
  return gradient;
}

double norm(const Values& x) {
  double sum = 0;
  for (double value : x) sum += value * value;
  return std::sqrt(sum);
}

void expect_close(const char* name, const Values& actual, const Values& expected,
                  double tolerance) {
  ASSERT_EQ(actual.size(), expected.size()) << name;
  Values error;
  for (size_t i = 0; i < actual.size(); ++i) error.push_back(actual[i] - expected[i]);
  ASSERT_GT(norm(expected), 0.0) << name << ": nothing to compare";
  EXPECT_LE(norm(error) / norm(expected), tolerance) << name << ", seed " << kSeed;
}

// Four queries, seven slots, nine key rows: invalid ids inside and at the ends, duplicates, garbage
// past the length, a length above K, an empty row. Rows 0 and 8 are never selected.
struct Selection {
  std::vector<int32_t> ids = {-1, 3,  3, 9,  5, 1, 2,  // ids out of range
                              7,  -1, 4, 6,  0, 8, 0,  // length 4: the rest is garbage
                              0,  1,  2, 3,  4, 5, 6,  // length -3: empty
                              2,  2,  2, -5, 6, 1, 2147483647};
  std::vector<int32_t> lengths = {7, 4, -3, 12};

  void bind(SparseSelection& selection) {
    selection.topk_idxs = view(ids, {4, 7});
    selection.topk_length = view(lengths, {4});
  }
};

constexpr int64_t kQueries = 4;
constexpr int64_t kKeys = 9;
constexpr int64_t kHeads = 3;
constexpr int64_t kWidth = 12;
constexpr int64_t kValueWidth = 8;

struct AttentionProblem {
  std::mt19937_64 random{kSeed};
  Values q = normal(random, kQueries* kHeads* kWidth, 1.0);
  Values kv = normal(random, kKeys* kWidth, 1.0);
  Values sink = {0.3, -1.2, 1.7};
  Values lse = unwritten(kQueries * kHeads);

  void bind(AttentionInputs& inputs) {
    inputs.q = view(q, {kQueries, kHeads, kWidth});
    inputs.kv = view(kv, {kKeys, kWidth});
    inputs.softmax_scale = 0.4f;
  }
};

// ------------------------------------------------------------------------------- attention

struct AttentionGradients : AttentionProblem {
  Selection selection;
  bool with_sink;
  Values dout = normal(random, kQueries* kHeads* kValueWidth, 1.0);
  Values out = unwritten(kQueries * kHeads * kValueWidth);

  explicit AttentionGradients(bool sink_given) : with_sink(sink_given) {
    for (int64_t d = 0; d < kWidth; ++d) {  // rows 0 and 8, which no valid slot names
      kv[static_cast<size_t>(d)] = kNaN;
      kv[static_cast<size_t>(8 * kWidth + d)] = kNaN;
    }
  }

  double objective() {
    SparseAttentionForwardArgs args;
    bind(args);
    selection.bind(args);
    if (with_sink) args.sink = view(sink, {kHeads});
    args.out = view(out, {kQueries, kHeads, kValueWidth});
    args.lse = view(lse, {kQueries, kHeads});
    run_ok(args);
    double sum = 0;
    for (size_t i = 0; i < out.size(); ++i) sum += out[i] * dout[i];
    return sum;
  }
};

void check_attention(bool with_sink) {
  AttentionGradients problem(with_sink);
  problem.objective();
  Values dq = unwritten(kQueries * kHeads * kWidth);
  Values dkv = unwritten(kKeys * kWidth);
  Values d_sink = unwritten(kHeads);
  SparseAttentionBackwardArgs args;
  problem.bind(args);
  problem.selection.bind(args);
  if (with_sink) args.sink = view(problem.sink, {kHeads});
  Values out = problem.out;
  Values lse = problem.lse;
  args.out = view(out, {kQueries, kHeads, kValueWidth});
  args.dout = view(problem.dout, {kQueries, kHeads, kValueWidth});
  args.lse = view(lse, {kQueries, kHeads});
  args.dq = view(dq, {kQueries, kHeads, kWidth});
  args.dkv = view(dkv, {kKeys, kWidth});
  args.d_sink = view(d_sink, {kHeads});
  run_ok(args);

  const auto objective = [&] { return problem.objective(); };
  expect_close("dq", dq, differences(problem.q, 1e-3, objective), kTolerance);
  expect_close("dkv", dkv, differences(problem.kv, 1e-3, objective), kTolerance);
  if (with_sink) {
    expect_close("d_sink", d_sink, differences(problem.sink, 1e-3, objective), kTolerance);
  } else {
    EXPECT_EQ(d_sink, Values(kHeads, 0.0));
  }
}

TEST(RefAttentionGradient, WithoutSink) { check_attention(false); }
TEST(RefAttentionGradient, WithSink) { check_attention(true); }

// ---------------------------------------------------------------------------- indexer losses

constexpr int64_t kIndexHeads = 2;
constexpr int64_t kIndexWidth = 128;

/// What differs between the cases.
struct LossCase {
  std::string name;
  bool clipped = false;
  float sm_scale = 0.5f;
  double step = 1e-4;
};

struct IndexerProblem : AttentionProblem {
  Selection selection;
  Values index_q = normal(random, kQueries* kIndexHeads* kIndexWidth, 0.3);
  Values index_k = normal(random, kKeys* kIndexWidth, 0.3);
  Values index_w = normal(random, kQueries* kIndexHeads, 1.0);
  Values grad_loss = {0.7};
  Values loss = unwritten(1);
  Values d_index_q = unwritten(kQueries * kIndexHeads * kIndexWidth);
  Values d_index_k = unwritten(kKeys * kIndexWidth);
  Values d_index_w = unwritten(kQueries * kIndexHeads);
  // Three segments, the middle one without keys. Visible: 2, 3, 0 and 3 (of 4) keys.
  std::vector<int32_t> cu_seqlens_q = {0, 2, 3, 4};
  std::vector<int32_t> cu_seqlens_k = {0, 5, 5, 9};
  std::vector<int32_t> q_offsets = {4, 0, 5};

  // Differences across a kink of the relu would say nothing: draw until no product is near 0.
  IndexerProblem() {
    while (closest_to_kink() < 0.01) {
      index_q = normal(random, kQueries * kIndexHeads * kIndexWidth, 0.3);
    }
  }

  double closest_to_kink() const {
    double closest = 1;
    for (size_t row = 0; row < kQueries * kIndexHeads; ++row) {
      for (size_t key = 0; key < kKeys; ++key) {
        double sum = 0;
        for (size_t d = 0; d < kIndexWidth; ++d) {
          sum += index_q[row * kIndexWidth + d] * index_k[key * kIndexWidth + d];
        }
        closest = std::min(closest, std::abs(sum));
      }
    }
    return closest;
  }

  void bind_indexer(IndexerInputs& inputs, const LossCase& which) {
    inputs.index_q = view(index_q, {kQueries, kIndexHeads, kIndexWidth});
    inputs.index_k = view(index_k, {kKeys, kIndexWidth});
    inputs.index_w = view(index_w, {kQueries, kIndexHeads});
    inputs.sm_scale = which.sm_scale;
  }
  void bind_mask(CausalMask& mask) {
    mask.ratio = 2;
    mask.cu_seqlens_q = view(cu_seqlens_q, {4});
    mask.cu_seqlens_k = view(cu_seqlens_k, {4});
    mask.q_offsets = view(q_offsets, {3});
  }
  void bind_gradients(IndexerGradients& gradients, const LossCase& which) {
    gradients.grad_loss = view(grad_loss, {1});
    gradients.loss_coeff = 1.3f;
    gradients.num_tokens = 9;
    gradients.clipped = which.clipped;
    gradients.d_index_q = view(d_index_q, {kQueries, kIndexHeads, kIndexWidth});
    gradients.d_index_k = view(d_index_k, {kKeys, kIndexWidth});
    gradients.d_index_w = view(d_index_w, {kQueries, kIndexHeads});
  }
  void bind_keys(SparseSelection& keys) { selection.bind(keys); }
  void bind_keys(CausalMask& keys) { bind_mask(keys); }

  void make_lse(const SparseIndexerLossArgs&) {
    Values out = unwritten(kQueries * kHeads * kValueWidth);
    SparseAttentionForwardArgs args;
    bind(args);
    selection.bind(args);
    args.out = view(out, {kQueries, kHeads, kValueWidth});
    args.lse = view(lse, {kQueries, kHeads});
    run_ok(args);
  }
  void make_lse(const DenseIndexerLossArgs&) {
    DenseAttentionLseArgs args;
    bind(args);
    bind_mask(args);
    args.lse = view(lse, {kQueries, kHeads});
    run_ok(args);
  }

  template <class LossArgs>
  LossArgs loss_args(const LossCase& which) {
    LossArgs args;
    bind(args);
    bind_indexer(args, which);
    bind_keys(args);
    bind_gradients(args, which);
    args.lse = view(lse, {kQueries, kHeads});
    args.sink = view(sink, {kHeads});
    args.loss = view(loss, {1});
    return args;
  }
};

template <class LossArgs>
void check_loss(const LossCase& which) {
  IndexerProblem problem;
  const auto args = problem.loss_args<LossArgs>(which);
  problem.make_lse(args);
  run_ok(args);
  const Values d_index_q = problem.d_index_q;
  const Values d_index_k = problem.d_index_k;
  const Values d_index_w = problem.d_index_w;
  ASSERT_TRUE(std::isfinite(problem.loss[0]));
  ASSERT_GT(problem.loss[0], 0.0);

  const auto objective = [&] {
    run_ok(args);
    return problem.grad_loss[0] * problem.loss[0];
  };
  expect_close("d_index_q", d_index_q, differences(problem.index_q, which.step, objective),
               kTolerance);
  expect_close("d_index_k", d_index_k, differences(problem.index_k, which.step, objective),
               kTolerance);
  expect_close("d_index_w", d_index_w, differences(problem.index_w, which.step, objective),
               kTolerance);
}

// The gradients from stored predict and target, and KL from its definition, for comparison with
// the one-pass form.
template <class LossArgs, class PredictArgs, class TargetArgs, class BackwardArgs>
void check_two_steps(const LossCase& which, int64_t columns) {
  IndexerProblem problem;
  const auto args = problem.loss_args<LossArgs>(which);
  problem.make_lse(args);
  run_ok(args);
  Values predict = unwritten(kQueries * columns);
  Values target = unwritten(kQueries * columns);
  PredictArgs predict_args;
  problem.bind_indexer(predict_args, which);
  problem.bind_keys(predict_args);
  predict_args.predict = view(predict, {kQueries, columns});
  run_ok(predict_args);
  TargetArgs target_args;
  problem.bind(target_args);
  problem.bind_keys(target_args);
  target_args.lse = view(problem.lse, {kQueries, kHeads});
  target_args.sink = view(problem.sink, {kHeads});
  target_args.target = view(target, {kQueries, columns});
  run_ok(target_args);

  double divergence = 0;
  for (size_t i = 0; i < target.size(); ++i) {
    if (target[i] > 0) divergence += target[i] * std::log(target[i] / predict[i]);
  }
  EXPECT_NEAR(problem.loss[0], static_cast<double>(1.3f) / 9 * divergence, 1e-12);

  const Values d_index_q = std::exchange(problem.d_index_q, unwritten(kQueries * 256));
  const Values d_index_k = std::exchange(problem.d_index_k, unwritten(kKeys * 128));
  const Values d_index_w = std::exchange(problem.d_index_w, unwritten(kQueries * 2));
  BackwardArgs backward_args;
  problem.bind_indexer(backward_args, which);
  problem.bind_keys(backward_args);
  problem.bind_gradients(backward_args, which);
  backward_args.predict = view(predict, {kQueries, columns});
  backward_args.target = view(target, {kQueries, columns});
  run_ok(backward_args);
  expect_close("d_index_q", problem.d_index_q, d_index_q, 1e-13);
  expect_close("d_index_k", problem.d_index_k, d_index_k, 1e-13);
  expect_close("d_index_w", problem.d_index_w, d_index_w, 1e-13);
}

class RefIndexerGradient : public testing::TestWithParam<LossCase> {};

TEST_P(RefIndexerGradient, SparseLoss) { check_loss<SparseIndexerLossArgs>(GetParam()); }
TEST_P(RefIndexerGradient, DenseLoss) { check_loss<DenseIndexerLossArgs>(GetParam()); }

// At sm_scale = 200 some predict lies below e^-100: the exact loss still has its full gradient,
// the clipped one treats those keys as constant.
INSTANTIATE_TEST_SUITE_P(Cases, RefIndexerGradient,
                         testing::Values(LossCase{"exact"}, LossCase{"clipped", true},
                                         LossCase{"exact_peaked", false, 200.0f, 2e-6},
                                         LossCase{"clipped_peaked", true, 200.0f, 2e-6}),
                         [](const auto& test) { return test.param.name; });

TEST(RefIndexerClip, ChangesThePeakedGradients) {
  Values gradients[2];
  for (const bool clipped : {false, true}) {
    IndexerProblem problem;
    const auto args = problem.loss_args<SparseIndexerLossArgs>({"", clipped, 200.0f});
    problem.make_lse(args);
    run_ok(args);
    gradients[clipped ? 1 : 0] = problem.d_index_q;
  }
  Values change = gradients[0];
  for (size_t i = 0; i < change.size(); ++i) change[i] -= gradients[1][i];
  EXPECT_GT(norm(change), 0.01 * norm(gradients[0]));
}

TEST(RefIndexerTwoSteps, Sparse) {
  check_two_steps<SparseIndexerLossArgs, SparseIndexerScoresArgs, SparseAttentionScoresArgs,
                  IndexerBackwardArgs>({"exact"}, 7);
}
TEST(RefIndexerTwoSteps, Dense) {
  check_two_steps<DenseIndexerLossArgs, DenseIndexerScoresArgs, DenseAttentionScoresArgs,
                  DenseIndexerBackwardArgs>({"exact"}, kKeys);
}

}  // namespace
}  // namespace dsattn
