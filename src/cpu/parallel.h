// Threads for the CPU engine: OpenMP behind two functions, with progress and cancellation.
// Work items are independent, so results never depend on the number of threads.
#pragma once

#include <omp.h>

#include <atomic>
#include <cstdint>
#include <functional>

#include "dsattn/ops.h"

namespace dsattn::cpu {

/// Threads that a call with this context uses.
inline int thread_count(const ExecContext& ctx) {
  return ctx.num_threads > 0 ? ctx.num_threads : omp_get_max_threads();
}

/// Runs body(item, thread) for items 0..count-1 on `threads` threads, items handed out one by one.
/// ctx.progress is called on the calling thread with the share done, mapped to [from, to].
/// Returns false if it cancelled; remaining items are skipped.
template <class Body>
bool parallel_for(int64_t count, int threads, const ExecContext& ctx, double from, double to,
                  const Body& body) {
  if (count <= 0) return true;
  std::atomic<int64_t> done{0};
  std::atomic<bool> cancelled{false};
  if (threads > count) threads = static_cast<int>(count);
#pragma omp parallel for schedule(dynamic, 1) num_threads(threads)
  for (int64_t item = 0; item < count; ++item) {
    if (cancelled.load(std::memory_order_relaxed)) continue;
    const int thread = omp_get_thread_num();
    body(item, thread);
    const int64_t finished = done.fetch_add(1, std::memory_order_relaxed) + 1;
    if (thread == 0 && ctx.progress) {
      const double share = static_cast<double>(finished) / static_cast<double>(count);
      if (!ctx.progress(from + (to - from) * share)) cancelled.store(true);
    }
  }
  // The calling thread may have got no item at all: it reports, and can cancel, at the end in any
  // case.
  if (ctx.progress && !cancelled.load() && !ctx.progress(to)) return false;
  return !cancelled.load();
}

}  // namespace dsattn::cpu
