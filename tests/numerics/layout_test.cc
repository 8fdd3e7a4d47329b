// Cases that lie in the call and not in the numbers: strided tensors, the last of very many rows,
// a second call into dirty outputs, cancellation.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstring>
#include <limits>

#include "base/float16.h"
#include "cases.h"
#include "problem/verify.h"

namespace dsattn {
namespace {

using testing_table::backends_under_test;
using testing_table::Column;
using testing_table::problem_of;

GenerateOptions small(std::string_view op) {
  GenerateOptions options;
  options.op = op;
  options.queries = 7;
  options.keys = 60;
  options.heads = 4;
  options.d_qk = 40;
  options.d_v = 24;
  options.top_k = 20;
  options.sink = true;
  return options;
}

/// A tensor of `view`'s shape whose rows lie apart: (Sq, H, D) becomes head-major [H][Sq][D + 3],
/// anything else gets rows 3 elements longer. `owner` keeps the memory, filled with 0xFF.
TensorView strided(const TensorView& view, OwnedTensor& owner) {
  const int64_t width = view.size(view.rank - 1) + 3;
  std::vector<int64_t> shape(view.shape.begin(), view.shape.begin() + view.rank);
  shape.back() = width;
  if (view.rank == 3) std::swap(shape[0], shape[1]);
  owner = *OwnedTensor::make(view.dtype, shape);
  std::memset(owner.bytes().data(), 0xFF, owner.bytes().size());
  TensorView result = view;
  result.data = owner.view().data;
  result.strides[static_cast<size_t>(view.rank - 1)] = 1;
  if (view.rank == 3) {
    result.strides[0] = width;
    result.strides[1] = width * view.size(0);
  } else if (view.rank == 2) {
    result.strides[0] = width;
  }
  return result;
}

/// Copies between two views of one shape and type.
void copy(const TensorView& from, const TensorView& to) {
  const auto bytes = static_cast<size_t>(size_bytes(from.dtype));
  for (int64_t flat = 0; flat < from.numel(); ++flat) {
    int64_t rest = flat;
    int64_t source = 0;
    int64_t target = 0;
    for (int i = from.rank - 1; i >= 0; --i) {
      source += rest % from.size(i) * from.stride(i);
      target += rest % from.size(i) * to.stride(i);
      rest /= from.size(i);
    }
    std::memcpy(to.ptr<char>() + static_cast<size_t>(target) * bytes,
                from.ptr<char>() + static_cast<size_t>(source) * bytes, bytes);
  }
}

/// Runs the call with every tensor of rank 2 and 3 strided; its outputs have to equal the plain
/// call's bit for bit, and the gaps between rows have to stay as they were.
template <class Args>
void expect_strides_do_not_matter(const ExecContext& column) {
  const auto problem = complete(problem_of(small(Schema<Args>::kName)), column);
  ASSERT_TRUE(problem) << problem.error().message;
  const auto plain = run_problem(*problem, column);
  ASSERT_TRUE(plain) << plain.error().message;
  auto call = bind<Args>(*problem, column);
  ASSERT_TRUE(call) << call.error().message;
  std::vector<OwnedTensor> owners;
  std::map<std::string, TensorView> results;
  owners.reserve(Schema<Args>::tensors().size());
  for (const auto& field : Schema<Args>::tensors()) {
    TensorView& view = call->args.*field.member;
    if (!view.defined() || view.rank < 2) {
      continue;
    }
    const TensorView compact = view;
    view = strided(compact, owners.emplace_back());
    if (field.spec.is_output()) {
      results[std::string(field.spec.name)] = view;
    } else {
      copy(compact, view);
    }
  }
  ExecContext ctx = column;
  const auto bytes = workspace_bytes(call->args, ctx);
  ASSERT_TRUE(bytes) << bytes.error().message;
  auto workspace = *OwnedTensor::make(DType::kI32, std::vector<int64_t>{*bytes / 4 + 1});
  ctx.workspace = workspace.view().data;
  ctx.workspace_bytes = *bytes;
  const auto done = execute(call->args, ctx);
  ASSERT_TRUE(done) << done.error().message;
  for (const auto& [name, view] : results) {
    const OwnedTensor& expected = plain->at(name);
    auto compact = *OwnedTensor::make(view.dtype, expected.shape());
    copy(view, compact.view());
    EXPECT_TRUE(std::ranges::equal(compact.bytes(), expected.bytes())) << name;
  }
  for (const OwnedTensor& owner : owners) {  // the three elements behind each row
    const auto size = static_cast<size_t>(size_bytes(owner.dtype()));
    const auto row = static_cast<size_t>(owner.view().size(owner.view().rank - 1)) * size;
    for (size_t end = row; end <= owner.bytes().size(); end += row) {
      for (size_t i = end - 3 * size; i < end; ++i) {
        ASSERT_EQ(owner.bytes()[i], std::byte{0xFF}) << "a gap was written";
      }
    }
  }
}

class Layout : public testing::TestWithParam<Column> {};

TEST_P(Layout, StridesDoNotMatter) {
  for_each_op([&]<class Args>() {
    SCOPED_TRACE(Schema<Args>::kName);
    expect_strides_do_not_matter<Args>(GetParam().ctx);
  });
}

/// The call writes nothing outside the workspace that the query asked for.
template <class Args>
void expect_workspace_is_kept(ExecContext ctx) {
  constexpr size_t kGuard = 4096;
  constexpr std::byte kDirt{0xA5};
  GenerateOptions options = small(Schema<Args>::kName);
  options.f32_gradients = ctx.num_threads == 3;  // without and with sums of dkv of their own
  const auto problem = complete(problem_of(options), ctx);
  ASSERT_TRUE(problem) << problem.error().message;
  auto call = bind<Args>(*problem, ctx);
  ASSERT_TRUE(call) << call.error().message;
  const auto bytes = workspace_bytes(call->args, ctx);
  ASSERT_TRUE(bytes) << bytes.error().message;
  const auto size = static_cast<size_t>(*bytes);
  auto memory = *OwnedTensor::make(
      DType::kI32, std::vector<int64_t>{static_cast<int64_t>(size + 2 * kGuard) / 4 + 1});
  std::ranges::fill(memory.bytes(), kDirt);
  ctx.workspace = memory.bytes().data() + kGuard;
  ctx.workspace_bytes = *bytes;
  const auto done = execute(call->args, ctx);
  ASSERT_TRUE(done) << done.error().message;
  const auto untouched = [&](size_t from, size_t to) {
    return std::ranges::all_of(memory.bytes().subspan(from, to - from),
                               [=](std::byte b) { return b == kDirt; });
  };
  EXPECT_TRUE(untouched(0, kGuard)) << "before the workspace";
  EXPECT_TRUE(untouched(kGuard + size, memory.bytes().size())) << "behind the workspace";
}

TEST_P(Layout, WorkspaceIsKept) {
  for_each_op([&]<class Args>() {
    SCOPED_TRACE(Schema<Args>::kName);
    for (int threads : {1, 3, 8}) {
      ExecContext ctx = GetParam().ctx;
      ctx.num_threads = threads;
      expect_workspace_is_kept<Args>(ctx);
    }
  });
}

/// A head whose products are all -inf has no gradient of its weight, NaN least of all.
TEST_P(Layout, HeadAtMinusInfinityHasNoWeightGradient) {
  Problem problem = problem_of(small("indexer_backward"));
  const TensorView q = problem.view("index_q");
  const TensorView k = problem.view("index_k");
  for (int64_t t = 0; t < q.size(0); ++t) {
    q.ptr<bf16>()[t * q.stride(0)] = to_bf16(-std::numeric_limits<float>::infinity());
  }
  for (int64_t s = 0; s < k.size(0); ++s) k.ptr<bf16>()[s * k.stride(0)] = to_bf16(1.0f);
  const auto result = run_problem(problem, GetParam().ctx);
  ASSERT_TRUE(result) << result.error().message;
  const TensorView dw = result->at("d_index_w").view();
  for (int64_t t = 0; t < q.size(0); ++t) {
    EXPECT_EQ(dw.ptr<const float>()[t * dw.stride(0)], 0.0f) << "query " << t;
  }
}

/// The last of 65,537 rows, alone: its result is that of a problem of one row.
TEST_P(Layout, TheLastOfManyRows) {
  constexpr int64_t kRows = 65537;
  for (const char* op : {"sparse_attention_forward", "indexer_forward", "sparse_indexer_scores",
                         "indexer_top_k", "sparse_attention_backward"}) {
    SCOPED_TRACE(op);
    GenerateOptions options = small(op);
    options.queries = kRows;
    options.keys = 5;
    options.heads = 1;
    options.index_heads = 1;
    options.d_qk = 8;
    options.d_v = 8;
    options.top_k = 3;
    options.q_offsets = {-kRows + 5};  // the last row sees every key
    if (std::string_view(op) != "indexer_forward") options.q_offsets.clear();
    const auto many = complete(problem_of(options), GetParam().ctx);
    ASSERT_TRUE(many) << many.error().message;
    const auto all = run_problem(*many, GetParam().ctx);
    ASSERT_TRUE(all) << all.error().message;
    Problem one = *many;
    one.tensors.erase("q_offsets");
    if (one.op == "indexer_forward") {
      auto offset = *OwnedTensor::make(DType::kI32, std::vector<int64_t>{1});
      offset.elements<int32_t>()[0] = 4;
      one.tensors["q_offsets"] = offset;
    }
    for (auto& [name, tensor] : one.tensors) {
      if (tensor.view().rank == 0 || tensor.view().size(0) != kRows) continue;
      std::vector<int64_t> shape(tensor.shape().begin(), tensor.shape().end());
      shape[0] = 1;
      auto last = *OwnedTensor::make(tensor.dtype(), shape);
      std::memcpy(last.bytes().data(), &*tensor.bytes().end() - last.bytes().size(),
                  last.bytes().size());
      tensor = last;
    }
    const auto alone = run_problem(one, GetParam().ctx);
    ASSERT_TRUE(alone) << alone.error().message;
    for (const auto& [name, tensor] : *alone) {
      const OwnedTensor& whole = all->at(name);
      if (whole.view().size(0) != kRows) continue;
      EXPECT_EQ(std::memcmp(tensor.bytes().data(),
                            whole.bytes().data() + whole.bytes().size() - tensor.bytes().size(),
                            tensor.bytes().size()),
                0)
          << name;
    }
  }
}

/// Scoring the last row alone gives the bits that scoring all rows and keys gave.
TEST_P(Layout, ScoresDoNotDependOnChunks) {
  GenerateOptions options = small("indexer_forward");
  options.queries = 41;
  options.keys = 133;
  options.q_offsets = {133};
  const Problem whole = problem_of(options);
  const auto all = run_problem(whole, GetParam().ctx);
  ASSERT_TRUE(all) << all.error().message;
  for (int64_t keys : {1, 17, 64, 100}) {
    Problem part = whole;
    const TensorView k = whole.view("index_k");
    auto fewer = *OwnedTensor::make(k.dtype, std::vector<int64_t>{keys, 128});
    std::memcpy(fewer.bytes().data(), k.data, fewer.bytes().size());
    part.tensors["index_k"] = fewer;
    const auto scores = run_problem(part, GetParam().ctx);
    ASSERT_TRUE(scores) << scores.error().message;
    for (int64_t t = 0; t < 41; ++t) {
      EXPECT_EQ(std::memcmp(scores->at("scores").elements<float>().data() + t * keys,
                            all->at("scores").elements<float>().data() + t * 133,
                            static_cast<size_t>(keys) * sizeof(float)),
                0)
          << keys << " keys, row " << t;
    }
  }
}

TEST_P(Layout, ProgressRisesAndCancels) {
  GenerateOptions options = small("sparse_attention");
  options.queries = 64;
  const Problem problem = problem_of(options);
  ExecContext ctx = GetParam().ctx;
  std::vector<double> seen;
  ctx.progress = [&](double share) {
    seen.push_back(share);
    return true;
  };
  ASSERT_TRUE(run_problem(problem, ctx));
  ASSERT_FALSE(seen.empty());
  EXPECT_TRUE(std::is_sorted(seen.begin(), seen.end()));
  EXPECT_GE(seen.front(), 0);
  EXPECT_LE(seen.back(), 1);
  ctx.progress = [](double) { return false; };
  const auto cancelled = run_problem(problem, ctx);
  ASSERT_FALSE(cancelled);
  EXPECT_EQ(cancelled.error().code, ErrorCode::kCancelled);
}

INSTANTIATE_TEST_SUITE_P(Contract, Layout, testing::ValuesIn(backends_under_test()),
                         [](const auto& instance) { return instance.param.name; });

}  // namespace
}  // namespace dsattn
