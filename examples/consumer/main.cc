// The smallest use of the installed library: one query, two heads, three keys. Head 0 meets equal
// logits, so its output is the mean of the two selected values; head 1's query picks key 2.
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <vector>

#include "dsattn/ops.h"

namespace {

// bf16 keeps the upper half of a float; the values here are exact in it.
uint16_t bf16_of(float x) {
  union {
    float value;
    uint32_t bits;
  } both{x};
  return static_cast<uint16_t>(both.bits >> 16);
}

float value_of(uint16_t bits) {
  union {
    uint32_t bits;
    float value;
  } both{static_cast<uint32_t>(bits) << 16};
  return both.value;
}

}  // namespace

int main() {
  constexpr int kHeads = 2;
  constexpr int kKeys = 3;
  constexpr int kDim = 64;
  std::vector<uint16_t> q(kHeads * kDim, 0);
  std::vector<uint16_t> kv(kKeys * kDim, 0);
  std::vector<uint16_t> out(kHeads * kDim, 0xFFFF);
  std::vector<float> lse(kHeads, NAN);
  for (int d = 0; d < kDim; ++d) {
    for (int s = 0; s < kKeys; ++s) kv[s * kDim + d] = bf16_of(static_cast<float>(s));
    q[kDim + d] = bf16_of(16.0f);  // head 1: logit 16 * 64 * s / sqrt(64) = 128 s
  }
  std::vector<int32_t> ids = {2, 0, -1, 7};  // two valid slots; -1 and 7 name no key

  dsattn::SparseAttentionForwardArgs args;
  args.q = dsattn::TensorView(q.data(), dsattn::DType::kBF16, {1, kHeads, kDim});
  args.kv = dsattn::TensorView(kv.data(), dsattn::DType::kBF16, {kKeys, kDim});
  args.topk_idxs = dsattn::TensorView(ids.data(), dsattn::DType::kI32, {1, 4});
  args.out = dsattn::TensorView(out.data(), dsattn::DType::kBF16, {1, kHeads, kDim});
  args.lse = dsattn::TensorView(lse.data(), dsattn::DType::kF32, {1, kHeads});

  dsattn::ExecContext ctx;
  const auto needed = dsattn::sparse_attention_forward_workspace(args, ctx);
  if (!needed) return std::fprintf(stderr, "%s\n", needed.error().message.c_str()), 1;
  std::vector<char> workspace(static_cast<size_t>(*needed) + 64);
  const auto start = reinterpret_cast<uintptr_t>(workspace.data());
  ctx.workspace = workspace.data() + (64 - start % 64) % 64;
  ctx.workspace_bytes = *needed;
  const auto done = dsattn::sparse_attention_forward(args, ctx);
  if (!done) return std::fprintf(stderr, "%s\n", done.error().message.c_str()), 1;

  const float mean = value_of(out[0]);
  const float picked = value_of(out[kDim]);
  std::printf("head 0: %g, lse %g; head 1: %g, lse %g\n", static_cast<double>(mean),
              static_cast<double>(lse[0]), static_cast<double>(picked),
              static_cast<double>(lse[1]));
  const bool right = mean == 1.0f && std::abs(lse[0] - std::log(2.0f)) < 1e-5f && picked == 2.0f &&
                     std::abs(lse[1] - 256.0f) < 1e-3f;
  return right ? 0 : 1;
}
