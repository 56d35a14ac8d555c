// exp, expm1, sinh, cosh, tanh, sigmoid.
#pragma once

#include "kernels/elementwise/vecmath/base.hpp"

namespace extensor::EXTENSOR_ISA {

constexpr double log2_of_e = 1.4426950408889634;

// x = k log(2) + r + low with |r| <= log(2)/2; the first part of log(2) has few bits, so that k times it
// is exact.
template <class T> struct Reduced {
  Integers<T> k;
  Vec<T> number;  // k as a floating number
  Vec<T> r, low;
};
template <class T> EXTENSOR_INLINE Reduced<T> reduce_exponent(Vec<T> x) {
  const Rounded<T> k = round_to_integer(x, log2_of_e);
  const Vec<T> near = fma(k.number, -pick<T>(0.693145751953125, 0.6931471803691238), x);
  const double second = -pick<T>(1.428606765330187e-06, 1.9082149292705877e-10);
  const Vec<T> r = fma(k.number, second, near);
  return {k.integer, k.number, r, fma(k.number, second, near - r)};
}

// Beyond these exp is 0 or infinity, also times any number that does not overflow; nan passes.
template <class T> constexpr double lowest_exponent = pick<T>(-125.0, -790.0);
template <class T> EXTENSOR_INLINE Vec<T> clamp_exponent(Vec<T> x) {
  return at_most(pick<T>(90.0, 711.0), at_least(lowest_exponent<T>, x));
}

// exp(r) of a reduced r; 1 + r is split so that only the last addition rounds.
template <class T> EXTENSOR_INLINE Vec<T> exp_of_reduced(Vec<T> r) {
  const Vec<T> sum = 1.0 + r;
  return sum + fma(r * r, polynomial(r, Terms<T>::exp), r - (sum - 1.0));
}

// exp(x) as first * second, where `first` is a normal number, so that it can take part in a product before
// the result sinks into the subnormal numbers.
template <class T> EXTENSOR_INLINE Pair<T> exp_in_two(Reduced<T> reduced) {
  const Pair<T> powers = split_power_of_two(reduced.k);
  return {exp_of_reduced(reduced.r) * powers.first, powers.second};
}
template <class T> EXTENSOR_INLINE Pair<T> exp_in_two(Vec<T> x) { return exp_in_two(reduce_exponent(clamp_exponent(x))); }

// exp(-a) for a >= 0, and exp(-a - low), low a small correction.
template <class T> EXTENSOR_INLINE Pair<T> exp_of_minus_in_two(Vec<T> a) {
  return exp_in_two(reduce_exponent(at_least(lowest_exponent<T>, -a)));
}
template <class T> EXTENSOR_INLINE Pair<T> exp_of_minus_in_two(Vec<T> a, Vec<T> low) {
  Reduced<T> reduced = reduce_exponent(at_least(lowest_exponent<T>, -a));
  reduced.r = reduced.r - low;
  return exp_in_two(reduced);
}

// exp(x) of a reduced x.
template <class T> EXTENSOR_INLINE Vec<T> exp_in_one(Reduced<T> reduced) {
  if constexpr (has_scaling) {
    return scaled(exp_of_reduced(reduced.r), reduced.number);
  } else {
    const Pair<T> e = exp_in_two(reduced);
    return e.first * e.second;
  }
}
template <class T> EXTENSOR_INLINE Vec<T> exp_of_minus(Vec<T> a) { return exp_in_one(reduce_exponent(at_least(lowest_exponent<T>, -a))); }
template <class T> EXTENSOR_INLINE Vec<T> exp(Vec<T> x) { return exp_in_one(reduce_exponent(clamp_exponent(x))); }
// exp(x + low), low a small correction.
template <class T> EXTENSOR_INLINE Vec<T> exp(Vec<T> x, Vec<T> low) {
  Reduced<T> reduced = reduce_exponent(clamp_exponent(x));
  reduced.r = reduced.r + low;
  return exp_in_one(reduced);
}

// exp(-a) for a >= 0, never below the normal numbers: for use inside sums with numbers near 1.
template <class T> EXTENSOR_INLINE Vec<T> exp_of_minus_normal(Vec<T> a) {
  const Reduced<T> reduced = reduce_exponent(at_least(pick<T>(-87.0, -708.0), -a));
  return exp_of_reduced(reduced.r) * power_of_two(reduced.k);
}

template <class T> EXTENSOR_INLINE Vec<T> expm1_of_reduced(Reduced<T> x) {
  return x.r + fma(x.r * x.r, polynomial(x.r, Terms<T>::expm1), x.low);
}

template <class T> EXTENSOR_INLINE Vec<T> expm1(Vec<T> x) {
  const Reduced<T> reduced = reduce_exponent(at_most(pick<T>(89.0, 710.0), at_least(pick<T>(-30.0, -50.0), x)));
  const Vec<T> near = expm1_of_reduced(reduced);
  // expm1(x) = 2^k expm1(r) + 2^k - 1, halved on the way because 2^k may overflow.
  const Vec<T> half = power_of_two(reduced.k - Integers<T>(1));
  const Vec<T> far = fma(half, near, half - 0.5) * 2.0;
  return with_sign_of(select(reduced.k == Integers<T>(0), near, far), x);
}

template <class T> EXTENSOR_INLINE Vec<T> sinh(Vec<T> x) {
  const Vec<T> a = abs(x);
  const Reduced<T> reduced = reduce_exponent(at_most(pick<T>(89.6, 710.6), a));
  const Vec<T> near = expm1_of_reduced(reduced);
  const Vec<T> quarter = power_of_two(reduced.k - Integers<T>(2));
  // t = expm1(a): sinh(a) = (t + t/(t+1))/2; for large a, exp(a)/2.
  const Vec<T> t = select(reduced.k == Integers<T>(0), near, fma(quarter, near, quarter - 0.25) * 4.0);
  const Vec<T> small = 0.5 * (t + divide_by_sum(t, Vec<T>(1.0), t));
  const Vec<T> large = fma(quarter, near, quarter) * 2.0;
  return with_sign_of(select(a > 20.0, large, small), x);
}

template <class T> EXTENSOR_INLINE Vec<T> cosh(Vec<T> x) {
  const Reduced<T> reduced = reduce_exponent(at_most(pick<T>(89.6, 710.6), abs(x)));
  const Vec<T> quarter = power_of_two(reduced.k - Integers<T>(2));
  const Vec<T> e = fma(quarter, expm1_of_reduced(reduced), quarter);  // exp(|x|)/4
  return 2.0 * e + 0.125 / e;
}

template <class T> EXTENSOR_INLINE Vec<T> tanh(Vec<T> x) {
  const Reduced<T> reduced = reduce_exponent(at_most(pick<T>(20.0, 40.0), abs(x) * 2.0));
  const Vec<T> near = expm1_of_reduced(reduced);
  const Vec<T> power = power_of_two(reduced.k);
  const Vec<T> t = fma(power, near, power - 1.0);  // expm1(2|x|)
  // t/(t+2), or 1 - 2/(t+2) where that is the larger part.
  const Mask<T> far = t > 2.0;
  const Vec<T> quotient = divide_by_sum(select(far, 2.0, t), Vec<T>(2.0), t);
  return with_sign_of(select(far, 1.0 - quotient, quotient), x);
}

// sigmoid(x) and 1 - sigmoid(x) = sigmoid(-x), both without cancellation.
template <class T> EXTENSOR_INLINE Pair<T> sigmoids(Vec<T> x) {
  const Vec<T> e = exp_of_minus(abs(x));
  const Vec<T> larger = 1.0 / (1.0 + e), smaller = e * larger;
  return {select(x < 0.0, smaller, larger), select(x < 0.0, larger, smaller)};
}

template <class T> EXTENSOR_INLINE Vec<T> sigmoid(Vec<T> x) {
  const Vec<T> e = exp_of_minus(abs(x));
  return select(x < 0.0, e, 1.0) / (1.0 + e);
}

// x sigmoid(x)
template <class T> EXTENSOR_INLINE Vec<T> silu(Vec<T> x) {
  const Pair<T> e = exp_of_minus_in_two(abs(x));
  const Mask<T> negative = x < 0.0;
  const Vec<T> top = x * select(negative, e.first, 1.0);
  return top / (1.0 + e.first * e.second) * select(negative, keep(x > lowest_exponent<T>, e.second), 1.0);
}

}  // namespace extensor::EXTENSOR_ISA
