// The demo's model against finite differences: a tiny configuration on the ref backend with F32
// storage, in every mode. One check per parameter array, along its own gradient's direction and
// along a random one.
#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <cstdint>
#include <vector>

#include "demo/matmul.h"
#include "demo/model.h"
#include "demo/random.h"

namespace dsattn::demo {
namespace {

ModelConfig tiny() {
  ModelConfig c;
  c.layers = 2;
  c.width = 16;
  c.heads = 2;
  c.latent = 8;
  c.rope = 4;
  c.mlp = 24;
  c.index_heads = 2;
  c.index_rope = 8;
  c.context = 10;
  c.sequences = 2;
  c.top_k = 4;
  c.backend = Backend::kRef;
  c.storage = DType::kF32;
  return c;
}

struct Bytes {
  std::vector<uint8_t> tokens, targets;
};

Bytes random_bytes(const ModelConfig& c) {
  Random random(7);
  Bytes bytes;
  for (int64_t t = 0; t < c.tokens(); ++t) {
    bytes.tokens.push_back(static_cast<uint8_t>(random.below(6)));
    bytes.targets.push_back(static_cast<uint8_t>(random.below(6)));
  }
  return bytes;
}

double loss_of(Model& model, Params& params, const Bytes& bytes, Mode mode, bool indexer) {
  const auto loss = model.forward_backward(params, bytes.tokens, bytes.targets, mode);
  EXPECT_TRUE(loss.has_value()) << (loss ? "" : loss.error().message);
  if (!loss) return 0.0;
  return indexer ? loss->indexer * static_cast<double>(model.config().layers) : loss->model;
}

// The derivative of the loss along `direction`, by central differences.
double slope(Model& model, Params& params, Param& p, const std::vector<float>& direction,
             const Bytes& bytes, Mode mode) {
  constexpr float kStep = 4e-3f;
  const std::vector<float> saved = p.value;
  double loss[2];
  for (const int side : {0, 1}) {
    for (size_t i = 0; i < saved.size(); ++i) {
      p.value[i] = saved[i] + (side == 0 ? -kStep : kStep) * direction[i];
    }
    loss[side] = loss_of(model, params, bytes, mode, p.indexer);
  }
  p.value = saved;
  return (loss[1] - loss[0]) / (2.0 * static_cast<double>(kStep));
}

std::vector<float> unit(std::vector<float> v) {
  double sum = 0.0;
  for (float x : v) sum += static_cast<double>(x) * static_cast<double>(x);
  const auto scale = static_cast<float>(1.0 / std::sqrt(sum));
  for (float& x : v) x *= scale;
  return v;
}

double dot(const std::vector<float>& a, const std::vector<float>& b) {
  double sum = 0.0;
  for (size_t i = 0; i < a.size(); ++i)
    sum += static_cast<double>(a[i]) * static_cast<double>(b[i]);
  return sum;
}

class DemoGradient : public testing::TestWithParam<Mode> {};

TEST_P(DemoGradient, MatchesFiniteDifferences) {
  const Mode mode = GetParam();
  ModelConfig config = tiny();
  config.top_k = config.context;  // a smaller choice changes by jumps as the weights move
  const Bytes bytes = random_bytes(config);
  Model model(config);
  Params params = Params::make(config, 3);
  for (float& x : params.w_head.value) x *= 10.0f;  // the gradient below it is small otherwise
  loss_of(model, params, bytes, mode, false);
  std::vector<std::vector<float>> grads;
  for (const Param* p : params.all()) grads.push_back(p->grad);

  Random random(11);
  size_t at = 0;
  for (Param* p : params.all()) {
    SCOPED_TRACE("parameter " + std::to_string(at));
    const std::vector<float>& grad = grads[at++];
    const double norm = std::sqrt(dot(grad, grad));
    if (p->indexer && mode == Mode::kDense) {
      EXPECT_EQ(norm, 0.0);
      continue;
    }
    ASSERT_GT(norm, 0.0);
    std::vector<float> other(grad.size());
    for (float& x : other) x = random.normal();
    for (const std::vector<float>& direction : {unit(grad), unit(other)}) {
      const double expected = dot(grad, direction);
      EXPECT_NEAR(slope(model, params, *p, direction, bytes, mode), expected,
                  0.01 * std::abs(expected) + 2e-3 * norm + 2e-5);
    }
  }
}

// The indexer reads the model and must send nothing back: gradients of the model are those of the
// dense pass to the last bit, which is why the demo can share its first phase.
TEST(DemoGradientTest, WarmupLeavesTheModelsGradientsAlone) {
  const ModelConfig config = tiny();
  const Bytes bytes = random_bytes(config);
  Model model(config);
  Params dense = Params::make(config, 3);
  Params warmup = dense;
  loss_of(model, dense, bytes, Mode::kDense, false);
  loss_of(model, warmup, bytes, Mode::kDenseWarmup, false);
  const std::vector<Param*> a = dense.all();
  const std::vector<Param*> b = warmup.all();
  for (size_t i = 0; i < a.size(); ++i) {
    if (a[i]->indexer) continue;
    EXPECT_EQ(a[i]->grad, b[i]->grad) << "parameter " << i;
  }
}

TEST(DemoGradientTest, GradientsDoNotDependOnThreads) {
  ModelConfig config = tiny();
  const Bytes bytes = random_bytes(config);
  Params one = Params::make(config, 3);
  Params three = one;
  Model model_one(config);
  const double loss_one = loss_of(model_one, one, bytes, Mode::kSparse, false);
  config.threads = 3;
  Model model_three(config);
  EXPECT_EQ(loss_of(model_three, three, bytes, Mode::kSparse, false), loss_one);
  const std::vector<Param*> a = one.all();
  const std::vector<Param*> b = three.all();
  for (size_t i = 0; i < a.size(); ++i) EXPECT_EQ(a[i]->grad, b[i]->grad) << "parameter " << i;
}

// Shapes that fill tiles and depth blocks, and shapes that do not.
TEST(DemoMatmul, MatchesTheSumOfProducts) {
  Random random(5);
  for (const auto& [m, k, n] :
       {std::array<int64_t, 3>{1, 1, 1}, {5, 300, 37}, {64, 256, 64}, {17, 513, 8}}) {
    std::vector<float> a(size_t(m * k)), b(size_t(k * n)), start(size_t(m * n));
    for (auto* list : {&a, &b, &start}) {
      for (float& x : *list) x = static_cast<float>(random.below(17) - 8);  // exact in fp32
    }
    for (const bool accumulate : {false, true}) {
      for (const bool flip : {false, true}) {  // A as the transpose of a [k, m] array
        const Matrix left = flip ? transposed(matrix(a, k, m)) : matrix(a, m, k);
        std::vector<float> c = start;
        matmul(left, matrix(b, k, n), c, accumulate, 2);
        for (int64_t i = 0; i < m; ++i) {
          for (int64_t j = 0; j < n; ++j) {
            float sum = accumulate ? start[size_t(i * n + j)] : 0.0f;
            for (int64_t d = 0; d < k; ++d) {
              sum += left.data[i * left.row_stride + d * left.col_stride] * b[size_t(d * n + j)];
            }
            ASSERT_EQ(c[size_t(i * n + j)], sum)
                << m << " " << k << " " << n << " " << i << " " << j;
          }
        }
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Modes, DemoGradient,
                         testing::Values(Mode::kDense, Mode::kDenseWarmup, Mode::kSparse));

}  // namespace
}  // namespace dsattn::demo
