// The loop over query rows that every operation is, with progress and cancellation.
#pragma once

#include <fmt/format.h>

#include <cstdint>

#include "dsattn/ops.h"

namespace dsattn::ref {

/// Calls body(t) for t in [0, rows). Asks ctx.progress after every few rows and after the last.
template <class Body>
Result<void> for_each_row(int64_t rows, const ExecContext& ctx, const Body& body) {
  constexpr int64_t kRowsPerReport = 8;
  for (int64_t t = 0; t < rows; ++t) {
    body(t);
    const int64_t done = t + 1;
    if (!ctx.progress || (done % kRowsPerReport != 0 && done != rows)) continue;
    if (!ctx.progress(static_cast<double>(done) / static_cast<double>(rows))) {
      return fail(
          ErrorCode::kCancelled,
          fmt::format("cancelled by the progress callback after {} of {} query rows", done, rows));
    }
  }
  return {};
}

}  // namespace dsattn::ref
