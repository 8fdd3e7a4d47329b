// sparse_attention_forward on the CPU (contract section 1). One query at a time: gather a block of
// its key rows, S^T = KV Q^T, a running softmax down the slots, out += P V. Keys and values come
// from the same gathered rows.
#include "cpu/attention_common.h"
#include "cpu/cpu.h"

namespace dsattn::cpu {
namespace {

constexpr float kInf = std::numeric_limits<float>::infinity();

// Scratch of one thread.
template <class T>
struct Scratch {
  using E = ProductType<T>;
  E* q;             // [Hp, Dp]
  E* q_packed;      // B [Dp, Hp]
  E* keys;          // [block, Dp]
  E* values;        // B [block, Dvp]
  float* scores;    // [block, Hp]
  uint32_t* words;  // weights as softmax_block leaves them
  E* weights;       // [Hp, block]
  float* sums;      // [Hp, Dvp]
  float* max;       // [Hp]
  float* sum;       // [Hp]
  float* rescale;   // [Hp]
  int32_t* ids;     // [block]

  Scratch(const AttentionSizes& size, Carver& carver) {
    q = carver.take<E>(size.heads_padded * size.width_padded);
    q_packed = carver.take<E>(size.heads_padded * size.width_padded);
    keys = carver.take<E>(kSlotBlock * size.width_padded);
    values = carver.take<E>(kSlotBlock * size.value_padded);
    scores = carver.take<float>(kSlotBlock * size.heads_padded);
    words = carver.take<uint32_t>(kSlotBlock * size.heads_padded);
    weights = carver.take<E>(kSlotBlock * size.heads_padded);
    sums = carver.take<float>(size.heads_padded * size.value_padded);
    max = carver.take<float>(size.heads_padded);
    sum = carver.take<float>(size.heads_padded);
    rescale = carver.take<float>(size.heads_padded);
    ids = carver.take<int32_t>(kSlotBlock);
  }
};

template <class T>
class Forward {
 public:
  Forward(const SparseAttentionForwardArgs& args, const ExecContext& ctx)
      : args_(args),
        size_(args),
        gemm_(gemm_for(ctx.cpu_isa)),
        math_(attention_math<T>(ctx.cpu_isa)),
        scale_(softmax_scale_of(args)) {}

  void query(int64_t t, const Scratch<T>& s) const {
    load_heads(math_, args_.q, t, size_.heads, size_.heads_padded, s.q, size_.width_padded);
    pack_transposed(math_, s.q, size_.heads_padded, size_.width_padded, s.q_packed);
    std::fill_n(s.max, size_.heads_padded, -kInf);
    std::fill_n(s.sum, size_.heads_padded, 0.0f);
    SlotReader slots(args_, t, size_.rows);
    bool any = false;
    while (const int64_t n = slots.take(kSlotBlock, s.ids)) {
      add_block(n, any, s);
      any = true;
    }
    for (int64_t h = 0; h < size_.heads; ++h) finish(t, h, any, s);
  }

 private:
  using E = ProductType<T>;

  void add_block(int64_t n, bool accumulate, const Scratch<T>& s) const {
    const int64_t n_padded = round_up(n, kDepth);
    const int64_t heads = size_.heads_padded;
    const int64_t width = size_.width_padded;
    const int64_t values = size_.value_padded;
    gather_rows(math_, args_.kv, s.ids, n, n_padded, s.keys, width);
    gemm_(n_padded, heads, width, s.keys, width, s.q_packed, s.scores, heads, false);
    math_.softmax_block(s.scores, n, n_padded, heads, scale_, s.max, s.sum, s.rescale, s.words);
    words_to_rows(math_, s.words, n_padded, heads, s.weights);
    math_.pack_rows(s.keys, width, n_padded, values, s.values, n_padded);
    for (int64_t h = 0; accumulate && h < size_.heads; ++h) {
      if (s.rescale[h] != 1.0f) math_.scale_row(s.sums + h * values, values, s.rescale[h]);
    }
    gemm_(heads, values, n_padded, s.weights, n_padded, s.values, s.sums, values, accumulate);
  }

  void finish(int64_t t, int64_t h, bool any, const Scratch<T>& s) const {
    T* out = row_of<T>(args_.out, t, h);
    float* lse = args_.lse.ptr<float>() + t * args_.lse.stride(0) + h;
    float* max = args_.max_logits.ptr<float>() +
                 (args_.max_logits.defined() ? t * args_.max_logits.stride(0) + h : 0);
    if (!any) {
      std::fill_n(out, size_.value_width, T{});
      *lse = kInf;
      if (args_.max_logits.defined()) *max = -kInf;
      return;
    }
    const double largest = s.max[h];
    const double sum = s.sum[h];
    const bool infinite = std::isinf(largest);
    *lse = static_cast<float>(infinite ? largest : largest + std::log(sum));
    if (args_.max_logits.defined()) *max = s.max[h];
    // The weights are relative to exp(largest), or to 1 if every score is -inf.
    const double shift = infinite && largest < 0 ? 0.0 : largest;
    const double sink = sink_of(args_.sink, h);
    const double weight = sink == -static_cast<double>(kInf) ? 0.0 : std::exp(sink - shift);
    math_.store_row(s.sums + h * size_.value_padded, size_.value_width,
                    static_cast<float>(1.0 / (sum + weight)), out);
  }

  const SparseAttentionForwardArgs& args_;
  AttentionSizes size_;
  const Gemm& gemm_;
  const AttentionMath<T>& math_;
  float scale_;
};

template <class T>
int64_t scratch_bytes(const AttentionSizes& size) {
  Carver carver(nullptr);
  Scratch<T>(size, carver);
  return carver.used();
}

int64_t threads_for(const AttentionSizes& size, const ExecContext& ctx) {
  return std::clamp<int64_t>(size.queries, 1, thread_count(ctx));
}

template <class T>
Result<void> run_as(const SparseAttentionForwardArgs& args, const ExecContext& ctx) {
  const AttentionSizes size(args);
  const int64_t bytes = scratch_bytes<T>(size);
  const Forward<T> forward(args, ctx);
  const auto threads = static_cast<int>(threads_for(size, ctx));
  const bool done = parallel_for(size.queries, threads, ctx, 0, 1, [&](int64_t t, int thread) {
    Carver carver(static_cast<char*>(ctx.workspace) + thread * bytes);
    forward.query(t, Scratch<T>(size, carver));
  });
  if (!done) return fail(ErrorCode::kCancelled, "sparse_attention_forward was cancelled");
  return {};
}

}  // namespace

int64_t workspace_bytes(const SparseAttentionForwardArgs& args, const ExecContext& ctx) {
  const AttentionSizes size(args);
  return with_storage(args,
                      [&]<class T>(T) { return threads_for(size, ctx) * scratch_bytes<T>(size); });
}

Result<void> run(const SparseAttentionForwardArgs& args, const ExecContext& ctx) {
  return with_storage(args, [&]<class T>(T) { return run_as<T>(args, ctx); });
}

}  // namespace dsattn::cpu
