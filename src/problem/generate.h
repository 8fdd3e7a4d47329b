// Makes problems: seeded, and the same on every machine. Edge cases are in edges.h.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "problem/run.h"

namespace dsattn {

/// How the ids of a sparse selection lie.
enum class Selection : uint8_t {
  kRandom,       ///< each query draws K distinct keys
  kWindowed,     ///< the K keys before the query's position; -1 where there are fewer
  kHighOverlap,  ///< each query keeps 87 % of its predecessor's ids, as measured in trained models
};

std::string_view to_string(Selection kind);
Result<Selection> parse_selection(std::string_view name);

struct GenerateOptions {
  std::string op;
  Selection kind = Selection::kRandom;
  std::string edge;  ///< name of an edge case (edges.h); empty: none
  uint64_t seed = 1;

  int64_t queries = 64;        ///< Sq
  int64_t keys = 256;          ///< Skv
  int64_t heads = 16;          ///< H
  int64_t d_qk = 576;          ///< D
  int64_t d_v = 0;             ///< Dv; 0 = min(D, 512)
  int64_t top_k = 64;          ///< K
  int64_t index_heads = 16;    ///< Hi
  DType dtype = DType::kBF16;  ///< q, kv, dout: BF16 or F16; F32 and F64 for the ref backend

  bool sink = false;
  bool lengths = false;        ///< topk_length, or seq_lens of indexer_top_k
  bool f32_gradients = false;  ///< dkv_dtype and d_index_k_dtype F32
  bool f32_index_weights = false;
  bool grad_loss = false;
  int64_t ratio = 1;
  std::vector<int64_t> segments_q;  ///< lengths; they replace `queries`
  std::vector<int64_t> segments_k;  ///< lengths; they replace `keys`
  std::vector<int64_t> q_offsets;   ///< one per segment
  MetadataMap metadata;             ///< further parameters, as they are
};

/// The problem. `lse`, where the operation needs one, is computed on ctx's backend.
/// Errors: kInvalidValue (options out of range), and what running that computation gives.
Result<Problem> generate(GenerateOptions options, const ExecContext& ctx);

}  // namespace dsattn
