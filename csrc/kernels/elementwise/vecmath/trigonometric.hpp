// sin, cos, tan and their inverses.
#pragma once

#include <cmath>

#include "kernels/elementwise/vecmath/base.hpp"

namespace extensor::EXTENSOR_ISA {

// x = k pi/2 + rest, without the last two parts of pi/2. The first two have so few bits that their steps are exact; no part is
// negative, so that -0 stays -0. The last bits of k_bits are those of k.
template <class T> struct Turns {
  Integers<T> k_bits;
  Vec<T> k, rest;
};
template <class T> constexpr double largest_angle = pick<T>(6000.0, 1.0e6);
template <class T> constexpr double third_part = pick<T>(1.5893254773528196e-08, 6.123233995736765e-17);
template <class T> constexpr double fourth_part = pick<T>(6.123233995736766e-17, 1.082856673921914e-32);

// x - k part as if the product were exact: beside a multiple of pi/2 nearly nothing is left of x.
template <class T> EXTENSOR_INLINE Vec<T> without_multiple(Vec<T> x, Vec<T> k, double part) {
  if constexpr (has_fma) return fma(k, -part, x);
  const Pair<T> product = exact_product(k, Vec<T>(part));
  return (x - product.first) - product.second;
}

template <class T> EXTENSOR_INLINE Turns<T> count_turns(Vec<T> x) {
  const Vec<T> shifted = fma(x, 0.6366197723675814, rounding_shift<T>);
  const Vec<T> k = shifted - rounding_shift<T>;
  const Vec<T> first = fma(k, -pick<T>(1.5703125, 1.5707963267341256), x);
  return {bits(shifted), k, without_multiple(first, k, pick<T>(0.0004838109016418457, 6.077094383272197e-11))};
}

// The angle beyond k quarters of a turn.
template <class T> EXTENSOR_INLINE Vec<T> angle_of(const Turns<T>& turns) {
  return fma(turns.k, -fourth_part<T>, without_multiple(turns.rest, turns.k, third_part<T>));
}

// The same angle as an unevaluated sum: beside a pole tan has the relative error of its angle, and its slope twice that.
template <class T> EXTENSOR_INLINE Pair<T> angle_in_two(const Turns<T>& turns) {
  const Pair<T> product = exact_product(turns.k, Vec<T>(third_part<T>));
  const Vec<T> r = turns.rest - product.first, step = r - turns.rest;
  const Vec<T> lost = (turns.rest - (r - step)) - (product.first + step);
  const Vec<T> low = fma(turns.k, -fourth_part<T>, lost - product.second);
  return {r, select(abs(turns.k) > 0.0, low, -0.0)};
}

// Angles too large for the reduction above, lane by lane through the C library in double precision.
template <class T, class Function>
__attribute__((noinline)) Vec<T> by_library(Vec<T> x, Function function) {
  for (int lane = 0; lane < Vec<T>::lanes; ++lane) x.v[lane] = static_cast<T>(function(static_cast<double>(x.v[lane])));
  return x;
}

template <class T, class Function>
EXTENSOR_INLINE Vec<T> mend_large_angles(Vec<T> x, Vec<T> result, Function function) {
  const Mask<T> large = abs(x) > largest_angle<T>;
  if (__builtin_expect(any(large), 0)) result = select(large, by_library(x, function), result);
  return result;
}

// z p(z), and +0 at 0, so that r + r z p(z) is -0 where r is.
template <class T, int count> EXTENSOR_INLINE Vec<T> polynomial_from_zero(Vec<T> z, const double (&c)[count]) {
  return fma(z, polynomial(z, c), 0.0);
}

// sin(x + quarters * pi/2)
template <class T> EXTENSOR_INLINE Vec<T> sin_shifted(Vec<T> x, int quarters) {
  const Turns<T> turns = count_turns(x);
  const Vec<T> r = angle_of(turns), z = r * r;
  const Integers<T> k = turns.k_bits + Integers<T>(quarters);
  const Mask<T> odd = (k & Integers<T>(1)) != Integers<T>(0);
  const Vec<T> cosine = fma(z, fma(z, polynomial(z, Terms<T>::cos), -0.5), 1.0);
  const Vec<T> value = select(odd, cosine, fma(r, polynomial_from_zero(z, Terms<T>::sin), r));
  return from_bits(bits(value) ^ ((k & Integers<T>(2)) << (Format<T>::bits - 2)));
}

template <class T> EXTENSOR_INLINE Vec<T> sin(Vec<T> x) {
  return mend_large_angles(x, sin_shifted(x, 0), [](double a) { return std::sin(a); });
}

template <class T> EXTENSOR_INLINE Vec<T> cos(Vec<T> x) {
  return mend_large_angles(x, sin_shifted(x, 1), [](double a) { return std::cos(a); });
}

template <class T> EXTENSOR_INLINE Vec<T> tan(Vec<T> x) {
  const Turns<T> turns = count_turns(x);
  const Pair<T> angle = angle_in_two(turns);
  const Vec<T> r = angle.first, z = r * r;
  const Vec<T> rest = fma(r, polynomial_from_zero(z, Terms<T>::tan), angle.second);
  const Vec<T> t = r + rest;
  const Mask<T> odd = (turns.k_bits & Integers<T>(1)) != Integers<T>(0);
  // -1/(t + lost), with what t lost in rounding: q - q (1 + q (t + lost)), q = -1/t up to its own rounding.
  const Vec<T> q = -1.0 / t;
  const Vec<T> missing = fma(q, t, 1.0) + q * (rest - (t - r));
  const Vec<T> inverse = select(abs(q) < infinity, fma(q, missing, q), q);
  return mend_large_angles(x, select(odd, inverse, t), [](double a) { return std::tan(a); });
}

template <class T> constexpr double half_pi_high = pick<T>(1.5707963705062866, 1.5707963267948966);
template <class T> constexpr double half_pi_low = pick<T>(-4.371138828673793e-08, 6.123233995736766e-17);

// For |x| <= 1/2 the series at |x|; beyond, asin(a) = pi/2 - 2 asin(sqrt((1-a)/2)).
template <class T> struct ArcSeries {
  Mask<T> beyond;
  Vec<T> s, rest;  // asin(s) = s + rest
};
template <class T> EXTENSOR_INLINE ArcSeries<T> arc_series(Vec<T> x) {
  const Vec<T> a = abs(x);
  const Mask<T> beyond = a > 0.5;
  const Vec<T> z = select(beyond, fma(a, -0.5, 0.5), a * a);
  const Vec<T> s = select(beyond, sqrt(z), a);
  return {beyond, s, s * z * polynomial(z, Terms<T>::asin)};
}

template <class T> EXTENSOR_INLINE Vec<T> asin(Vec<T> x) {
  const ArcSeries<T> series = arc_series(x);
  const Vec<T> twice = 2.0 * series.s, about = half_pi_high<T> - twice;
  const Vec<T> lost = (half_pi_high<T> - about) - twice;  // in rounding
  const Vec<T> complement = about - ((2.0 * series.rest - half_pi_low<T>) - lost);
  return with_sign_of(select(series.beyond, complement, series.s + series.rest), x);
}

template <class T> EXTENSOR_INLINE Vec<T> acos(Vec<T> x) {
  const ArcSeries<T> series = arc_series(x);
  const Vec<T> rest = flip_sign(series.rest, x);
  const Vec<T> middle = half_pi_high<T> - (x - (half_pi_low<T> - rest));
  const Vec<T> right = 2.0 * (series.s + series.rest);
  const Vec<T> left = 2.0 * half_pi_high<T> - (right - 2.0 * half_pi_low<T>);
  return select(series.beyond, select(x < 0.0, left, right), middle);
}

// atan(a) = base + atan(t), t = (a - 1)/(a + 1) around 1 and -1/a far out.
template <class T> EXTENSOR_INLINE Vec<T> atan(Vec<T> x) {
  const Vec<T> a = abs(x);
  const Mask<T> far = a > 2.414213562373095, middle = a > 0.66;
  const Vec<T> above = select(far, -1.0, select(middle, a - 1.0, a));
  const Vec<T> below = select(far, a, select(middle, a + 1.0, Vec<T>(1.0)));
  const Vec<T> t = above / below;
  const Vec<T> z = t * t;
  const Vec<T> base = select(far, Vec<T>(half_pi_high<T>), keep(middle, Vec<T>(half_pi_high<T> / 2)));
  const Vec<T> low = select(far, Vec<T>(half_pi_low<T>), keep(middle, Vec<T>(half_pi_low<T> / 2)));
  return with_sign_of(base + (t + fma(t * z, polynomial(z, Terms<T>::atan), low)), x);
}

}  // namespace extensor::EXTENSOR_ISA
