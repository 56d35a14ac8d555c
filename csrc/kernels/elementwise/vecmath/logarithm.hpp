// log, log1p, log2, log10, softplus.
#pragma once

#include "kernels/elementwise/vecmath/exponential.hpp"

namespace extensor::EXTENSOR_ISA {

// x = 2^k (1 + f), 1/sqrt(2) <= 1 + f < sqrt(2), for positive x.
template <class T> struct LogParts {
  Vec<T> k, f;
};
template <class T> EXTENSOR_INLINE LogParts<T> split_normal_for_log(Vec<T> normal, Vec<T> bias) {
  const Integers<T> root_half = bits(Vec<T>(0.7071067811865476));
  // Shifting the origin from 1 to sqrt(1/2) makes the exponent field the k we want, biased.
  const Integers<T> shifted = bits(normal) + (bits(Vec<T>(1.0)) - root_half);
  const Integers<T> exponent = shift_right_logical(shifted, Format<T>::mantissa_bits);
  const Integers<T> fraction = shifted & ((Integers<T>(1) << Format<T>::mantissa_bits) - Integers<T>(1));
  // An integer in the mantissa of a large power of two, minus that power, is the integer as a number.
  const Vec<T> origin = pick<T>(8388608.0, 4503599627370496.0);
  const Vec<T> biased = from_bits(exponent | bits(origin)) - origin;
  return {biased - bias, from_bits(fraction + root_half) - 1.0};
}
template <class T> EXTENSOR_INLINE LogParts<T> split_for_log(Vec<T> x) {
  const Mask<T> tiny = x < Format<T>::smallest_normal;
  const Vec<T> normal = select(tiny, x * pick<T>(16777216.0, 18014398509481984.0), x);
  return split_normal_for_log(normal, select(tiny, double(Format<T>::bias) + pick<T>(24, 54), double(Format<T>::bias)));
}

// log(1 + f) = f - (half - rest), half = f^2/2, rest = s (half + R), s = f/(2+f), |f| < sqrt(2) - 1.
template <class T> struct LogSeries {
  Vec<T> half, rest;
};
template <class T> EXTENSOR_INLINE LogSeries<T> log_series(Vec<T> f) {
  const Vec<T> s = f / (2.0 + f);
  const Vec<T> z = s * s;
  const Vec<T> half = 0.5 * f * f;
  return {half, s * fma(z, polynomial(z, Terms<T>::log), half)};
}

// The values no formula gives: log of infinity, zero, negative numbers and nan.
template <class T> EXTENSOR_INLINE Vec<T> log_edges(Vec<T> x, Vec<T> result) {
  result = select(x == infinity, x, result);
  return select(x > 0.0, result, select(x == 0.0, Vec<T>(-infinity), not_a_number));
}

template <class T> constexpr double ln2_high = pick<T>(0.693145751953125, 0.6931471803691238);
template <class T> constexpr double ln2_low = pick<T>(1.428606765330187e-06, 1.9082149292705877e-10);

template <class T> EXTENSOR_INLINE Vec<T> log(Vec<T> x) {
  const LogParts<T> parts = split_for_log(x);
  const LogSeries<T> series = log_series(parts.f);
  const Vec<T> low = fma(parts.k, ln2_low<T>, series.rest);
  return log_edges(x, fma(parts.k, ln2_high<T>, parts.f - (series.half - low)));
}

template <class T> EXTENSOR_INLINE Vec<T> log1p(Vec<T> x) {
  const Vec<T> sum = 1.0 + x;
  LogParts<T> parts = split_for_log(sum);
  // What was lost in 1 + x, carried through the derivative of the logarithm. Near 0 nothing needs to be lost.
  const Vec<T> lost = select(x < 1.0, x - (sum - 1.0), 1.0 - (sum - x)) / sum;
  const Mask<T> near = parts.k == 0.0;
  parts.f = select(near, x, parts.f);
  const LogSeries<T> series = log_series(parts.f);
  const Vec<T> low = fma(parts.k, ln2_low<T>, series.rest) + select(near, 0.0, lost);
  const Vec<T> result = fma(parts.k, ln2_high<T>, parts.f - (series.half - low));
  return with_sign_of(log_edges(sum, result), x);
}

// log(1 + f) times a constant given in two parts, plus a number given in two parts.
template <class T>
EXTENSOR_INLINE Vec<T> scaled_log(Vec<T> f, double factor_high, double factor_low, Vec<T> plus_high, Vec<T> plus_low) {
  const LogSeries<T> series = log_series(f);
  // The upper half of the mantissa of f - half, so that its product with factor_high is exact.
  const Integers<T> upper = ~typename Integers<T>::Raw{} << (sizeof(T) == 4 ? 12 : 32);
  const Vec<T> high = from_bits(bits(f - series.half) & upper);
  const Vec<T> low = ((f - high) - series.half) + series.rest;
  const Vec<T> main = high * factor_high;
  const Vec<T> minor = fma(low + high, factor_low, fma(low, factor_high, plus_low));
  const Vec<T> sum = plus_high + main;
  return sum + (minor + ((plus_high - sum) + main));
}

template <class T> EXTENSOR_INLINE Vec<T> log2(Vec<T> x) {
  const LogParts<T> parts = split_for_log(x);
  const Vec<T> result = scaled_log(parts.f, pick<T>(1.4423828125, 1.4426946640014648),
                                   pick<T>(0.00031222839606925845, 3.768874985636099e-07), parts.k, Vec<T>(0.0));
  return log_edges(x, result);
}

template <class T> EXTENSOR_INLINE Vec<T> log10(Vec<T> x) {
  const LogParts<T> parts = split_for_log(x);
  const Vec<T> result = scaled_log(parts.f, pick<T>(0.4342041015625, 0.4342944622039795),
                                   pick<T>(9.038033749675378e-05, 1.9699272335463627e-08),
                                   parts.k * pick<T>(0.301025390625, 0.3010299955494702),
                                   parts.k * pick<T>(4.605039066518657e-06, 1.1451100898021838e-10));
  return log_edges(x, result);
}

// log(1 + exp(x)) = max(x, 0) + log1p(exp(-|x|)), where the argument of log1p is between 0 and 1.
template <class T> EXTENSOR_INLINE Vec<T> softplus(Vec<T> x) {
  const Vec<T> e = exp_of_minus(abs(x));
  const Vec<T> sum = 1.0 + e;
  const Mask<T> upper = sum > 1.4142135;
  const Vec<T> f = select(upper, fma(sum, 0.5, -1.0), e);
  const Vec<T> lost = keep(upper, (e - (sum - 1.0)) / sum);
  const LogSeries<T> series = log_series(f);
  const Vec<T> low = series.rest + lost + select(upper, ln2_low<T>, 0.0);
  return at_least(0.0, x) + (select(upper, ln2_high<T>, 0.0) + (f - (series.half - low)));
}

}  // namespace extensor::EXTENSOR_ISA
