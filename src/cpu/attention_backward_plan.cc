// See attention_backward_plan.h.
#include "cpu/attention_backward_plan.h"

namespace dsattn::cpu {
namespace {

constexpr int64_t kMiB = int64_t{1} << 20;
constexpr int64_t kBudget = 64 * kMiB;  // beside the sums
constexpr int64_t kChunkBudget = 24 * kMiB;

}  // namespace

template <class T>
BackwardScratch<T>::BackwardScratch(const AttentionSizes& size, Carver& carver) {
  const int64_t heads = size.heads_padded;
  const int64_t width = size.width_padded;
  const int64_t values = size.value_padded;
  q = carver.take<E>(heads * width);
  dout = carver.take<E>(heads * values);
  out = carver.take<E>(values);
  q_packed = carver.take<E>(heads * width);
  dout_packed = carver.take<E>(heads * values);
  keys = carver.take<E>(kSlotBlock * width);
  keys_packed = carver.take<E>(kSlotBlock * width);
  scores = carver.take<float>(kSlotBlock * heads);
  dp = carver.take<float>(kSlotBlock * heads);
  words = carver.take<uint32_t>(kSlotBlock * heads);
  ds = carver.take<E>(kSlotBlock * heads);
  dq = carver.take<float>(heads * width);
  norm = carver.take<float>(heads);
  delta = carver.take<float>(heads);
  live = carver.take<uint32_t>(heads);
  tile = carver.take<float>(kTileSlots * width);
}

template <class T>
Chunk<T> carve_chunk(const AttentionSizes& size, const BackwardPlan& plan, Carver& carver) {
  using E = ProductType<T>;
  const int64_t queries = plan.chunk_queries;
  Chunk<T> chunk;
  chunk.queries = carver.take<ChunkQuery>(queries);
  chunk.ids = carver.take<int32_t>(queries * plan.chunk_slots);
  chunk.rows = carver.take<E>(queries * plan.chunk_slots * 2 * size.heads_padded);
  chunk.operands = carver.take<E>(queries * operand_offset(size, size.width_padded));
  chunk.sink_terms = carver.take<double>(queries * size.heads);
  return chunk;
}

template <class T>
BackwardPlan backward_plan(const SparseAttentionBackwardArgs& args, const ExecContext& ctx) {
  using E = ProductType<T>;
  const AttentionSizes size(args);
  constexpr auto kBytes = static_cast<int64_t>(sizeof(E));
  const int64_t slot_bytes = 2 * size.heads_padded * kBytes + static_cast<int64_t>(sizeof(int32_t));
  const int64_t query_bytes = operand_offset(size, size.width_padded) * kBytes +
                              size.heads * static_cast<int64_t>(sizeof(double)) +
                              static_cast<int64_t>(sizeof(ChunkQuery));
  BackwardPlan plan{};
  const int64_t fitting = (kChunkBudget - query_bytes) / slot_bytes / kSlotBlock * kSlotBlock;
  plan.chunk_slots =
      std::min(round_up(std::max<int64_t>(size.slots, 1), kDepth), std::max(fitting, kSlotBlock));
  plan.chunk_queries =
      std::clamp<int64_t>(kChunkBudget / (plan.chunk_slots * slot_bytes + query_bytes), 1,
                          std::max<int64_t>(size.queries, 1));
  if (plan.chunk_slots < size.slots) plan.chunk_queries = 1;
  Carver chunk(nullptr);
  carve_chunk<T>(size, plan, chunk);
  plan.chunk_bytes = chunk.used();
  Carver scratch(nullptr);
  BackwardScratch<T>(size, scratch);
  plan.scratch_bytes = scratch.used();
  const int64_t sums = round_up(size.rows * size.width * static_cast<int64_t>(sizeof(float)), 64);
  plan.sums_bytes = args.dkv.dtype == DType::kF32 ? 0 : sums;
  const int64_t left = kBudget - 64 + 2 * (sums - 64) - plan.sums_bytes - plan.chunk_bytes;
  plan.threads =
      static_cast<int>(std::clamp<int64_t>(left / plan.scratch_bytes, 1, thread_count(ctx)));
  return plan;
}

template struct BackwardScratch<bf16>;
template struct BackwardScratch<f16>;
template struct BackwardScratch<narrow_bf16>;
template Chunk<bf16> carve_chunk(const AttentionSizes&, const BackwardPlan&, Carver&);
template Chunk<f16> carve_chunk(const AttentionSizes&, const BackwardPlan&, Carver&);
template Chunk<narrow_bf16> carve_chunk(const AttentionSizes&, const BackwardPlan&, Carver&);
template BackwardPlan backward_plan<bf16>(const SparseAttentionBackwardArgs&, const ExecContext&);
template BackwardPlan backward_plan<f16>(const SparseAttentionBackwardArgs&, const ExecContext&);
template BackwardPlan backward_plan<narrow_bf16>(const SparseAttentionBackwardArgs&,
                                                 const ExecContext&);

}  // namespace dsattn::cpu
