// What the two directions of sparse attention share: sizes, the valid slots of a query, scratch
// memory, and the reading of rows.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>

#include "cpu/attention_math.h"
#include "cpu/gemm.h"
#include "cpu/parallel.h"
#include "dsattn/ops.h"

namespace dsattn::cpu {

inline constexpr int64_t kSlotBlock = 256;  ///< slots whose rows are gathered at a time

constexpr int64_t round_up(int64_t n, int64_t multiple) {
  return (n + multiple - 1) / multiple * multiple;
}

struct AttentionSizes {
  int64_t queries, heads, slots, rows;  // Sq, H, K, Skv
  int64_t width, value_width;           // D, Dv
  int64_t heads_padded, width_padded, value_padded;

  template <class Args>
  explicit AttentionSizes(const Args& args)
      : queries(args.q.size(0)),
        heads(args.q.size(1)),
        slots(args.topk_idxs.size(1)),
        rows(args.kv.size(0)),
        width(args.q.size(2)),
        value_width(args.out.size(2)),
        heads_padded(round_up(std::max<int64_t>(heads, 1), kPanel)),
        width_padded(round_up(width, kDepth)),
        value_padded(round_up(value_width, kDepth)) {}
};

inline float softmax_scale_of(const AttentionInputs& args) {
  const auto width = static_cast<double>(args.q.size(2));
  return args.softmax_scale.value_or(static_cast<float>(1.0 / std::sqrt(width)));
}

inline float sink_of(const TensorView& sink, int64_t h) {
  if (!sink.defined()) return -std::numeric_limits<float>::infinity();
  return sink.ptr<const float>()[h * sink.stride(0)];
}

/// Calls f with a value of the type that a call's storage is computed as.
template <class Args, class F>
auto with_storage(const Args& args, const F& f) {
  constexpr int64_t kNarrow = 16;  // columns, below which bf16 weights miss the contract's bound
  if (args.q.dtype == DType::kF16) return f(f16{});
  if (std::min(args.q.size(2), args.out.size(2)) < kNarrow) return f(narrow_bf16{});
  return f(bf16{});
}

/// Row (t, h) of a [Sq, H, ...] tensor.
template <class T>
T* row_of(const TensorView& view, int64_t t, int64_t h) {
  return view.ptr<T>() + t * view.stride(0) + h * view.stride(1);
}

/// Hands out the ids of a query's valid slots in slot order.
class SlotReader {
 public:
  SlotReader() = default;
  SlotReader(const SparseSelection& selection, int64_t t, int64_t rows) : rows_(rows) {
    int64_t length = selection.topk_idxs.size(1);
    if (selection.topk_length.defined()) {
      const auto& lengths = selection.topk_length;
      length = std::clamp<int64_t>(lengths.ptr<const int32_t>()[t * lengths.stride(0)], 0, length);
    }
    next_ = selection.topk_idxs.ptr<const int32_t>() + t * selection.topk_idxs.stride(0);
    end_ = next_ + length;
  }

  /// Writes up to `limit` ids; fewer only if no more are left.
  int64_t take(int64_t limit, int32_t* ids) {
    int64_t n = 0;
    for (; next_ != end_ && n < limit; ++next_) {
      ids[n] = *next_;
      n += *next_ >= 0 && *next_ < rows_ ? 1 : 0;
    }
    return n;
  }
  bool done() const { return next_ == end_; }

 private:
  const int32_t* next_ = nullptr;
  const int32_t* end_ = nullptr;
  int64_t rows_ = 0;
};

/// Carves 64-byte aligned arrays out of scratch memory; from nullptr it only counts.
class Carver {
 public:
  explicit Carver(void* memory) : memory_(static_cast<char*>(memory)) {}

  template <class T>
  T* take(int64_t count) {
    const int64_t at = used_;
    used_ += round_up(count * static_cast<int64_t>(sizeof(T)), 64);
    return memory_ == nullptr ? nullptr : reinterpret_cast<T*>(memory_ + at);
  }
  int64_t used() const { return used_; }

 private:
  char* memory_;
  int64_t used_ = 0;
};

/// Copies the rows of one query's heads to [heads_padded, padded], zeros where there is none.
template <class T>
void load_heads(const AttentionMath<T>& math, const TensorView& view, int64_t t, int64_t heads,
                int64_t heads_padded, ProductType<T>* to, int64_t padded) {
  for (int64_t h = 0; h < heads; ++h) {
    math.load_row(row_of<const T>(view, t, h), view.size(2), to + h * padded, padded);
  }
  std::fill(to + heads * padded, to + heads_padded * padded, ProductType<T>{});
}

/// Asks for n elements to be brought into the cache.
template <class T>
void prefetch(const T* from, int64_t n) {
  constexpr int64_t kLine = 64 / static_cast<int64_t>(sizeof(T));
  for (int64_t i = 0; i < n; i += kLine) __builtin_prefetch(from + i);
}

/// Gathers rows of kv to [n_padded, padded]; the rows past n are zeros, never loaded.
template <class T>
void gather_rows(const AttentionMath<T>& math, const TensorView& kv, const int32_t* ids, int64_t n,
                 int64_t n_padded, ProductType<T>* to, int64_t padded) {
  // Selected rows lie scattered in a cache that takes long to answer: ask for them early.
  constexpr int64_t kAhead = 4;
  const T* rows = kv.ptr<const T>();
  for (int64_t j = 0; j < n; ++j) {
    if (j + kAhead < n) prefetch(rows + ids[j + kAhead] * kv.stride(0), kv.size(1));
    math.load_row(rows + ids[j] * kv.stride(0), kv.size(1), to + j * padded, padded);
  }
  std::fill(to + n * padded, to + n_padded * padded, ProductType<T>{});
}

/// B operand [depth = padded, n = heads_padded] of rows [heads_padded, padded]: their transpose.
template <class T>
void pack_transposed(const AttentionMath<T>& math, const ProductType<T>* rows, int64_t heads_padded,
                     int64_t padded, ProductType<T>* to) {
  const int64_t words = padded * static_cast<int64_t>(sizeof(ProductType<T>)) / 4;
  const auto* from = reinterpret_cast<const uint32_t*>(rows);
  auto* packed = reinterpret_cast<uint32_t*>(to);
  for (int64_t h = 0; h < heads_padded; h += kPanel) {
    math.transpose(from + h * words, words, kPanel, words, packed + h * words, kPanel);
  }
}

/// A operand [heads_padded, n_padded] of the words that softmax_block and gradient_block write.
template <class T>
void words_to_rows(const AttentionMath<T>& math, const uint32_t* words, int64_t n_padded,
                   int64_t heads_padded, ProductType<T>* rows) {
  const int64_t per_head = n_padded * static_cast<int64_t>(sizeof(ProductType<T>)) / 4;
  math.transpose(words, heads_padded, per_head, heads_padded, reinterpret_cast<uint32_t*>(rows),
                 per_head);
}

}  // namespace dsattn::cpu
