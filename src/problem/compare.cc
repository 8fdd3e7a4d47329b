#include "problem/compare.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <span>

#include "problem/elements.h"

namespace dsattn {
namespace {

constexpr double kRowFactor = 4;      // no row above this many times the tensor's bound
constexpr double kSmallestRow = 0.1;  // rows below this share of the mean row count as that
constexpr double kMaxSteps = 16;      // bf16 steps of the row's largest magnitude
constexpr double kUnderflow = 1e-30;  // of the operands' size: may have been flushed to zero

/// Where fp32 storage would show Inf although float64 does not.
double as_stored(double x, DType dtype) {
  if (!std::isfinite(x) || dtype == DType::kF64) return x;
  const auto single = static_cast<float>(x);
  double stored = single;
  if (dtype == DType::kBF16) stored = to_double(to_bf16(single));
  if (dtype == DType::kF16) stored = to_double(to_f16(single));
  return std::isfinite(stored) ? x : stored;
}

bool same_pattern(double got, double expected) {
  if (std::isnan(expected)) return std::isnan(got);
  return got == expected;
}

/// The spacing of bf16 numbers at a magnitude.
double bf16_step(double magnitude) {
  if (magnitude == 0) return 0;
  constexpr int kFractionBits = 7;
  return std::ldexp(1.0, std::ilogb(magnitude) - kFractionBits);
}

/// Sums of one row, finite elements only.
struct RowSums {
  double error = 0;     // squared
  double expected = 0;  // squared
  double terms = 0;     // squared
  double largest = 0;   // magnitude, of expected or of the terms
};

double ratio(double error, double size) { return error == 0 ? 0 : error / size; }

class Comparison {
 public:
  Comparison(TensorReport& report, const CompareContext& context, std::span<const double> got,
             std::span<const double> expected)
      : report_(report), context_(context), got_(got), expected_(expected) {
    width_ = report.shape.empty() ? 1 : static_cast<size_t>(report.shape.back());
  }

  void run() {
    if (got_.empty()) return;
    std::vector<RowSums> rows(got_.size() / width_);
    for (size_t r = 0; r < rows.size(); ++r) rows[r] = sum_row(r * width_);
    judge(rows);
  }

 private:
  double term(size_t i) const {
    const double size = context_.term_sizes.empty() ? 0 : context_.term_sizes[i];
    return std::isfinite(size) ? size : 0;
  }

  /// The error that counts: none where both are below what may be flushed.
  double error_of(size_t i) const {
    const double error = std::abs(got_[i] - expected_[i]);
    return error <= kUnderflow * context_.operand_size ? 0 : error;
  }

  bool finite(size_t i) const { return std::isfinite(got_[i]) && std::isfinite(expected_[i]); }

  void note(size_t i) {
    report_.worst_element = static_cast<int64_t>(i);
    report_.got = got_[i];
    report_.expected = expected_[i];
  }

  RowSums sum_row(size_t begin) {
    RowSums row;
    for (size_t i = begin; i < begin + width_; ++i) {
      if (!finite(i)) {
        if (same_pattern(got_[i], expected_[i])) continue;
        if (report_.mismatched++ == 0) note(i);
        continue;
      }
      const double error = error_of(i);
      row.error += error * error;
      row.expected += expected_[i] * expected_[i];
      row.terms += term(i) * term(i);
      row.largest = std::max({row.largest, std::abs(expected_[i]), term(i)});
    }
    if (report_.mismatched > 0) return row;
    const double step = bf16_step(row.largest);
    for (size_t i = begin; i < begin + width_; ++i) {
      if (!finite(i)) continue;
      const double steps = ratio(error_of(i), step);
      if (steps <= report_.worst_steps) continue;
      report_.worst_steps = steps;
      note(i);
    }
    return row;
  }

  void judge(const std::vector<RowSums>& rows) {
    RowSums all;
    double mean_row = 0;
    for (const RowSums& row : rows) {
      all.error += row.error;
      all.expected += row.expected;
      all.terms += row.terms;
      mean_row += std::sqrt(row.expected) / static_cast<double>(rows.size());
    }
    report_.relative_l2 = ratio(std::sqrt(all.error), std::sqrt(std::max(all.expected, all.terms)));
    for (size_t r = 0; r < rows.size(); ++r) {
      const double size =
          std::max(std::sqrt(std::max(rows[r].expected, rows[r].terms)), kSmallestRow * mean_row);
      const double relative = ratio(std::sqrt(rows[r].error), size);
      if (relative <= report_.worst_row_l2) continue;
      report_.worst_row_l2 = relative;
      report_.worst_row = static_cast<int64_t>(r);
    }
  }

  TensorReport& report_;
  const CompareContext& context_;
  std::span<const double> got_;
  std::span<const double> expected_;
  size_t width_ = 1;
};

void conclude(TensorReport& report) {
  const double bound = report.tolerance.relative_l2;
  const std::string at = index_text(report.shape, report.worst_element);
  if (report.mismatched > 0) {
    report.failure = fmt::format(
        "{} elements differ{}, the first at {}: got {}, expected {}", report.mismatched,
        report.tolerance.exact ? "" : " in where NaN and Inf are", at, report.got, report.expected);
  } else if (report.relative_l2 > bound) {
    report.failure = fmt::format(
        "relative L2 error {:.3g}, allowed {:.3g}; worst element {}: got "
        "{}, expected {}",
        report.relative_l2, bound, at, report.got, report.expected);
  } else if (report.worst_row_l2 > kRowFactor * bound) {
    report.failure = fmt::format("row {} has relative L2 error {:.3g}, allowed {:.3g}",
                                 report.worst_row, report.worst_row_l2, kRowFactor * bound);
  } else if (report.worst_steps > kMaxSteps) {
    report.failure = fmt::format(
        "element {} is {:.3g} bf16 steps of its row's largest magnitude "
        "off, allowed {}: got {}, expected {}",
        at, report.worst_steps, kMaxSteps, report.got, report.expected);
  }
  report.passed = report.failure.empty();
}

}  // namespace

Tolerance tolerance_of(std::string_view tensor, DType dtype) {
  if (dtype == DType::kI32) return {0, true};
  const bool single = dtype == DType::kF32 || dtype == DType::kF64;
  if (tensor == "out") return {dtype == DType::kBF16 ? 4e-3 : single ? 1e-5 : 6e-3};
  if (tensor == "dq" || tensor == "d_index_q") return {6e-3};
  if (tensor == "dkv" || tensor == "d_index_k") return {single ? 4e-3 : 6e-3};
  if (tensor == "predict" || tensor == "target" || tensor == "d_index_w") return {2e-5};
  return {1e-5};
}

std::string index_text(const std::vector<int64_t>& shape, int64_t flat) {
  if (flat < 0) return "none";
  std::vector<int64_t> index(shape.size());
  for (size_t i = shape.size(); i-- > 0;) {
    index[i] = flat % shape[i];
    flat /= shape[i];
  }
  return fmt::format("[{}]", fmt::join(index, ", "));
}

TensorReport compare_tensor(std::string_view name, const OwnedTensor& got,
                            const OwnedTensor& expected, const CompareContext& context) {
  TensorReport report;
  report.name = name;
  report.dtype = got.dtype();
  report.shape.assign(got.shape().begin(), got.shape().end());
  report.tolerance = tolerance_of(name, got.dtype());
  if (!std::ranges::equal(got.shape(), expected.shape()) ||
      (got.dtype() == DType::kI32) != (expected.dtype() == DType::kI32)) {
    report.failure =
        fmt::format("is {}, expected {}", to_string(got.view()), to_string(expected.view()));
    return report;
  }
  const std::vector<double> got_values = to_doubles(got);
  std::vector<double> expected_values = to_doubles(expected);
  if (report.tolerance.exact) {
    for (size_t i = 0; i < got_values.size(); ++i) {
      if (got_values[i] == expected_values[i] || report.mismatched++ > 0) continue;
      report.worst_element = static_cast<int64_t>(i);
      report.got = got_values[i];
      report.expected = expected_values[i];
    }
  } else {
    for (double& x : expected_values) x = as_stored(x, got.dtype());
    Comparison(report, context, got_values, expected_values).run();
  }
  conclude(report);
  return report;
}

}  // namespace dsattn
