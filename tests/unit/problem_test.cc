// Problems: strict parameters, outputs by the contract's rules, portable generation, and a judge
// that notices what it should.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "problem/elements.h"
#include "problem/rng.h"
#include "problem/selection.h"
#include "problem/verify.h"

namespace dsattn {
namespace {

ExecContext on_ref() {
  ExecContext ctx;
  ctx.backend = Backend::kRef;
  return ctx;
}

GenerateOptions small(std::string_view op) {
  GenerateOptions options;
  options.op = op;
  options.queries = 4;
  options.keys = 12;
  options.heads = 2;
  options.d_qk = 16;
  options.d_v = 8;
  options.top_k = 5;
  options.index_heads = 2;
  return options;
}

Problem made(const GenerateOptions& options) {
  auto problem = generate(options, on_ref());
  EXPECT_TRUE(problem) << problem.error().message;
  return problem ? *problem : Problem{};
}

TEST(Parameters, TakeTheWholeText) {
  EXPECT_EQ(*parse_float("x", "-0.5"), -0.5f);
  EXPECT_EQ(*parse_float("x", "1e-3"), 1e-3f);
  EXPECT_EQ(*parse_int("x", "-12"), -12);
  EXPECT_EQ(*parse_bool("x", "true"), true);
  for (const char* bad : {"", " 1", "1 ", "1.5x", "0x10", "1,5", "true", "1e99"}) {
    EXPECT_FALSE(parse_float("x", bad)) << bad;
  }
  for (const char* bad : {"", "1.0", "9223372036854775808", "1e3", "+1"}) {
    EXPECT_FALSE(parse_int("x", bad)) << bad;
  }
  for (const char* bad : {"True", "1", "yes", "", "false "}) EXPECT_FALSE(parse_bool("x", bad));
}

TEST(Parameters, BadOnesAreNamed) {
  Problem problem = made(small("sparse_attention_forward"));
  for (const auto& [name, text] :
       {std::pair("softmax_scale", "fast"), {"d_v", "0"}, {"d_v", "17"}, {"d_v", "8.0"}}) {
    Problem bad = problem;
    bad.metadata[name] = text;
    const auto result = run_problem(bad, on_ref());
    ASSERT_FALSE(result) << name;
    EXPECT_EQ(result.error().code, ErrorCode::kInvalidValue);
    EXPECT_NE(result.error().message.find(name), std::string::npos) << result.error().message;
  }
}

TEST(Outputs, FollowTheMetadata) {
  Problem problem = made(small("sparse_attention"));
  auto result = run_problem(problem, on_ref());
  ASSERT_TRUE(result) << result.error().message;
  EXPECT_EQ(to_string(result->at("out").view()), "(4, 2, 8) BF16 on cpu");
  EXPECT_EQ(to_string(result->at("dkv").view()), "(12, 16) BF16 on cpu");
  EXPECT_FALSE(result->contains("d_sink"));
  GenerateOptions rich = small("sparse_attention");
  rich.sink = rich.f32_gradients = true;
  result = run_problem(made(rich), on_ref());
  ASSERT_TRUE(result) << result.error().message;
  EXPECT_EQ(result->at("dkv").dtype(), DType::kF32);
  EXPECT_EQ(to_string(result->at("d_sink").view()), "(2) F32 on cpu");
}

TEST(Outputs, TopKIsRequiredAndBounded) {
  Problem problem = made(small("indexer_top_k"));
  for (const char* bad : {"-1", "65537", "five"}) {
    problem.metadata["top_k"] = bad;
    EXPECT_FALSE(run_problem(problem, on_ref())) << bad;
  }
  problem.metadata.erase("top_k");
  const auto result = run_problem(problem, on_ref());
  ASSERT_FALSE(result);
  EXPECT_NE(result.error().message.find("'top_k'"), std::string::npos);
}

TEST(Run, MissingInputIsNamed) {
  Problem problem = made(small("sparse_attention_backward"));
  problem.tensors.erase("kv");
  const auto result = run_problem(problem, on_ref());
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().code, ErrorCode::kMissingTensor);
  EXPECT_NE(result.error().message.find("kv"), std::string::npos);
}

TEST(Run, BackwardWithoutOutAndLseEqualsTheCombined) {
  GenerateOptions options = small("sparse_attention");
  options.sink = true;
  Problem problem = made(options);
  const auto combined = run_problem(problem, on_ref());
  problem.op = "sparse_attention_backward";
  const auto backward = run_problem(problem, on_ref());
  ASSERT_TRUE(combined && backward);
  for (const char* name : {"dq", "dkv", "d_sink"}) {
    EXPECT_TRUE(std::ranges::equal(combined->at(name).bytes(), backward->at(name).bytes())) << name;
  }
}

/// Golden values: the generator is the same on every machine, or these change.
TEST(Rng, IsTheSameEverywhere) {
  Rng rng(1);
  EXPECT_EQ(rng.bits(), 0xB3F2AF6D0FC710C5u);
  EXPECT_EQ(rng.bits(), 0x853B559647364CEAu);
  double sum = 0;
  double squares = 0;
  constexpr int kDraws = 100000;
  for (int i = 0; i < kDraws; ++i) {
    const double x = rng.normal();
    sum += x;
    squares += x * x;
  }
  EXPECT_NEAR(sum / kDraws, 0, 0.01);
  EXPECT_NEAR(squares / kDraws, 1, 0.02);
}

TEST(Selection, RowsHaveDistinctIds) {
  for (Selection kind : {Selection::kRandom, Selection::kWindowed, Selection::kHighOverlap}) {
    Rng rng(3);
    constexpr int64_t kKeys = 400;
    constexpr int64_t kSlots = 100;
    constexpr int64_t kRows = 50;
    SelectionMaker maker(kind, kRows, kKeys, kSlots, rng);
    std::vector<int32_t> previous;
    double kept = 0;
    for (int64_t t = 0; t < kRows; ++t) {
      std::vector<int32_t> ids(kSlots);
      maker.row(t, ids);
      std::vector<int32_t> sorted;
      std::copy_if(ids.begin(), ids.end(), std::back_inserter(sorted),
                   [](int32_t x) { return x >= 0; });
      std::sort(sorted.begin(), sorted.end());
      EXPECT_EQ(std::adjacent_find(sorted.begin(), sorted.end()), sorted.end());
      if (kind != Selection::kWindowed) {
        EXPECT_EQ(sorted.size(), static_cast<size_t>(kSlots));
      }
      std::vector<int32_t> shared;
      std::set_intersection(sorted.begin(), sorted.end(), previous.begin(), previous.end(),
                            std::back_inserter(shared));
      if (t > 0) kept += static_cast<double>(shared.size()) / (kSlots * (kRows - 1));
      previous = sorted;
    }
    if (kind == Selection::kHighOverlap) {
      EXPECT_NEAR(kept, 0.87, 0.03);
    } else if (kind == Selection::kRandom) {
      EXPECT_NEAR(kept, 0.25, 0.05);
    }
  }
}

OwnedTensor tensor_of(DType dtype, std::vector<int64_t> shape, const std::vector<double>& values) {
  auto tensor = *OwnedTensor::make(dtype, shape);
  fill_with(tensor, [&](int64_t i) { return values[static_cast<size_t>(i)]; });
  return tensor;
}

TensorReport compared(std::string_view name, const std::vector<double>& got,
                      const std::vector<double>& expected, const CompareContext& context = {}) {
  const auto rows = static_cast<int64_t>(got.size() / 2);
  return compare_tensor(name, tensor_of(DType::kF32, {rows, 2}, got),
                        tensor_of(DType::kF64, {rows, 2}, expected), context);
}

TEST(Compare, RelativeErrorAndItsPlace) {
  EXPECT_TRUE(compared("lse", {1, 2, 3, 4}, {1, 2, 3, 4}).passed);
  EXPECT_TRUE(compared("lse", {1, 2, 3, 4.00001}, {1, 2, 3, 4}).passed);
  const TensorReport report = compared("lse", {1, 2, 3, 4.01}, {1, 2, 3, 4});
  EXPECT_FALSE(report.passed);
  EXPECT_EQ(report.worst_element, 3);
  EXPECT_NEAR(report.relative_l2, 0.01 / std::sqrt(30), 1e-5);
  EXPECT_NE(report.failure.find("[1, 1]"), std::string::npos) << report.failure;
}

TEST(Compare, OneBadRowIsNotAveragedAway) {
  std::vector<double> values(2000, 1.0);
  std::vector<double> got = values;
  got[1000] *= 1 + 2e-4;  // 4.5e-6 of the tensor, 1.4e-4 of the row
  const TensorReport report = compared("lse", got, values);
  EXPECT_LT(report.relative_l2, 1e-5);
  EXPECT_FALSE(report.passed);
  EXPECT_EQ(report.worst_row, 500);
}

TEST(Compare, SmallRowsCountAsATenthOfTheMean) {
  std::vector<double> values(200, 1.0);
  values[0] = values[1] = 1e-6;
  std::vector<double> got = values;
  got[0] = 1.05e-6;  // 5 % of its row, but 4e-7 of a tenth of the mean row
  EXPECT_TRUE(compared("lse", got, values).passed);
  got[0] = 1.2e-6;  // more than 16 bf16 steps of its row's largest magnitude
  EXPECT_FALSE(compared("lse", got, values).passed);
  got[0] = 1e-4;
  EXPECT_FALSE(compared("lse", got, values).passed);
}

TEST(Compare, PatternOfNanAndInf) {
  const double inf = std::numeric_limits<double>::infinity();
  const double nan = std::numeric_limits<double>::quiet_NaN();
  EXPECT_TRUE(compared("lse", {inf, -inf, nan, 1}, {inf, -inf, nan, 1}).passed);
  EXPECT_FALSE(compared("lse", {inf, 2}, {-inf, 2}).passed);
  EXPECT_FALSE(compared("lse", {nan, 2}, {1, 2}).passed);
  EXPECT_FALSE(compared("lse", {1, 2}, {nan, 2}).passed);
  EXPECT_FALSE(compared("lse", {nan, 2}, {inf, 2}).passed);
}

TEST(Compare, CancelledSumsAreJudgedByTheirTerms) {
  CompareContext terms;
  terms.term_sizes = {1, 1};
  EXPECT_FALSE(compared("dq", {1e-3, 0}, {0, 0}).passed);
  EXPECT_TRUE(compared("dq", {1e-3, 0}, {0, 0}, terms).passed);
  EXPECT_FALSE(compared("dq", {1e-2, 0}, {0, 0}, terms).passed);
}

TEST(Compare, FlushedUnderflow) {
  EXPECT_TRUE(compared("lse", {0, 0}, {1e-39, 0}).passed);
  EXPECT_FALSE(compared("lse", {0, 0}, {1e-29, 0}).passed);
}

TEST(Compare, IdsAreExactAndShapesCount) {
  const auto a = tensor_of(DType::kI32, {3}, {1, 2, -1});
  const auto b = tensor_of(DType::kI32, {3}, {1, 3, -1});
  EXPECT_TRUE(compare_tensor("topk_idxs", a, a, {}).passed);
  const TensorReport report = compare_tensor("topk_idxs", b, a, {});
  EXPECT_FALSE(report.passed);
  EXPECT_EQ(report.mismatched, 1);
  EXPECT_FALSE(
      compare_tensor("topk_idxs", a, tensor_of(DType::kI32, {1, 3}, {1, 2, -1}), {}).passed);
}

/// Whatever single element of whatever output is spoiled, the judge says so.
TEST(Verify, NoticesEverySpoiledOutput) {
  for_each_op([&]<class Args>() {
    SCOPED_TRACE(Schema<Args>::kName);
    GenerateOptions options = small(Schema<Args>::kName);
    options.sink = true;
    const auto problem = complete(made(options), on_ref());
    ASSERT_TRUE(problem);
    auto result = run_problem(*problem, on_ref());
    ASSERT_TRUE(result) << result.error().message;
    auto report = judge(*problem, *result, on_ref());
    ASSERT_TRUE(report) << report.error().message;
    EXPECT_TRUE(report->passed());
    for (auto& [name, tensor] : *result) {
      const OwnedTensor sound = tensor;
      tensor = *sound.clone();
      const std::vector<double> values = to_doubles(sound);
      size_t largest = 0;
      for (size_t i = 0; i < values.size(); ++i) {
        if (std::isfinite(values[i]) && std::abs(values[i]) > std::abs(values[largest]))
          largest = i;
      }
      fill_with(tensor, [&](int64_t i) {
        const double x = values[static_cast<size_t>(i)];
        return static_cast<size_t>(i) == largest ? x * 1.5 + 1 : x;
      });
      report = judge(*problem, *result, on_ref());
      ASSERT_TRUE(report) << report.error().message;
      EXPECT_FALSE(report->passed()) << name;
      tensor = sound;
    }
  });
}

}  // namespace
}  // namespace dsattn
