// The reference's indexer at the edges of the contract, against values worked out by hand: masks,
// the rules of top-k, and a predict that has vanished.
#include <gtest/gtest.h>

#include <cstdint>
#include <limits>
#include <vector>

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

// Index heads of width 1: q = 1, key s holds s + 1, so a score is s + 1 times the weight.
struct Indexer {
  Floats q, k, w;
  Indexer(int64_t queries, int64_t keys)
      : q(static_cast<size_t>(queries), 1.0f), w(static_cast<size_t>(queries), 1.0f) {
    for (int64_t s = 0; s < keys; ++s) k.push_back(static_cast<float>(s + 1));
  }
  void bind(IndexerInputs& args) {
    const auto queries = static_cast<int64_t>(q.size());
    args.index_q = view(q, {queries, 1, 1});
    args.index_k = view(k, {static_cast<int64_t>(k.size()), 1});
    args.index_w = view(w, {queries, 1});
  }
};

TEST(RefMaskEdge, RatioOffsetsAndEmptySegments) {
  Indexer indexer(6, 12);
  Ints cu_q = {0, 0, 2, 3, 5, 6};
  Ints cu_k = {0, 3, 7, 7, 10, 12};
  Ints offsets = {9, 6, 50, 2, -3};
  Floats scores(72, kNaN);
  IndexerForwardArgs args;
  indexer.bind(args);
  args.ratio = 4;
  args.cu_seqlens_q = view(cu_q, {6});
  args.cu_seqlens_k = view(cu_k, {6});
  args.q_offsets = view(offsets, {5});
  args.scores = view(scores, {6, 12});
  ASSERT_TRUE(ref::run(args, {}).has_value());
  // No queries; (6 + {0, 1} + 1) / 4 = 1, 2 keys from row 3; no keys; (2 + {0, 1} + 1) / 4 = 0, 1
  // from row 7; (-3 + 0 + 1) / 4 = 0.
  Floats expected(72, -kInf);
  expected[3] = expected[12 + 3] = 4;
  expected[12 + 4] = 5;
  expected[48 + 7] = 8;
  EXPECT_EQ(scores, expected);

  Ints ids(18, 77);
  IndexerForwardTopKArgs top;
  static_cast<IndexerInputs&>(top) = args;
  static_cast<CausalMask&>(top) = args;
  top.topk_idxs = view(ids, {6, 3});
  ASSERT_TRUE(ref::run(top, {}).has_value());
  EXPECT_EQ(ids, (Ints{3, -1, -1, 3, 4, -1, -1, -1, -1, -1, -1, -1, 7, -1, -1, -1, -1, -1}));
  top.ids = IdSpace::kLocal;
  top.order = TopKOrder::kScore;
  ASSERT_TRUE(ref::run(top, {}).has_value());
  EXPECT_EQ(ids, (Ints{0, -1, -1, 1, 0, -1, -1, -1, -1, -1, -1, -1, 0, -1, -1, -1, -1, -1}));
}

Ints top_k(Floats scores, int64_t k, TopKOrder order, Floats* values, Ints lengths = {}) {
  Ints ids(static_cast<size_t>(k), 77);
  values->assign(static_cast<size_t>(k), kNaN);
  IndexerTopKArgs args;
  args.scores = view(scores, {1, static_cast<int64_t>(scores.size())});
  if (!lengths.empty()) args.seq_lens = view(lengths, {1});
  args.order = order;
  args.topk_idxs = view(ids, {1, k});
  args.topk_values = view(*values, {1, k});
  EXPECT_TRUE(ref::run(args, {}).has_value());
  return ids;
}

TEST(RefTopKEdge, TiesZerosNaNAndInfinities) {
  Floats values;
  const auto id = TopKOrder::kId;
  const auto score = TopKOrder::kScore;
  EXPECT_EQ(top_k({2, 2, 2, 2}, 2, id, &values), (Ints{0, 1}));
  EXPECT_EQ(top_k({-0.0f, 0.0f, 0.0f}, 1, id, &values), (Ints{0}));
  EXPECT_EQ(top_k({1, kNaN, kInf, -kInf, 3}, 4, id, &values), (Ints{0, 2, 4, -1}));
  EXPECT_EQ(values, (Floats{1, kInf, 3, -kInf}));
  EXPECT_EQ(top_k({1, kNaN, kInf, 3, 1}, 4, score, &values), (Ints{2, 3, 0, 4}));
  EXPECT_EQ(top_k({1e-45f, 3e-45f, 0}, 1, id, &values), (Ints{1}));
  EXPECT_EQ(top_k({1, 2, 3}, 2, id, &values, {2}), (Ints{0, 1}));
  EXPECT_EQ(top_k({1, 2, 3}, 2, id, &values, {-4}), (Ints{-1, -1}));
  EXPECT_EQ(top_k({1, 2, 3}, 2, id, &values, {9}), (Ints{1, 2}));
}

// predict = 0 under a target: the exact gradient is -target, the clipped one drops the key.
TEST(RefIndexerBackwardEdge, PredictZero) {
  for (const bool clipped : {false, true}) {
    Indexer indexer(1, 3);
    Floats predict = {1, 0, kNaN}, target = {0.25f, 0.75f, kNaN};
    Ints ids = {0, 1, -1};
    Floats d_q(1, kNaN), d_k(3, kNaN), d_w(1, kNaN);
    IndexerBackwardArgs args;
    indexer.bind(args);
    args.topk_idxs = view(ids, {1, 3});
    args.predict = view(predict, {1, 3});
    args.target = view(target, {1, 3});
    args.clipped = clipped;
    args.d_index_q = view(d_q, {1, 1, 1});
    args.d_index_k = view(d_k, {3, 1});
    args.d_index_w = view(d_w, {1, 1});
    ASSERT_TRUE(ref::run(args, {}).has_value());
    EXPECT_EQ(d_k, clipped ? Floats({0, 0, 0}) : Floats({0.75f, -0.75f, 0}));
    EXPECT_EQ(d_w[0], clipped ? 0.0f : -0.75f);
    EXPECT_EQ(d_q[0], clipped ? 0.0f : -0.75f);
  }
}

// No queries: the loss is 0 and the gradient of every key row is written all the same.
TEST(RefIndexerLossEdge, NoQueries) {
  Indexer indexer(0, 2);
  Floats kv = {1, 2}, d_k(2, kNaN), loss = {kNaN};
  DenseIndexerLossArgs args;
  indexer.bind(args);
  args.q = {nullptr, DType::kF32, {0, 1, 1}};
  args.kv = view(kv, {2, 1});
  args.lse = {nullptr, DType::kF32, {0, 1}};
  args.loss = {loss.data(), DType::kF32, {}};
  args.d_index_q = {nullptr, DType::kF32, {0, 1, 1}};
  args.d_index_k = view(d_k, {2, 1});
  args.d_index_w = {nullptr, DType::kF32, {0, 1}};
  ASSERT_TRUE(ref::run(args, {}).has_value());
  EXPECT_EQ(loss[0], 0.0f);
  EXPECT_EQ(d_k, Floats(2, 0.0f));
}

// No keys: rows are padding, for K = 0 and K > 0.
TEST(RefTopKEdge, NoKeysOrNoSlots) {
  for (const int64_t keys : {0, 3}) {
    for (const int64_t k : {0, 2}) {
      if (keys > 0 && k > 0) continue;
      Indexer indexer(2, keys);
      Ints ids(static_cast<size_t>(2 * k), 77);
      IndexerForwardTopKArgs args;
      indexer.bind(args);
      args.topk_idxs = view(ids, {2, k});
      ASSERT_TRUE(ref::run(args, {}).has_value());
      EXPECT_EQ(ids, Ints(static_cast<size_t>(2 * k), -1));
    }
  }
}

}  // namespace
}  // namespace dsattn
