// What the CPU engine's attention promises beyond the formulas: the same bits for any number of
// threads, every instruction set within tolerance of the reference, strided tensors, segments of
// long rows, bounded workspace, and cancellation.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <ostream>
#include <random>
#include <vector>

#include "base/float16.h"
#include "base/owned_tensor.h"
#include "cpu/cpu.h"
#include "cpu/gemm.h"
#include "ref/ref.h"

namespace dsattn {
namespace {

struct Shape {
  int64_t queries, heads, width, value_width, slots, rows;
  DType dtype = DType::kBF16;
  DType dkv_dtype = DType::kBF16;

  friend void PrintTo(const Shape& shape, std::ostream* to) {
    *to << "Sq=" << shape.queries << " H=" << shape.heads << " D=" << shape.width
        << " Dv=" << shape.value_width << " K=" << shape.slots << " Skv=" << shape.rows << " "
        << to_string(shape.dtype);
  }
};

OwnedTensor zeros(DType dtype, std::vector<int64_t> shape) {
  return OwnedTensor::make(dtype, shape).value();
}

double read(const OwnedTensor& tensor, int64_t i) {
  switch (tensor.dtype()) {
    case DType::kBF16:
      return to_double(tensor.view().ptr<bf16>()[i]);
    case DType::kF16:
      return to_double(tensor.view().ptr<f16>()[i]);
    case DType::kF32:
      return to_double(tensor.view().ptr<float>()[i]);
    default:
      return tensor.view().ptr<double>()[i];
  }
}

void write(const OwnedTensor& tensor, int64_t i, float x) {
  if (tensor.dtype() == DType::kBF16) tensor.view().ptr<bf16>()[i] = to_bf16(x);
  if (tensor.dtype() == DType::kF16) tensor.view().ptr<f16>()[i] = to_f16(x);
  if (tensor.dtype() == DType::kF32) tensor.view().ptr<float>()[i] = x;
}

// Relative L2 error; NaN where one side alone is NaN.
double error(const OwnedTensor& actual, const OwnedTensor& expected) {
  double difference = 0;
  double size = 0;
  for (int64_t i = 0; i < actual.numel(); ++i) {
    const double a = read(actual, i);
    const double b = read(expected, i);
    if (a == b || (std::isnan(a) && std::isnan(b))) {
      size += std::isfinite(b) ? b * b : 0.0;
      continue;
    }
    difference += (a - b) * (a - b);
    size += b * b;
  }
  return difference == 0 ? 0.0 : std::sqrt(difference / size);
}

// One problem with the results of an engine. q is a view of wider rows, out and dout are stored
// head-major; every third id is invalid, and row 0 of kv is NaN and never selected.
class Problem {
 public:
  explicit Problem(const Shape& s, uint32_t seed = 20) : shape(s), random_(seed) {
    q = normal({s.queries, s.heads, s.width + 3});
    kv = normal({s.rows, s.width});
    dout = normal({s.heads, s.queries, s.value_width});
    sink = zeros(DType::kF32, {s.heads});
    ids = zeros(DType::kI32, {s.queries, s.slots});
    for (int64_t i = 0; i < s.width; ++i) write(kv, i, std::numeric_limits<float>::quiet_NaN());
    for (int64_t h = 0; h < s.heads; ++h) write(sink, h, static_cast<float>(h % 7) - 3.0f);
    for (int32_t& id : ids.elements<int32_t>()) {
      id = 1 + static_cast<int32_t>(random_() % static_cast<uint32_t>(s.rows - 1));
      if (random_() % 3 == 0) id = random_() % 2 == 0 ? -1 : static_cast<int32_t>(s.rows);
    }
    make_outputs(s.dtype, DType::kF32, s.dkv_dtype);
  }

  void make_outputs(DType storage, DType vector, DType dkv_type) {
    const Shape& s = shape;
    out = zeros(storage, {s.heads, s.queries, s.value_width});
    lse = zeros(vector, {s.queries, s.heads});
    max = zeros(vector, {s.queries, s.heads});
    dq = zeros(storage, {s.queries, s.heads, s.width});
    dkv = zeros(dkv_type, {s.rows, s.width});
    d_sink = zeros(vector, {s.heads});
  }

  SparseAttentionForwardArgs forward() const {
    SparseAttentionForwardArgs args;
    set_inputs(args);
    args.out = head_major(out);
    args.lse = lse.view();
    args.max_logits = max.view();
    return args;
  }

  SparseAttentionBackwardArgs backward() const {
    SparseAttentionBackwardArgs args;
    set_inputs(args);
    args.out = head_major(out);
    args.lse = lse.view();
    args.dout = head_major(dout);
    args.dq = dq.view();
    args.dkv = dkv.view();
    args.d_sink = d_sink.view();
    return args;
  }

  Shape shape;
  OwnedTensor q, kv, dout, sink, ids, out, lse, max, dq, dkv, d_sink;

 private:
  OwnedTensor normal(std::vector<int64_t> extents) {
    OwnedTensor tensor = zeros(shape.dtype, std::move(extents));
    std::normal_distribution<float> distribution;
    for (int64_t i = 0; i < tensor.numel(); ++i) write(tensor, i, distribution(random_));
    return tensor;
  }

  template <class Args>
  void set_inputs(Args& args) const {
    args.q = q.view();
    args.q.shape[2] = shape.width;
    args.kv = kv.view();
    args.topk_idxs = ids.view();
    args.sink = sink.view();
  }

  static TensorView head_major(const OwnedTensor& tensor) {
    TensorView view = tensor.view();
    std::swap(view.shape[0], view.shape[1]);
    std::swap(view.strides[0], view.strides[1]);
    return view;
  }

  std::mt19937 random_;
};

template <class Args>
Result<void> run_cpu(const Args& args, ExecContext ctx) {
  const int64_t bytes = cpu::workspace_bytes(args, ctx);
  OwnedTensor memory = zeros(DType::kF32, {(bytes + 3) / 4});
  std::fill(memory.bytes().begin(), memory.bytes().end(), std::byte{0xA5});
  ctx.workspace = memory.bytes().data();
  ctx.workspace_bytes = bytes;
  return cpu::run(args, ctx);
}

void run_both(const Problem& p, const ExecContext& ctx) {
  ASSERT_TRUE(run_cpu(p.forward(), ctx));
  ASSERT_TRUE(run_cpu(p.backward(), ctx));
}

const Shape kShapes[] = {
    {5, 64, 576, 512, 600, 300},
    {9, 33, 40, 24, 129, 50, DType::kBF16, DType::kF32},
    {3, 16, 96, 33, 300, 70, DType::kF16, DType::kF16},
    {4, 1, 1, 1, 65, 20, DType::kF16, DType::kF32},
    {70, 4, 64, 64, 40, 500},
};

class CpuAttention : public testing::TestWithParam<Shape> {};

TEST_P(CpuAttention, EveryInstructionSetAgreesWithTheReference) {
  for (int isa = static_cast<int>(CpuIsa::kBaseline);
       isa <= static_cast<int>(cpu::detect_cpu_isa()); ++isa) {
    SCOPED_TRACE(to_string(static_cast<CpuIsa>(isa)));
    ExecContext ctx;
    ctx.cpu_isa = static_cast<CpuIsa>(isa);
    Problem p(GetParam());
    run_both(p, ctx);
    Problem expected(GetParam());
    expected.make_outputs(DType::kF64, DType::kF64, DType::kF64);
    ASSERT_TRUE(ref::run(expected.forward(), {}));
    SparseAttentionBackwardArgs backward = expected.backward();
    backward.out = p.backward().out;  // as the engine stored them
    backward.lse = p.lse.view();
    ASSERT_TRUE(ref::run(backward, {}));
    EXPECT_LE(error(p.out, expected.out), 4e-3);
    EXPECT_LE(error(p.lse, expected.lse), 1e-5);
    EXPECT_LE(error(p.max, expected.max), 1e-5);
    EXPECT_LE(error(p.dq, expected.dq), 6e-3);
    EXPECT_LE(error(p.dkv, expected.dkv), GetParam().dkv_dtype == DType::kF32 ? 4e-3 : 6e-3);
    EXPECT_LE(error(p.d_sink, expected.d_sink), 1e-5);
  }
}

TEST_P(CpuAttention, BitsDoNotDependOnThreads) {
  Problem first(GetParam());
  ExecContext ctx;
  ctx.num_threads = 1;
  run_both(first, ctx);
  for (int threads : {2, 3, 7}) {
    Problem other(GetParam());
    ctx.num_threads = threads;
    run_both(other, ctx);
    for (auto member : {&Problem::out, &Problem::lse, &Problem::max, &Problem::dq, &Problem::dkv,
                        &Problem::d_sink}) {
      const auto a = (first.*member).bytes();
      const auto b = (other.*member).bytes();
      EXPECT_TRUE(std::equal(a.begin(), a.end(), b.begin())) << threads << " threads";
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Shapes, CpuAttention, testing::ValuesIn(kShapes));

// A row longer than a chunk of the backward goes through in segments.
TEST(CpuAttentionLimits, LongRows) {
  Problem p({2, 128, 33, 32, 60000, 400, DType::kF16, DType::kF32});
  run_both(p, {});
  Problem expected(p.shape);
  expected.make_outputs(DType::kF64, DType::kF64, DType::kF64);
  SparseAttentionBackwardArgs backward = expected.backward();
  backward.out = p.backward().out;
  backward.lse = p.lse.view();
  ASSERT_TRUE(ref::run(backward, {}));
  EXPECT_LE(error(p.dq, expected.dq), 6e-3);
  EXPECT_LE(error(p.dkv, expected.dkv), 4e-3);
}

TEST(CpuAttentionLimits, WorkspaceOfTheBackwardIsBounded) {
  const Problem p({64, 128, 576, 512, 4096, 1000});
  const int64_t bound = 2 * 4 * p.shape.rows * p.shape.width + (int64_t{64} << 20);
  for (int threads : {1, 2, 64, 1024}) {
    ExecContext ctx;
    ctx.num_threads = threads;
    EXPECT_LE(cpu::workspace_bytes(p.backward(), ctx), bound) << threads;
  }
}

TEST(CpuAttentionLimits, ProgressEndsAtOneAndCanCancel) {
  const Problem p({70, 4, 64, 64, 40, 500});
  ExecContext ctx;
  ctx.num_threads = 1;
  double last = -1;
  bool rising = true;
  ctx.progress = [&](double share) {
    rising = rising && share >= last;
    last = share;
    return true;
  };
  ASSERT_TRUE(run_cpu(p.forward(), ctx));
  EXPECT_TRUE(rising);
  EXPECT_DOUBLE_EQ(last, 1.0);
  last = -1;
  ASSERT_TRUE(run_cpu(p.backward(), ctx));
  EXPECT_TRUE(rising);
  EXPECT_DOUBLE_EQ(last, 1.0);
  ctx.progress = [](double) { return false; };
  EXPECT_EQ(run_cpu(p.forward(), ctx).error().code, ErrorCode::kCancelled);
  EXPECT_EQ(run_cpu(p.backward(), ctx).error().code, ErrorCode::kCancelled);
}

}  // namespace
}  // namespace dsattn
