// The few numeric building blocks of the reference. Limits are spelled out, because inf - inf is
// where softmax code usually goes wrong.
#pragma once

#include <cmath>
#include <cstdint>
#include <limits>

namespace dsattn::ref {

inline constexpr double kInf = std::numeric_limits<double>::infinity();

/// <a, b>. Eight partial sums let the compiler use vector registers; the order is fixed.
inline double dot(const double* a, const double* b, int64_t n) {
  double sum[8] = {};
  int64_t i = 0;
  for (; i + 8 <= n; i += 8) {
    for (int lane = 0; lane < 8; ++lane) sum[lane] += a[i + lane] * b[i + lane];
  }
  for (; i < n; ++i) sum[0] += a[i] * b[i];
  return ((sum[0] + sum[4]) + (sum[2] + sum[6])) + ((sum[1] + sum[5]) + (sum[3] + sum[7]));
}

/// y += factor * x.
inline void add_scaled(double factor, const double* x, int64_t n, double* y) {
  for (int64_t i = 0; i < n; ++i) y[i] += factor * x[i];
}

/// The largest value; NaN if there is one, -inf for n = 0.
inline double max_of(const double* x, int64_t n) {
  double largest = -kInf;
  for (int64_t i = 0; i < n; ++i) {
    if (std::isnan(x[i])) return x[i];
    if (x[i] > largest) largest = x[i];
  }
  return largest;
}

/// ln(e^a + e^b).
inline double log_add_exp(double a, double b) {
  if (std::isnan(a) || std::isnan(b)) return a + b;
  const double larger = a > b ? a : b;
  const double smaller = a > b ? b : a;
  if (std::isinf(larger)) return larger;
  return larger + std::log1p(std::exp(smaller - larger));
}

/// ln sum_i e^x_i: -inf for n = 0, +inf if a term is +inf.
inline double log_sum_exp(const double* x, int64_t n) {
  const double largest = max_of(x, n);
  if (!std::isfinite(largest)) return largest;
  double sum = 0;
  for (int64_t i = 0; i < n; ++i) sum += std::exp(x[i] - largest);
  return largest + std::log(sum);
}

/// max(x, 0), NaN kept.
inline double relu(double x) { return x <= 0 ? 0.0 : x; }

}  // namespace dsattn::ref
