// Small problems of random operation, shape and options, on every backend against the reference.
// DSATTN_FUZZ_COUNT sets how many (default 3000), DSATTN_FUZZ_SEED the first seed; a failure prints
// the seed that repeats it.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstdlib>

#include "cases.h"
#include "problem/edges.h"
#include "problem/verify.h"

namespace dsattn {
namespace {

using testing_table::backends_under_test;
using testing_table::Column;
using testing_table::problem_of;

int64_t from_environment(const char* name, int64_t fallback) {
  const char* text = std::getenv(name);
  if (text == nullptr) return fallback;
  return parse_int(name, text).value_or(fallback);
}

/// Mostly small, sometimes at or around a tile's edge.
int64_t random_extent(Rng& rng, int64_t low, int64_t high) {
  if (!rng.chance(0.2)) return rng.between(low, high);
  constexpr int64_t kEdges[] = {1, 16, 31, 32, 33, 63, 64, 65, 127, 128, 129};
  return std::max(low, kEdges[rng.below(std::size(kEdges))]);
}

void random_segments(Rng& rng, GenerateOptions& options) {
  const int64_t count = rng.between(1, 4);
  for (int64_t b = 0; b < count; ++b) {
    options.segments_q.push_back(rng.between(0, 8));
    options.segments_k.push_back(rng.between(0, 40));
  }
  if (!rng.chance(0.5)) return;
  for (int64_t b = 0; b < count; ++b) options.q_offsets.push_back(rng.between(-8, 60));
}

GenerateOptions random_options(uint64_t seed) {
  Rng rng(seed);
  GenerateOptions options;
  std::vector<std::string_view> ops;
  for_each_op([&]<class Args>() { ops.push_back(Schema<Args>::kName); });
  options.op = ops[static_cast<size_t>(rng.below(static_cast<int64_t>(ops.size())))];
  options.seed = seed;
  options.kind = static_cast<Selection>(rng.below(3));
  options.queries = rng.between(0, 12);
  options.keys = random_extent(rng, 0, 140);
  options.heads = rng.chance(0.1) ? random_extent(rng, 1, 20) : rng.between(1, 9);
  options.d_qk = random_extent(rng, 1, 90);
  options.d_v = rng.between(1, options.d_qk);
  options.top_k = random_extent(rng, 0, 100);
  options.index_heads = rng.between(1, 9);
  if (rng.chance(0.3)) options.dtype = DType::kF16;
  options.sink = rng.chance(0.5);
  options.lengths = rng.chance(0.5);
  options.f32_gradients = rng.chance(0.5);
  options.f32_index_weights = rng.chance(0.5);
  options.grad_loss = rng.chance(0.5);
  if (rng.chance(0.3)) options.ratio = rng.between(1, 5);
  if (reads_tensor(options.op, "cu_seqlens_q") && rng.chance(0.5)) random_segments(rng, options);
  if (rng.chance(0.3)) options.metadata["deterministic"] = "true";
  if (rng.chance(0.3)) options.metadata["clipped"] = "true";
  if (rng.chance(0.3)) options.metadata["order"] = "score";
  if (rng.chance(0.3)) options.metadata["softmax_scale"] = "0.3";
  if (!options.segments_q.empty() && rng.chance(0.5)) options.metadata["ids"] = "local";
  return options;
}

TEST(FuzzShapes, AgreeWithTheReference) {
  const int64_t count = from_environment("DSATTN_FUZZ_COUNT", 3000);
  const int64_t first = from_environment("DSATTN_FUZZ_SEED", 20250929);
  fmt::print("DSATTN_FUZZ_SEED={} DSATTN_FUZZ_COUNT={}\n", first, count);
  for (int64_t seed = first; seed < first + count; ++seed) {
    const GenerateOptions options = random_options(static_cast<uint64_t>(seed));
    const Problem problem = problem_of(options);
    for (const Column& column : backends_under_test()) {
      SCOPED_TRACE(fmt::format(
          "DSATTN_FUZZ_SEED={} DSATTN_FUZZ_COUNT=1: {} on {}, Sq={} Skv={} H={} D={} Dv={} K={}",
          seed, options.op, column.name, options.queries, options.keys, options.heads, options.d_qk,
          options.d_v, options.top_k));
      const auto report = verify(problem, column.ctx);
      ASSERT_TRUE(report) << report.error().message;
      for (const TensorReport& tensor : report->tensors) {
        EXPECT_TRUE(tensor.passed) << tensor.name << " " << tensor.failure;
      }
    }
    if (testing::Test::HasFailure()) break;
  }
}

}  // namespace
}  // namespace dsattn
