// How the backward lays out its workspace. The queries are worked through in chunks: phase 1 takes
// the queries of a chunk in parallel and leaves dS and P; phase 2 takes column blocks of dkv in
// parallel, and each adds the chunk's contributions in query and slot order. So the bits of dkv
// depend neither on the threads nor on the chunk, and no copies of dkv are needed.
//
// A query whose slots exceed a chunk's is a chunk of its own, worked through in segments.
// Total: at most 2 x fp32 dkv + 64 MiB; threads whose scratch would not fit are left out.
#pragma once

#include "cpu/attention_common.h"

namespace dsattn::cpu {

/// One query of a chunk.
struct ChunkQuery {
  SlotReader slots;
  int64_t count;  ///< slots whose dS and P are in the chunk now
  bool started;   ///< an earlier segment has set up the thread's scratch and sums
};

/// What phase 1 hands to phase 2.
template <class T>
struct Chunk {
  using E = ProductType<T>;
  ChunkQuery* queries;  // [chunk_queries]
  int32_t* ids;         // [chunk_queries, chunk_slots]
  E* rows;              // [chunk_queries, chunk_slots, 2 Hp]: dS | P
  E* operands;          // [chunk_queries, operand_size]: see operand_offset
  double* sink_terms;   // [chunk_queries, H]: exp(sink - L) Delta
};

/// Scratch of one thread. Phase 2 uses `tile` alone.
template <class T>
struct BackwardScratch {
  using E = ProductType<T>;
  E* q;             // [Hp, Dp]
  E* dout;          // [Hp, Dvp]
  E* out;           // [Dvp]
  E* q_packed;      // B [Dp, Hp]
  E* dout_packed;   // B [Dvp, Hp]
  E* keys;          // [block, Dp]
  E* keys_packed;   // B [block, Dp]
  float* scores;    // [block, Hp]
  float* dp;        // [block, Hp]
  uint32_t* words;  // dS as gradient_block leaves it
  E* ds;            // [Hp, block]
  float* dq;        // [Hp, Dp]
  float* norm;      // [Hp]
  float* delta;     // [Hp]
  uint32_t* live;   // [Hp]
  float* tile;      // [kTileSlots, Dp]

  BackwardScratch(const AttentionSizes& size, Carver& carver);
};

inline constexpr int64_t kTileSlots = 128;  ///< slots that phase 2 multiplies at a time

struct BackwardPlan {
  int64_t chunk_queries;
  int64_t chunk_slots;
  int64_t chunk_bytes;
  int64_t scratch_bytes;  ///< per thread
  int64_t sums_bytes;     ///< fp32 dkv, unless the output can hold the sums
  int threads;

  int64_t total_bytes() const { return sums_bytes + chunk_bytes + threads * scratch_bytes; }
};

/// Elements of one query's operand: for each panel of columns below Dv the rows of q, then of dout
/// (depth 2 Hp); for the others those of q alone (depth Hp).
inline int64_t operand_offset(const AttentionSizes& size, int64_t column) {
  return (column + std::min(column, size.value_padded)) * size.heads_padded;
}

template <class T>
BackwardPlan backward_plan(const SparseAttentionBackwardArgs& args, const ExecContext& ctx);

template <class T>
Chunk<T> carve_chunk(const AttentionSizes& size, const BackwardPlan& plan, Carver& carver);

}  // namespace dsattn::cpu
