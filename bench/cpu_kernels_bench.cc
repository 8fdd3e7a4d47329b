// How fast the CPU engine's attention is beside a plain matrix product on the same machine, in one
// run: forward and backward of a training shape, and a 2048^3 bf16 product by our own kernels and,
// if the build found it, by oneDNN. Prints one JSON object; rates are medians.
#include <omp.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <functional>
#include <random>
#include <vector>

#include "base/owned_tensor.h"
#include "cpu/gemm.h"
#include "dsattn/ops.h"

#if defined(DSATTN_HAVE_ONEDNN)
#include <oneapi/dnnl/dnnl.hpp>
#endif

namespace dsattn {
namespace {

constexpr int64_t kQueries = 256, kHeads = 64, kWidth = 576, kValueWidth = 512, kSlots = 512;
constexpr int64_t kKeyRows = 4096;
constexpr int64_t kSide = 2048;  // of the square matrices

struct Rate {
  double median_gflops;
  double best_gflops;
};

Rate measure(double flops, int repeats, const std::function<void()>& body) {
  body();  // warm-up: pages, threads, clocks
  std::vector<double> rates;
  for (int i = 0; i < repeats; ++i) {
    const auto start = std::chrono::steady_clock::now();
    body();
    const std::chrono::duration<double> elapsed = std::chrono::steady_clock::now() - start;
    rates.push_back(flops / elapsed.count() * 1e-9);
  }
  std::sort(rates.begin(), rates.end());
  return {rates[rates.size() / 2], rates.back()};
}

void require(bool good, const std::string& message) {
  if (good) return;
  std::fprintf(stderr, "%s\n", message.c_str());
  std::exit(3);
}

OwnedTensor zeros(DType dtype, std::initializer_list<int64_t> shape) {
  auto tensor = OwnedTensor::make(dtype, std::span(shape.begin(), shape.size()));
  require(tensor.has_value(), "not enough memory");
  return *tensor;
}

OwnedTensor normal(std::initializer_list<int64_t> shape, uint32_t seed) {
  OwnedTensor tensor = zeros(DType::kBF16, shape);
  std::mt19937 random(seed);
  std::normal_distribution<float> distribution;
  for (bf16& x : tensor.elements<bf16>()) x = to_bf16(distribution(random));
  return tensor;
}

// The tensors of one forward and backward.
struct Attention {
  OwnedTensor q = normal({kQueries, kHeads, kWidth}, 1);
  OwnedTensor kv = normal({kKeyRows, kWidth}, 2);
  OwnedTensor dout = normal({kQueries, kHeads, kValueWidth}, 3);
  OwnedTensor ids = zeros(DType::kI32, {kQueries, kSlots});
  OwnedTensor out = zeros(DType::kBF16, {kQueries, kHeads, kValueWidth});
  OwnedTensor lse = zeros(DType::kF32, {kQueries, kHeads});
  OwnedTensor dq = zeros(DType::kBF16, {kQueries, kHeads, kWidth});
  OwnedTensor dkv = zeros(DType::kBF16, {kKeyRows, kWidth});

  Attention() {
    std::mt19937 random(4);
    for (int64_t t = 0; t < kQueries; ++t) {  // distinct rows in ascending order, as top-k gives
      auto row = ids.elements<int32_t>().subspan(static_cast<size_t>(t * kSlots), kSlots);
      int64_t taken = 0;
      for (int64_t s = 0; s < kKeyRows && taken < kSlots; ++s) {
        const auto left = static_cast<uint32_t>(kKeyRows - s);
        if (random() % left < static_cast<uint32_t>(kSlots - taken)) {
          row[static_cast<size_t>(taken++)] = static_cast<int32_t>(s);
        }
      }
    }
  }

  SparseAttentionForwardArgs forward() const {
    SparseAttentionForwardArgs args;
    args.q = q.view();
    args.kv = kv.view();
    args.topk_idxs = ids.view();
    args.out = out.view();
    args.lse = lse.view();
    return args;
  }
  SparseAttentionBackwardArgs backward() const {
    SparseAttentionBackwardArgs args;
    args.q = q.view();
    args.kv = kv.view();
    args.topk_idxs = ids.view();
    args.out = out.view();
    args.dout = dout.view();
    args.lse = lse.view();
    args.dq = dq.view();
    args.dkv = dkv.view();
    return args;
  }
};

// Runs an operation with its workspace, allocated once.
template <class Args, class Op>
Rate measure_op(double flops, int repeats, ExecContext ctx, const Args& args,
                Result<int64_t> workspace, const Op& op) {
  require(workspace.has_value(), workspace ? "" : workspace.error().message);
  OwnedTensor memory = zeros(DType::kF32, {(*workspace + 3) / 4});
  ctx.workspace = memory.bytes().data();
  ctx.workspace_bytes = *workspace;
  return measure(flops, repeats, [&] {
    const Result<void> done = op(args, ctx);
    require(done.has_value(), done ? "" : done.error().message);
  });
}

// The product by the engine's kernels, blocked as it suits them: operands packed beforehand, depth
// in blocks whose panels stay in the first-level cache, rows that do not alias in it.
Rate measure_product(int repeats, int threads, CpuIsa isa) {
  constexpr int64_t kBlock = 256, kBlockDepth = 512;
  constexpr int64_t kStrideA = kSide + 32, kStrideC = kSide + 16;
  const OwnedTensor a = normal({kSide, kStrideA}, 5);
  const OwnedTensor b = normal({kSide, kSide}, 6);  // [kSide / kBlockDepth] packed operands
  OwnedTensor c = zeros(DType::kF32, {kSide, kStrideC});
  const cpu::Gemm& gemm = cpu::gemm_for(isa);
  const bf16* a_data = a.elements<bf16>().data();
  const bf16* b_data = b.elements<bf16>().data();
  float* c_data = c.elements<float>().data();
  return measure(2.0 * kSide * kSide * kSide, repeats, [&] {
#pragma omp parallel for collapse(2) schedule(dynamic, 1) num_threads(threads)
    for (int64_t row = 0; row < kSide; row += kBlock) {
      for (int64_t column = 0; column < kSide; column += kBlock) {
        for (int64_t k = 0; k < kSide; k += kBlockDepth) {
          gemm(kBlock, kBlock, kBlockDepth, a_data + row * kStrideA + k, kStrideA,
               b_data + k * kSide + column * kBlockDepth, c_data + row * kStrideC + column,
               kStrideC, k > 0);
        }
      }
    }
  });
}

#if defined(DSATTN_HAVE_ONEDNN)
Rate measure_onednn(int repeats) {
  using dnnl::memory;
  dnnl::engine engine(dnnl::engine::kind::cpu, 0);
  dnnl::stream stream(engine);
  const memory::dims shape = {kSide, kSide};
  const auto layout = memory::format_tag::ab;
  const memory::desc in(shape, memory::data_type::bf16, layout);
  const memory::desc out(shape, memory::data_type::f32, layout);
  OwnedTensor a = normal({kSide, kSide}, 5);
  OwnedTensor b = normal({kSide, kSide}, 6);
  memory a_memory(in, engine, a.bytes().data());
  memory b_memory(in, engine, b.bytes().data());
  memory c_memory(out, engine);
  const dnnl::matmul::primitive_desc description({in, in, out}, engine);
  dnnl::matmul product(description);
  return measure(2.0 * kSide * kSide * kSide, repeats, [&] {
    product.execute(
        stream, {{DNNL_ARG_SRC, a_memory}, {DNNL_ARG_WEIGHTS, b_memory}, {DNNL_ARG_DST, c_memory}});
    stream.wait();
  });
}
#endif

void print(const char* name, Rate rate, double reference) {
  std::printf("  \"%s\": {\"median_gflops\": %.1f, \"best_gflops\": %.1f, \"of_product\": %.3f},\n",
              name, rate.median_gflops, rate.best_gflops, rate.median_gflops / reference);
}

int run(int argc, char** argv) {
  CLI::App app("CPU attention beside a matrix product");
  int threads = omp_get_max_threads();
  int repeats = 15;
  app.add_option("--threads", threads, "threads")->check(CLI::Range(1, 1024));
  app.add_option("--repeats", repeats, "measurements of each")->check(CLI::Range(1, 1000));
  CLI11_PARSE(app, argc, argv);
  omp_set_num_threads(threads);

  ExecContext ctx;
  ctx.backend = Backend::kCpu;
  ctx.num_threads = threads;
  const double unit = 2.0 * kQueries * kHeads * kSlots;
  const Attention data;
  const Rate product = measure_product(repeats, threads, ctx.cpu_isa);
  const Rate forward =
      measure_op(unit * (kWidth + kValueWidth), repeats, ctx, data.forward(),
                 sparse_attention_forward_workspace(data.forward(), ctx), sparse_attention_forward);
  const Rate backward = measure_op(
      unit * (3 * kWidth + 2 * kValueWidth), repeats, ctx, data.backward(),
      sparse_attention_backward_workspace(data.backward(), ctx), sparse_attention_backward);
  std::printf("{\n  \"shape\": \"Sq=256 H=64 D=576 Dv=512 K=512 Skv=4096 bf16\",\n");
  print("product_2048", product, product.median_gflops);
#if defined(DSATTN_HAVE_ONEDNN)
  print("product_2048_onednn", measure_onednn(repeats), product.median_gflops);
#endif
  print("sparse_attention_forward", forward, product.median_gflops);
  print("sparse_attention_backward", backward, product.median_gflops);
  std::printf("  \"threads\": %d,\n  \"isa\": \"%s\"\n}\n", threads,
              std::string(to_string(cpu::gemm_for(ctx.cpu_isa).isa)).c_str());
  return 0;
}

}  // namespace
}  // namespace dsattn

int main(int argc, char** argv) { return dsattn::run(argc, argv); }
