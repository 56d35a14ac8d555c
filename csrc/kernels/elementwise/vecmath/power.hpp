// pow, and the exact floating remainder.
#pragma once

#include <cmath>

#include "kernels/elementwise/vecmath/logarithm.hpp"

namespace extensor::EXTENSOR_ISA {

// log(x) of a positive x to about twice the precision of a double, in two parts.
EXTENSOR_INLINE Pair<double> precise_log(Doubles x) {
  const LogParts<double> parts = split_for_log(x);
  const Doubles f = parts.f;
  // s = f/(2 + f)
  const Doubles sum = 2.0 + f;
  const Doubles sum_low = f - (sum - 2.0);
  const Doubles s = f / sum;
  const Pair<double> back = exact_product(s, sum);
  const Doubles s_low = (((f - back.first) - back.second) - s * sum_low) / sum;
  // z = s^2, p = 2/3 + z (...)
  const Pair<double> square = exact_product(s, s);
  const Doubles z = square.first, z_low = square.second + 2.0 * s * s_low;
  const double two_thirds = 0.6666666666666666, two_thirds_low = 3.700743415417188e-17;
  const Doubles tail = z * polynomial(z, Terms<double>::precise_log);
  const Doubles p = two_thirds + tail;
  const Doubles p_low = (two_thirds - p) + tail + two_thirds_low;
  // w = z p, t = 2 + w, log(1 + f) = s t
  const Pair<double> w = exact_product(z, p);
  const Doubles w_low = w.second + (z * p_low + z_low * p);
  const Doubles t = 2.0 + w.first;
  const Doubles t_low = ((2.0 - t) + w.first) + w_low;
  const Pair<double> product = exact_product(s, t);
  const Doubles product_low = product.second + (s * t_low + s_low * t);
  // plus k log(2), whose first part is exact
  const Doubles whole = parts.k * ln2_high<double>;
  const Doubles high = whole + product.first;
  const Doubles low = ((whole - high) + product.first) + fma(parts.k, ln2_low<double>, product_low);
  return {high, low};
}

// x^y of positive finite x, before the special cases.
EXTENSOR_INLINE Doubles positive_power(Doubles x, Doubles y) {
  const Pair<double> log = precise_log(x);
  const Pair<double> product = exact_product(y, log.first);
  const Doubles low = fma(y, log.second, product.second);
  return exp(product.first, keep(abs(product.first) < 800.0, low));
}

// float32 in double precision, where no care is needed: 2^(y log2(x)), with the terms that are enough for float32.
EXTENSOR_INLINE Doubles positive_power_of_single(Doubles x, Doubles y) {
  const LogParts<double> parts = split_normal_for_log(x, Doubles(double(Format<double>::bias)));
  const Doubles s = parts.f / (2.0 + parts.f);
  const Doubles z = s * s;
  const Doubles log = fma(s * log2_of_e, fma(z, polynomial(z, Terms<double>::power_log), 2.0), parts.k);
  const Doubles exponent = at_most(140.0, at_least(-170.0, y * log));
  const Rounded<double> k = round_to_integer(exponent, 1.0);
  const Doubles r = (exponent - k.number) * 0.6931471805599453;
  const Doubles rest = fma(r * r, polynomial(r, Terms<float>::expm1), r);
  return from_bits(bits(1.0 + rest) + (k.integer << Format<double>::mantissa_bits));
}

EXTENSOR_INLINE Floats positive_power(Floats x, Floats y) {
  const Doubles low = positive_power_of_single(widen_low(x), widen_low(y));
  const Doubles high = positive_power_of_single(widen_high(x), widen_high(y));
  return narrow(low, high);
}

template <class T> EXTENSOR_INLINE Vec<T> pow(Vec<T> x, Vec<T> y) {
  // The exponents people write are products, and those are usually the same for all lanes.
  const Vec<T> square = x * x;
  const Mask<T> simple = y == 1.0 || y == 2.0 || y == 3.0;
  const Vec<T> product = select(y == 1.0, x, select(y == 2.0, square, square * x));
  if (!any(!simple)) return product;
  const Vec<T> a = abs(x);
  Vec<T> result = positive_power(a, y);
  const Mask<T> whole = floor(y) == y, negative = bits(x) < Integers<T>(0);
  const Mask<T> odd = whole && floor(y * 0.5) != y * 0.5;
  const Mask<T> usual = a > 0.0 && a < infinity && abs(y) < infinity;
  if (__builtin_expect(any(!usual), 0)) {
    // A base of 0 or infinity, or an exponent of infinity: 0 or infinity, by which side of 1 the base is.
    const Mask<T> grows = (a > 1.0) ^ (y < 0.0);
    const Vec<T> limit = select(isnan(x) || isnan(y), Vec<T>(not_a_number), select(grows, infinity, Vec<T>(0.0)));
    const Mask<T> one = y == 0.0 || x == 1.0 || (x == -1.0 && !isnan(y));
    result = select(usual, result, select(one, 1.0, limit));
  }
  result = select(odd && negative, -result, result);
  result = select(usual && negative && !whole, Vec<T>(not_a_number), result);
  return select(simple, product, result);
}

template <class T> __attribute__((noinline)) Vec<T> remainder_by_library(Vec<T> a, Vec<T> b) {
  for (int lane = 0; lane < Vec<T>::lanes; ++lane) {
    if constexpr (sizeof(T) == 4) a.v[lane] = __builtin_fmodf(a.v[lane], b.v[lane]);
    else a.v[lane] = __builtin_fmod(a.v[lane], b.v[lane]);
  }
  return a;
}

// The exact remainder a - trunc(a/b) b, with the sign of a. For quotients that are whole numbers of the
// format one fused step is exact, up to a quotient that was rounded up; others go through the C library.
template <class T> EXTENSOR_INLINE Vec<T> remainder(Vec<T> a, Vec<T> b) {
  if constexpr (!has_fma) return remainder_by_library(a, b);
  const Vec<T> quotient = trunc(a / b);
  Vec<T> rest = fma(-quotient, b, a);
  const Mask<T> too_far = (rest < 0.0) ^ (a < 0.0);
  rest = select(too_far && rest != 0.0, rest + flip_sign(abs(b), a), rest);
  rest = copysign(rest, a);
  const Vec<T> d = abs(b);
  const Mask<T> easy = abs(quotient) < pick<T>(4194304.0, 2251799813685248.0) && d > pick<T>(1e-30, 1e-290) && d < infinity;
  if (__builtin_expect(any(!easy), 0)) rest = select(easy, rest, remainder_by_library(a, b));
  return rest;
}

// Python's floor division and modulo of floating numbers: the remainder has the sign of the divisor.
template <class T> EXTENSOR_INLINE Vec<T> modulo(Vec<T> a, Vec<T> b) {
  const Vec<T> rest = remainder(a, b);
  const Mask<T> crosses = rest != 0.0 && ((rest < 0.0) ^ (b < 0.0));
  const Vec<T> result = select(crosses, rest + b, select(rest == 0.0, copysign(Vec<T>(0.0), b), rest));
  return result;
}

template <class T> EXTENSOR_INLINE Vec<T> floor_divide(Vec<T> a, Vec<T> b) {
  const Vec<T> rest = remainder(a, b);
  const Mask<T> crosses = rest != 0.0 && ((rest < 0.0) ^ (b < 0.0));
  const Vec<T> exact = (a - rest) / b - select(crosses, Vec<T>(1.0), 0.0);
  const Vec<T> below = floor(exact);
  const Vec<T> whole = select(exact - below > 0.5, below + 1.0, below);
  const Vec<T> result = select(exact == 0.0, copysign(Vec<T>(0.0), a / b), whole);
  return select(b == 0.0, a / b, result);
}

}  // namespace extensor::EXTENSOR_ISA
