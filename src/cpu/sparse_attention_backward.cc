// sparse_attention_backward on the CPU (contract section 2): chunks of queries, two phases each.
// attention_backward_plan.h has the idea, attention_backward_query.cc phase 1; here are phase 2 and
// the loop. Always deterministic: every sum has one order.
#include "cpu/attention_backward_query.h"
#include "cpu/cpu.h"

namespace dsattn::cpu {
namespace {

// fp32 sums of dkv: the output itself, or workspace that is rounded into it at the end.
struct Sums {
  float* data;
  int64_t ld;
};

template <class T>
class Backward {
 public:
  Backward(const SparseAttentionBackwardArgs& args, const ExecContext& ctx)
      : args_(args),
        ctx_(ctx),
        size_(args),
        plan_(backward_plan<T>(args, ctx)),
        gemm_(gemm_for(ctx.cpu_isa)),
        math_(attention_math<T>(ctx.cpu_isa)) {
    Carver carver(ctx.workspace);
    auto* own = carver.take<float>(plan_.sums_bytes / static_cast<int64_t>(sizeof(float)));
    sums_ = plan_.sums_bytes > 0 || args.dkv.dtype != DType::kF32
                ? Sums{own, size_.width}
                : Sums{args.dkv.ptr<float>(), args.dkv.stride(0)};
    chunk_ = carve_chunk<T>(size_, plan_, carver);
    scratch_ = carver.take<char>(plan_.threads * plan_.scratch_bytes);
  }

  bool run() {
    clear();
    for (int64_t t = 0; t < size_.queries; t += plan_.chunk_queries) {
      if (!run_chunk(t, std::min(plan_.chunk_queries, size_.queries - t))) return false;
    }
    store();
    return true;
  }

 private:
  using E = ProductType<T>;

  BackwardScratch<T> scratch(int thread) const {
    Carver carver(scratch_ + thread * plan_.scratch_bytes);
    return BackwardScratch<T>(size_, carver);
  }

  void clear() const {
    if (args_.d_sink.defined()) {
      float* d_sink = args_.d_sink.ptr<float>();
      for (int64_t h = 0; h < size_.heads; ++h) d_sink[h * args_.d_sink.stride(0)] = 0.0f;
    }
    for_rows([&](int64_t row) { std::fill_n(sums_.data + row * sums_.ld, size_.width, 0.0f); });
  }

  void store() const {
    if (args_.dkv.dtype == DType::kF32) return;
    for_rows([&](int64_t row) {
      math_.store_row(sums_.data + row * sums_.ld, size_.width, 1.0f,
                      args_.dkv.ptr<T>() + row * args_.dkv.stride(0));
    });
  }

  template <class Body>
  void for_rows(const Body& body) const {
    constexpr int64_t kGrain = 64;
    ExecContext silent;
    parallel_for(round_up(size_.rows, kGrain) / kGrain, plan_.threads, silent, 0, 1,
                 [&](int64_t item, int) {
                   const int64_t end = std::min(size_.rows, (item + 1) * kGrain);
                   for (int64_t row = item * kGrain; row < end; ++row) body(row);
                 });
  }

  bool run_chunk(int64_t first, int64_t count) {
    const QueryGradient<T> gradient(args_, ctx_, plan_, chunk_);
    for (int64_t i = 0; i < count; ++i) {
      chunk_.queries[i] = {SlotReader(args_, first + i, size_.rows), 0, false};
    }
    const double from = share(first);
    const double to = share(first + count);
    const double middle = from + (to - from) * 0.55;  // phase 1's part of the work
    // One pass, or for a query of its own as many segments as its slots need.
    for (int64_t slot = 0; slot < std::max<int64_t>(size_.slots, 1); slot += plan_.chunk_slots) {
      if (slot > 0 && chunk_.queries[0].slots.done()) break;
      if (!parallel_for(count, plan_.threads, ctx_, from, middle, [&](int64_t i, int thread) {
            gradient.segment(first + i, i, scratch(thread));
          })) {
        return false;
      }
      if (slot == 0) add_sink_terms(count);
      if (!add_columns(count, middle, to)) return false;
    }
    return true;
  }

  double share(int64_t query) const {
    return static_cast<double>(query) / static_cast<double>(size_.queries);
  }

  // In query order, on one thread.
  void add_sink_terms(int64_t count) {
    if (!args_.d_sink.defined()) return;
    for (int64_t h = 0; h < size_.heads; ++h) {
      double sum = 0;
      for (int64_t i = 0; i < count; ++i) sum += chunk_.sink_terms[i * size_.heads + h];
      d_sink(h) = static_cast<float>(d_sink(h) - sum);
    }
  }
  float& d_sink(int64_t h) const { return args_.d_sink.ptr<float>()[h * args_.d_sink.stride(0)]; }

  // Columns of a task: a slice of dkv that stays in the second-level cache where that is possible,
  // and tasks for every thread.
  int64_t columns_per_task() const {
    constexpr int64_t kSliceBytes = 3 << 19;
    const int64_t panels = size_.width_padded / kPanel;
    const int64_t panel_bytes = std::max<int64_t>(size_.rows, 1) * kPanel * 4;
    const int64_t cached = kSliceBytes / panel_bytes;
    const int64_t most = cached > 0 ? std::min<int64_t>(cached, 8) : 4;
    int64_t tasks = std::min(round_up((panels + most - 1) / most, plan_.threads), panels);
    return (panels + tasks - 1) / tasks * kPanel;
  }

  bool add_columns(int64_t count, double from, double to) const {
    const int64_t step = columns_per_task();
    const int64_t tasks = (size_.width_padded + step - 1) / step;
    return parallel_for(tasks, plan_.threads, ctx_, from, to, [&](int64_t task, int thread) {
      const BackwardScratch<T> s = scratch(thread);
      const int64_t end = std::min((task + 1) * step, size_.width_padded);
      for (int64_t i = 0; i < count; ++i) add_query(i, task * step, end, s.tile);
    });
  }

  // dkv[ids, begin..end) += dS^T q + P^T dout of one query.
  void add_query(int64_t i, int64_t begin, int64_t end, float* tile) const {
    const int64_t heads = size_.heads_padded;
    const int64_t slots = chunk_.queries[i].count;
    const int64_t middle = std::clamp(size_.value_padded, begin, end);
    const E* operand = chunk_.operands + i * operand_offset(size_, size_.width_padded);
    const E* rows = chunk_.rows + i * plan_.chunk_slots * 2 * heads;
    const int32_t* ids = chunk_.ids + i * plan_.chunk_slots;
    const int64_t ld = end - begin;
    for (int64_t j = 0; j < slots; j += kTileSlots) {
      const int64_t n = std::min(kTileSlots, slots - j);
      const int64_t n_padded = round_up(n, kRows);
      const E* a = rows + j * 2 * heads;
      gemm_(n_padded, middle - begin, 2 * heads, a, 2 * heads,
            operand + operand_offset(size_, begin), tile, ld, false);
      gemm_(n_padded, end - middle, heads, a, 2 * heads, operand + operand_offset(size_, middle),
            tile + (middle - begin), ld, false);
      math_.add_rows(tile, ld, ids + j, n, std::min(end, size_.width) - begin, sums_.data + begin,
                     sums_.ld);
    }
  }

  const SparseAttentionBackwardArgs& args_;
  const ExecContext& ctx_;
  AttentionSizes size_;
  BackwardPlan plan_;
  const Gemm& gemm_;
  const AttentionMath<T>& math_;
  Sums sums_{};
  Chunk<T> chunk_{};
  char* scratch_ = nullptr;
};

template <class T>
Result<void> run_as(const SparseAttentionBackwardArgs& args, const ExecContext& ctx) {
  if (Backward<T>(args, ctx).run()) return {};
  return fail(ErrorCode::kCancelled, "sparse_attention_backward was cancelled");
}

}  // namespace

int64_t workspace_bytes(const SparseAttentionBackwardArgs& args, const ExecContext& ctx) {
  return with_storage(args, [&]<class T>(T) { return backward_plan<T>(args, ctx).total_bytes(); });
}

Result<void> run(const SparseAttentionBackwardArgs& args, const ExecContext& ctx) {
  return with_storage(args, [&]<class T>(T) { return run_as<T>(args, ctx); });
}

}  // namespace dsattn::cpu
