#include "cpu/index_gradient.h"

namespace dsattn::cpu {
namespace {

constexpr int64_t kBufferBytes = int64_t{32} << 20;
constexpr int64_t kMaxChunk = 256;
constexpr int64_t kRanges = 32;      // of keys, in phase 2
const float kClip = 3.7835059e-44f;  // e^-100, subnormal

}  // namespace

IndexGradient::IndexGradient(const IndexerInputs& inputs, const IndexerGradients& gradients,
                             CpuIsa limit, Carver& carver)
    : inputs_(inputs),
      gradients_(gradients),
      gemm_(gemm_for(limit)),
      math_(attention_math<bf16>(limit)),
      index_(index_math(limit)),
      block_(carver),
      query_(inputs, limit, carver),
      query_packed_(carver.take<bf16>(query_.heads_padded() * kIndexDim)),
      keys_packed_(carver.take<bf16>(kKeyBlock * kIndexDim)),
      a_(carver.take<bf16>(query_.heads_padded() * kKeyBlock)),
      a_transposed_(carver.take<bf16>(query_.heads_padded() * kKeyBlock)),
      a_words_(carver.take<uint32_t>(query_.heads_padded() / 2 * kKeyBlock)),
      dq_(carver.take<float>(query_.heads_padded() * kIndexDim)),
      dw_(carver.take<double>(query_.heads_padded())) {}

void IndexGradient::score(int64_t t, const RowKeys& row, float* scores) {
  query_.load(t);
  score_row(math_, inputs_.index_k, row, block_, query_, scores);
}

void IndexGradient::backward(int64_t t, const RowKeys& row, const float* x, float* key_rows) {
  const int64_t heads = query_.heads_padded();
  math_.pack_rows(query_.rows(), kIndexDim, heads, kIndexDim, query_packed_, heads);
  std::fill_n(dq_, heads * kIndexDim, 0.0f);
  std::fill_n(dw_, heads, 0.0);
  float scores[kKeyBlock];
  for (int64_t first = 0; first < row.n; first += kKeyBlock) {
    block_.gather(math_, inputs_.index_k, row.ids + first, std::min(kKeyBlock, row.n - first));
    const int64_t n = block_.padded;
    query_.score(block_, scores);
    index_.gradient_block(query_.products(), kKeyBlock, x + first, query_.weights(), query_.heads(),
                          heads, n, dw_, a_, a_words_);
    math_.pack_rows(block_.rows, kIndexDim, n, kIndexDim, keys_packed_, n);
    gemm_(heads, kIndexDim, n, a_, n, keys_packed_, dq_, kIndexDim, true);
    math_.transpose(a_words_, n, heads / 2, n, reinterpret_cast<uint32_t*>(a_transposed_),
                    heads / 2);
    gemm_(n, kIndexDim, heads, a_transposed_, heads, query_packed_, key_rows + first * kIndexDim,
          kIndexDim, false);
  }
  for (int64_t h = 0; h < query_.heads(); ++h) {
    math_.store_row(dq_ + h * kIndexDim, kIndexDim, 1.0f, row_of<bf16>(gradients_.d_index_q, t, h));
    *row_of<float>(gradients_.d_index_w, t, h) = static_cast<float>(dw_[h]);
  }
}

KeyRowBuffer::KeyRowBuffer(int64_t row_capacity, int64_t all_queries, int64_t keys, Carver& carver)
    : capacity(std::max<int64_t>(padded_row(row_capacity), kKeyBlock)) {
  const int64_t query_bytes = capacity * kIndexDim * static_cast<int64_t>(sizeof(float));
  const int64_t sum_bytes = keys * kIndexDim * static_cast<int64_t>(sizeof(float));
  queries = std::clamp<int64_t>((kBufferBytes + sum_bytes / 2) / query_bytes, 1,
                                std::clamp<int64_t>(all_queries, 1, kMaxChunk));
  rows = carver.take<float>(queries * capacity * kIndexDim);
  ids = carver.take<int32_t>(queries * capacity);
  counts = carver.take<int64_t>(queries);
  losses = carver.take<double>(queries);
  sums = carver.take<float>(keys * kIndexDim);
}

void add_key_rows(const KeyRowBuffer& buffer, int64_t queries, int64_t keys, int threads) {
  const int64_t range = (keys + kRanges - 1) / kRanges;
  parallel_for(kRanges, threads, ExecContext{}, 0, 1, [&](int64_t item, int) {
    const int64_t from = item * range;
    const int64_t to = std::min(from + range, keys);
    for (int64_t i = 0; i < queries * buffer.capacity; ++i) {
      const int64_t within = i % buffer.capacity;
      const int64_t count = buffer.counts[i / buffer.capacity];
      if (within >= count) {
        i += buffer.capacity - within - 1;
        continue;
      }
      const int64_t id = buffer.ids[i];
      if (id < from || id >= to) continue;
      float* sum = buffer.sums + id * kIndexDim;
      const float* row = buffer.rows + i * kIndexDim;
      for (int64_t c = 0; c < kIndexDim; ++c) sum[c] += row[c];
    }
  });
}

void store_key_sums(const KeyRowBuffer& buffer, const TensorView& d_index_k) {
  for (int64_t s = 0; s < d_index_k.size(0); ++s) {
    const float* sum = buffer.sums + s * kIndexDim;
    if (d_index_k.dtype == DType::kF32) {
      std::copy_n(sum, kIndexDim, d_index_k.ptr<float>() + s * d_index_k.stride(0));
      continue;
    }
    bf16* to = d_index_k.ptr<bf16>() + s * d_index_k.stride(0);
    for (int64_t c = 0; c < kIndexDim; ++c) to[c] = to_bf16(sum[c]);
  }
}

void score_gradient(const float* predict, const float* target, int64_t n, bool clipped,
                    double factor, float* x) {
  const auto counted = [&](int64_t i) {
    if (!clipped) return static_cast<double>(target[i]);
    return predict[i] >= kClip ? static_cast<double>(std::max(target[i], kClip)) : 0.0;
  };
  double sum = 0;
  for (int64_t i = 0; i < n; ++i) sum += counted(i);
  for (int64_t i = 0; i < n; ++i) {
    x[i] = static_cast<float>(factor * (static_cast<double>(predict[i]) * sum - counted(i)));
  }
  std::fill(x + n, x + padded_row(n), 0.0f);
}

double row_loss(const float* scores, double log_sum, const float* target, int64_t n, bool clipped) {
  constexpr double kLogClip = -100.0;
  double loss = 0;
  for (int64_t i = 0; i < n; ++i) {
    double log_predict = static_cast<double>(scores[i]) - log_sum;
    double mass = target[i];
    if (clipped) {
      log_predict = std::max(log_predict, kLogClip);
      mass = std::max(mass, std::exp(kLogClip));
    }
    if (mass != 0) loss += mass * (std::log(mass) - log_predict);
  }
  return loss;
}

double loss_factor(const IndexerInputs& inputs, const IndexerGradients& gradients) {
  const int64_t tokens = gradients.num_tokens > 0 ? gradients.num_tokens : inputs.index_q.size(0);
  return static_cast<double>(gradients.loss_coeff) /
         static_cast<double>(std::max<int64_t>(tokens, 1));
}

double gradient_factor(const IndexerInputs& inputs, const IndexerGradients& gradients) {
  const float upstream =
      gradients.grad_loss.defined() ? *gradients.grad_loss.ptr<const float>() : 1.0f;
  return static_cast<double>(inputs.sm_scale) * loss_factor(inputs, gradients) *
         static_cast<double>(upstream);
}

}  // namespace dsattn::cpu
