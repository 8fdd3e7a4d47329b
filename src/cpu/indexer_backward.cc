// indexer_backward, dense_indexer_backward and the two streaming losses on the CPU (contract
// section 6). They differ in where predict and target come from; the rest is index_gradient.h.
#include "cpu/attention_target.h"
#include "cpu/cpu.h"
#include "cpu/index_gradient.h"

namespace dsattn::cpu {
namespace {

template <class Args>
constexpr bool kIsLoss =
    std::is_same_v<Args, SparseIndexerLossArgs> || std::is_same_v<Args, DenseIndexerLossArgs>;

struct NoTarget {};

// Scratch of one thread. T: storage of q and kv; unused where target is given.
template <class Args, class T>
struct Scratch {
  RowKeys keys;
  float* scores;
  float* predict;
  float* target;
  IndexGradient gradient;
  std::conditional_t<kIsLoss<Args>, AttentionTarget<T>, NoTarget> attention;

  Scratch(const Args& args, const ExecContext& ctx, Carver& carver)
      : keys(capacity(args) + 1, carver),
        scores(carver.take<float>(padded_row(capacity(args)))),
        predict(carver.take<float>(padded_row(capacity(args)))),
        target(carver.take<float>(padded_row(capacity(args)))),
        gradient(args, args, ctx.cpu_isa, carver),
        attention(make_attention(args, ctx, carver)) {}

  static int64_t capacity(const Args& args) { return row_capacity(args, args.index_k.size(0)); }

 private:
  static auto make_attention(const Args& args, const ExecContext& ctx, Carver& carver) {
    if constexpr (kIsLoss<Args>) {
      return AttentionTarget<T>(args, args.lse, args.sink, ctx.cpu_isa, carver);
    } else {
      return NoTarget{};
    }
  }
};

template <class Args, class T>
class Backward {
 public:
  Backward(const Args& args, const ExecContext& ctx, void* workspace)
      : args_(args),
        ctx_(ctx),
        queries_(args.index_q.size(0)),
        key_count_(args.index_k.size(0)),
        carver_(workspace),
        buffer_(Scratch<Args, T>::capacity(args), queries_, key_count_, carver_) {
    Carver counter(nullptr);
    Scratch<Args, T>(args, ctx, counter);
    scratch_bytes_ = counter.used();
    const auto threads = std::clamp<int64_t>(buffer_.queries, 1, thread_count(ctx));
    threads_ = static_cast<int>(threads);
    scratch_ = carver_.template take<char>(threads * scratch_bytes_);
  }

  int64_t bytes() const { return carver_.used(); }

  bool run() {
    const RowReader reader(args_, queries_, key_count_);
    const double factor = gradient_factor(args_, args_);
    std::fill_n(buffer_.sums, key_count_ * kIndexDim, 0.0f);
    double loss = 0;
    for (int64_t first = 0; first < queries_; first += buffer_.queries) {
      const int64_t count = std::min(buffer_.queries, queries_ - first);
      const auto share = [&](int64_t done) {
        return static_cast<double>(done) / static_cast<double>(queries_);
      };
      const bool done = parallel_for(count, threads_, ctx_, share(first), share(first + count),
                                     [&](int64_t i, int thread) {
                                       Carver carver(scratch_ + thread * scratch_bytes_);
                                       Scratch<Args, T> scratch(args_, ctx_, carver);
                                       reader.load(first + i, scratch.keys);
                                       query(first + i, i, factor, scratch);
                                     });
      if (!done) return false;
      add_key_rows(buffer_, count, key_count_, thread_count(ctx_));
      for (int64_t i = 0; i < count; ++i) loss += buffer_.losses[i];
    }
    store_key_sums(buffer_, args_.d_index_k);
    if constexpr (kIsLoss<Args>) {
      *args_.loss.template ptr<float>() = static_cast<float>(loss_factor(args_, args_) * loss);
    }
    return true;
  }

 private:
  void query(int64_t t, int64_t i, double factor, Scratch<Args, T>& s) {
    const int64_t n = s.keys.n;
    s.gradient.score(t, s.keys, s.scores);
    if constexpr (kIsLoss<Args>) {
      const double log_sum = softmax_row(index_math(ctx_.cpu_isa), s.scores, n, s.predict);
      s.attention.run(t, s.keys, s.target);
      buffer_.losses[i] = row_loss(s.scores, log_sum, s.target, n, args_.clipped);
    } else {
      gather_row(s.keys, args_.predict, t, s.predict);
      gather_row(s.keys, args_.target, t, s.target);
      buffer_.losses[i] = 0;
    }
    score_gradient(s.predict, s.target, n, args_.clipped, factor, s.predict);
    buffer_.counts[i] = n;
    std::copy_n(s.keys.ids, n, buffer_.ids + i * buffer_.capacity);
    s.gradient.backward(t, s.keys, s.predict, buffer_.rows + i * buffer_.capacity * kIndexDim);
  }

  const Args& args_;
  const ExecContext& ctx_;
  int64_t queries_;
  int64_t key_count_;
  Carver carver_;
  KeyRowBuffer buffer_;
  int64_t scratch_bytes_ = 0;
  int threads_ = 1;
  char* scratch_ = nullptr;
};

/// Calls f with the Backward for the call's storage type.
template <class Args, class F>
auto with_backward(const Args& args, const ExecContext& ctx, void* workspace, const F& f) {
  if constexpr (kIsLoss<Args>) {
    if (args.q.dtype == DType::kF16) {
      Backward<Args, f16> backward(args, ctx, workspace);
      return f(backward);
    }
  }
  Backward<Args, bf16> backward(args, ctx, workspace);
  return f(backward);
}

template <class Args>
int64_t bytes_of(const Args& args, const ExecContext& ctx) {
  return with_backward(args, ctx, nullptr, [](const auto& backward) { return backward.bytes(); });
}

template <class Args>
Result<void> run_backward(const Args& args, const ExecContext& ctx, const char* name) {
  if (with_backward(args, ctx, ctx.workspace, [](auto& backward) { return backward.run(); })) {
    return {};
  }
  return fail(ErrorCode::kCancelled, std::string(name) + " was cancelled");
}

}  // namespace

int64_t workspace_bytes(const IndexerBackwardArgs& args, const ExecContext& ctx) {
  return bytes_of(args, ctx);
}
int64_t workspace_bytes(const DenseIndexerBackwardArgs& args, const ExecContext& ctx) {
  return bytes_of(args, ctx);
}
int64_t workspace_bytes(const SparseIndexerLossArgs& args, const ExecContext& ctx) {
  return bytes_of(args, ctx);
}
int64_t workspace_bytes(const DenseIndexerLossArgs& args, const ExecContext& ctx) {
  return bytes_of(args, ctx);
}

Result<void> run(const IndexerBackwardArgs& args, const ExecContext& ctx) {
  return run_backward(args, ctx, "indexer_backward");
}
Result<void> run(const DenseIndexerBackwardArgs& args, const ExecContext& ctx) {
  return run_backward(args, ctx, "dense_indexer_backward");
}
Result<void> run(const SparseIndexerLossArgs& args, const ExecContext& ctx) {
  return run_backward(args, ctx, "sparse_indexer_loss");
}
Result<void> run(const DenseIndexerLossArgs& args, const ExecContext& ctx) {
  return run_backward(args, ctx, "dense_indexer_loss");
}

}  // namespace dsattn::cpu
