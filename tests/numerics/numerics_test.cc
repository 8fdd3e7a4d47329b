// Every case on every backend: against the float64 reference, from NaN-filled outputs and a dirty
// workspace, bitwise the same on any number of threads.
#include <gtest/gtest.h>

#include "cases.h"
#include "problem/verify.h"

namespace dsattn {
namespace {

using testing_table::backends_under_test;
using testing_table::Case;
using testing_table::cases;
using testing_table::Column;
using testing_table::problem_of;

class Numerics : public testing::TestWithParam<std::tuple<Case, Column>> {};

TEST_P(Numerics, AgreesWithTheReference) {
  const auto& [one, column] = GetParam();
  SCOPED_TRACE("DSATTN_CASE_SEED=" + std::to_string(one.options.seed));
  const auto report = verify(problem_of(one.options), column.ctx);
  ASSERT_TRUE(report) << report.error().message;
  ASSERT_FALSE(report->tensors.empty());
  for (const TensorReport& tensor : report->tensors) {
    EXPECT_TRUE(tensor.passed) << tensor.name << " " << tensor.failure;
  }
}

INSTANTIATE_TEST_SUITE_P(Contract, Numerics,
                         testing::Combine(testing::ValuesIn(cases()),
                                          testing::ValuesIn(backends_under_test())),
                         [](const auto& instance) {
                           return std::get<0>(instance.param).name + "_on_" +
                                  std::get<1>(instance.param).name;
                         });

class Threads : public testing::TestWithParam<std::tuple<std::string, Column>> {};

TEST_P(Threads, DoNotChangeABit) {
  const auto& [op, column] = GetParam();
  GenerateOptions options;
  options.op = op;
  options.queries = 37;
  options.keys = 301;
  options.heads = 6;
  options.d_qk = 80;
  options.d_v = 64;
  options.top_k = 90;
  options.index_heads = 4;
  options.sink = options.lengths = true;
  const auto problem = complete(problem_of(options), column.ctx);
  ASSERT_TRUE(problem) << problem.error().message;
  TensorMap first;
  for (int threads : {1, 2, 3, 5, 8, 2}) {
    ExecContext ctx = column.ctx;
    ctx.num_threads = threads;
    const auto result = run_problem(*problem, ctx);
    ASSERT_TRUE(result) << result.error().message;
    if (first.empty()) first = *result;
    for (const auto& [name, tensor] : *result) {
      EXPECT_TRUE(std::ranges::equal(tensor.bytes(), first.at(name).bytes()))
          << name << " on " << threads << " threads";
    }
  }
}

std::vector<std::string> all_ops() {
  std::vector<std::string> names;
  for_each_op([&]<class Args>() { names.emplace_back(Schema<Args>::kName); });
  return names;
}

INSTANTIATE_TEST_SUITE_P(Contract, Threads,
                         testing::Combine(testing::ValuesIn(all_ops()),
                                          testing::ValuesIn(backends_under_test())),
                         [](const auto& instance) {
                           return std::get<0>(instance.param) + "_on_" +
                                  std::get<1>(instance.param).name;
                         });

TEST(Cases, HaveDistinctNames) {
  std::vector<std::string> names;
  for (const Case& one : cases()) names.push_back(one.name);
  std::sort(names.begin(), names.end());
  EXPECT_EQ(std::adjacent_find(names.begin(), names.end()), names.end());
}

}  // namespace
}  // namespace dsattn
