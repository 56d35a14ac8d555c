// log, log1p, log2, log10, softplus.
#pragma once

#include "kernels/elementwise/vecmath/exponential.hpp"

namespace extensor::EXTENSOR_ISA {

// x = 2^k (1 + f), 1/sqrt(2) <= 1 + f < sqrt(2), for positive x.
template <class T> struct LogParts {
  Vec<T> k, f;
};

// The values no formula gives: log of infinity, zero, negative numbers and nan.
template <class T> EXTENSOR_INLINE Vec<T> log_edges(Vec<T> x, Vec<T> result) {
  result = select(x == infinity, x, result);
  return select(x > 0.0, result, select(x == 0.0, Vec<T>(-infinity), not_a_number));
}

// float32: polynomials of f. A division would save terms and cost more than it saves.

// The bits of a positive normal x, those of sqrt(1/2) taken away: their exponent field is k.
EXTENSOR_INLINE Integers<float> bits_from_root_half(Floats x) { return bits(x) - bits(Floats(0.7071067811865476)); }
constexpr int32_t exponent_field = int32_t(~0u << Format<float>::mantissa_bits);

EXTENSOR_INLINE LogParts<float> split_for_log(Floats normal) {
  const Integers<float> shifted = bits_from_root_half(normal);
  return {number_of(shifted >> Format<float>::mantissa_bits), from_bits(bits(normal) - (shifted & exponent_field)) - 1.0};
}

// Whether 2^-126 <= x < 2^top, for top <= 128: one comparison of integers that start at 2^-126.
EXTENSOR_INLINE Mask<float> is_normal_below(Floats x, int top) {
  const int32_t first = 1 << Format<float>::mantissa_bits;
  return bits(x) + (INT32_MAX - first + 1) < Integers<float>(INT32_MIN + (top + 126) * first);
}

// A logarithm of any x, by its formula for positive normal numbers.
template <class Formula> EXTENSOR_INLINE Floats log_by(Floats x, Formula formula) {
  const Floats result = formula(split_for_log(x));
  const Mask<float> usual = is_normal_below(x, 128);
  if (__builtin_expect(!any(!usual), 1)) return result;
  LogParts<float> parts = split_for_log(x * 16777216.0);
  parts.k = parts.k - 24.0;
  return log_edges(x, select(x < Format<float>::smallest_normal, formula(parts), result));
}

// float32 happens to have log(2) to five bits more than its own, so one part is enough.
EXTENSOR_INLINE Floats log_of_parts(LogParts<float> parts) {
  const Floats near = fma(parts.f * parts.f, polynomial(parts.f, Terms<float>::log), parts.f);
  return fma(parts.k, 0.6931471805599453, near);
}
EXTENSOR_INLINE Floats log(Floats x) {
  return log_by(x, [](LogParts<float> parts) { return log_of_parts(parts); });
}
EXTENSOR_INLINE Floats log2(Floats x) {
  return log_by(x, [](LogParts<float> parts) { return parts.k + fma(parts.f, polynomial(parts.f, Terms<float>::log2), parts.f); });
}
EXTENSOR_INLINE Floats log10(Floats x) {
  return log_by(x, [](LogParts<float> parts) {
    const Floats near = fma(parts.f, polynomial(parts.f, Terms<float>::log10), 0.5 * parts.f);
    return fma(parts.k, 0.301025390625, fma(parts.k, 4.605039066518657e-06, near));
  });
}

// The sum 1 + x only says which k to take: 2^-k (1 + x) - 1 is rounded once.
EXTENSOR_INLINE Floats log1p(Floats x) {
  const Floats sum = 1.0 + x;
  const Integers<float> shifted = bits_from_root_half(sum);
  const Floats scale = from_bits(bits(Floats(1.0)) - (shifted & exponent_field));
  const LogParts<float> parts = {number_of(shifted >> Format<float>::mantissa_bits), fma(x, scale, scale - 1.0)};
  const Floats result = with_sign_of(log_of_parts(parts), x);
  const Mask<float> usual = is_normal_below(sum, 126);  // from there on 2^-k is not a normal number
  return __builtin_expect(!any(!usual), 1) ? result : select(usual, result, log(sum));
}

// log(1 + exp(x)) = max(x, 0) + log(1 + e), e = exp(-|x|).
EXTENSOR_INLINE Floats softplus(Floats x) {
  const double lowest = -87.0;  // below, e is less than the normal numbers, and the result is e
  const ExpInParts<float> parts = exp_of_minus_in_parts(at_most(-lowest, abs(x)));
  const Floats e = fma(parts.power, parts.rest, parts.power);
  const Floats result = at_least(0.0, x) + fma(e * e, polynomial_in_one_chain(e - 0.5, Terms<float>::log1p), e);
  const Mask<float> far = x < lowest;
  return __builtin_expect(!any(far), 1) ? result : select(far, exp(x), result);
}

// float64

EXTENSOR_INLINE LogParts<double> split_normal_for_log(Doubles normal, Doubles bias) {
  const Integers<double> root_half = bits(Doubles(0.7071067811865476));
  // Shifting the origin from 1 to sqrt(1/2) makes the exponent field the k we want, biased.
  const Integers<double> shifted = bits(normal) + (bits(Doubles(1.0)) - root_half);
  const Integers<double> exponent = shift_right_logical(shifted, Format<double>::mantissa_bits);
  const Integers<double> fraction = shifted & ((Integers<double>(1) << Format<double>::mantissa_bits) - Integers<double>(1));
  // An integer in the mantissa of a large power of two, minus that power, is the integer as a number.
  const Doubles origin = 4503599627370496.0;
  const Doubles biased = from_bits(exponent | bits(origin)) - origin;
  return {biased - bias, from_bits(fraction + root_half) - 1.0};
}
EXTENSOR_INLINE LogParts<double> split_for_log(Doubles x) {
  const Mask<double> tiny = x < Format<double>::smallest_normal;
  const Doubles normal = select(tiny, x * 18014398509481984.0, x);
  return split_normal_for_log(normal, select(tiny, double(Format<double>::bias) + 54.0, double(Format<double>::bias)));
}

// log(1 + f) = f - (half - rest), half = f^2/2, rest = s (half + R), s = f/(2+f), |f| < sqrt(2) - 1.
struct LogSeries {
  Doubles half, rest;
};
EXTENSOR_INLINE LogSeries log_series(Doubles f) {
  const Doubles s = f / (2.0 + f);
  const Doubles z = s * s;
  const Doubles half = 0.5 * f * f;
  return {half, s * fma(z, polynomial(z, Terms<double>::log), half)};
}

EXTENSOR_INLINE Doubles log(Doubles x) {
  const LogParts<double> parts = split_for_log(x);
  const LogSeries series = log_series(parts.f);
  const Doubles low = fma(parts.k, ln2_low<double>, series.rest);
  return log_edges(x, fma(parts.k, ln2_high<double>, parts.f - (series.half - low)));
}

EXTENSOR_INLINE Doubles log1p(Doubles x) {
  const Doubles sum = 1.0 + x;
  LogParts<double> parts = split_for_log(sum);
  // What was lost in 1 + x, carried through the derivative of the logarithm. Near 0 nothing needs to be lost.
  const Doubles lost = select(x < 1.0, x - (sum - 1.0), 1.0 - (sum - x)) / sum;
  const Mask<double> near = parts.k == 0.0;
  parts.f = select(near, x, parts.f);
  const LogSeries series = log_series(parts.f);
  const Doubles low = fma(parts.k, ln2_low<double>, series.rest) + select(near, 0.0, lost);
  const Doubles result = fma(parts.k, ln2_high<double>, parts.f - (series.half - low));
  return with_sign_of(log_edges(sum, result), x);
}

// log(1 + f) times a constant given in two parts, plus a number given in two parts.
EXTENSOR_INLINE Doubles scaled_log(Doubles f, double factor_high, double factor_low, Doubles plus_high, Doubles plus_low) {
  const LogSeries series = log_series(f);
  // The upper half of the mantissa of f - half, so that its product with factor_high is exact.
  const Integers<double> upper = ~Integers<double>::Raw{} << 32;
  const Doubles high = from_bits(bits(f - series.half) & upper);
  const Doubles low = ((f - high) - series.half) + series.rest;
  const Doubles main = high * factor_high;
  const Doubles minor = fma(low + high, factor_low, fma(low, factor_high, plus_low));
  const Doubles sum = plus_high + main;
  return sum + (minor + ((plus_high - sum) + main));
}

EXTENSOR_INLINE Doubles log2(Doubles x) {
  const LogParts<double> parts = split_for_log(x);
  return log_edges(x, scaled_log(parts.f, 1.4426946640014648, 3.768874985636099e-07, parts.k, Doubles(0.0)));
}

EXTENSOR_INLINE Doubles log10(Doubles x) {
  const LogParts<double> parts = split_for_log(x);
  return log_edges(x, scaled_log(parts.f, 0.4342944622039795, 1.9699272335463627e-08, parts.k * 0.3010299955494702,
                                 parts.k * 1.1451100898021838e-10));
}

// As above, where the argument of log1p is between 0 and 1.
EXTENSOR_INLINE Doubles softplus(Doubles x) {
  const Doubles e = exp_of_minus(abs(x));
  const Doubles sum = 1.0 + e;
  const Mask<double> upper = sum > 1.4142135;
  const Doubles f = select(upper, fma(sum, 0.5, -1.0), e);
  const Doubles lost = keep(upper, (e - (sum - 1.0)) / sum);
  const LogSeries series = log_series(f);
  const Doubles low = series.rest + lost + select(upper, ln2_low<double>, 0.0);
  return at_least(0.0, x) + (select(upper, ln2_high<double>, 0.0) + (f - (series.half - low)));
}

}  // namespace extensor::EXTENSOR_ISA
