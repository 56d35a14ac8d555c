// exp, expm1, sinh, cosh, tanh, sigmoid, silu, mish.
#pragma once

#include "core/wide.hpp"
#include "kernels/elementwise/vecmath/base.hpp"

namespace extensor::EXTENSOR_ISA {

constexpr double log2_of_e = 1.4426950408889634;

// log(2) in two parts, the first of few bits, so that a whole number times it is exact.
template <class T> constexpr double ln2_high = pick<T>(0.693145751953125, 0.6931471803691238);
template <class T> constexpr double ln2_low = pick<T>(1.428606765330187e-06, 1.9082149292705877e-10);

// x = k log(2) + r + low with |r| <= log(2)/2.
template <class T> struct Reduced {
  Integers<T> k;
  Vec<T> number;  // k as a floating number
  Vec<T> r, low;
};
template <class T> EXTENSOR_INLINE Reduced<T> reduce_exponent(Vec<T> x) {
  const Rounded<T> k = round_to_integer(x, log2_of_e);
  const Vec<T> near = fma(k.number, -ln2_high<T>, x);
  const Vec<T> r = fma(k.number, -ln2_low<T>, near);
  return {k.integer, k.number, r, fma(k.number, -ln2_low<T>, near - r)};
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
template <class T> EXTENSOR_INLINE Group<T> exp(const Group<T>& x) { return EXTENSOR_BY_PARTS(exp(x.part[p])); }
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

// The terms of exp(c r) = 1 + c r + r^2 p(r), from those of exp(r) = 1 + r + r^2 p(r).
template <int count> constexpr Coefficients<count> exp_terms_at(double c, const double (&exp)[count]) {
  Coefficients<count> result = {};
  double factor = c * c;
  for (int i = 0; i < count; ++i, factor *= c) result.of[i] = exp[i] * factor;
  return result;
}
template <class T> constexpr auto exp_of_minus_terms = exp_terms_at(-1.0, Terms<T>::exp);

// exp(-x - low) = power + power * rest, where `power` is a power of two and |rest| < 0.42, low a small correction. A sum with
// another number, rounded once, is more accurate than exp(-x) itself. For x that keep the power a normal number.
template <class T> struct ExpInParts {
  Vec<T> power, rest;
};
template <class T> EXTENSOR_INLINE ExpInParts<T> exp_of_minus_in_parts(Vec<T> x, Vec<T> low) {
  const Vec<T> shifted = fma(x, -log2_of_e, rounding_shift<T>);
  const Vec<T> k = shifted - rounding_shift<T>;
  const Vec<T> r = fma(k, ln2_high<T>, x) + fma(k, ln2_low<T>, low);
  return {power_of_two_of_shifted(shifted, 1.0), fma(r * r, polynomial(r, exp_of_minus_terms<T>.of), -r)};
}
template <class T> EXTENSOR_INLINE ExpInParts<T> exp_of_minus_in_parts(Vec<T> x) { return exp_of_minus_in_parts(x, Vec<T>(-0.0)); }
// From here on exp(-x) is nothing beside 1.
template <class T> constexpr double largest_beside_one = pick<T>(80.0, 700.0);
template <class T> EXTENSOR_INLINE Vec<T> limited_exponent(Vec<T> x) { return at_most(largest_beside_one<T>, at_least(-largest_beside_one<T>, x)); }
// Below this the sum of 1 or 1/2 and the power is not exact.
template <class T> constexpr double far_left = pick<T>(-15.0, -35.0);

// factor exp(x + low) (1 - part exp(x)) for x < far_left, nan for an infinite factor: there the factor times a function that
// rises from 0 to 1; low is a small correction.
template <class T> EXTENSOR_INLINE Vec<T> far_left_of_gate(Vec<T> factor, Vec<T> x, Vec<T> low, double part) {
  Reduced<T> reduced = reduce_exponent(clamp_exponent(x));
  reduced.r = reduced.r + low;
  const Pair<T> e = exp_in_two(reduced);
  const Pair<T> product = exact_product(factor, e.first);
  const Vec<T> sum = product.first + fma(product.first * -part, e.first * e.second, product.second);
  return sum * keep(x > lowest_exponent<T>, e.second);
}
template <class T> EXTENSOR_INLINE Vec<T> far_left_of_gate(Vec<T> x, double part) { return far_left_of_gate(x, x, Vec<T>(-0.0), part); }

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

// |x| = k log(2) + r, sinh(r) = r + ..., cosh(r) = 1 + cosh_rest, and rising, falling = 2^k/4, 2^-k/4, in which half of
// sinh(|x|) = (rising - falling) cosh(r) + (rising + falling) sinh(r), and of cosh(|x|), do not overflow too early.
template <class T> struct Hyperbolic {
  Vec<T> sinh, cosh_rest, rising, falling;
};
template <class T> EXTENSOR_INLINE Hyperbolic<T> reduce_hyperbolic(Vec<T> x) {
  const Vec<T> a = at_most(pick<T>(89.6, 710.6), abs(x));
  const Vec<T> shifted = fma(a, log2_of_e, rounding_shift<T>);
  const Vec<T> k = shifted - rounding_shift<T>;
  const Vec<T> r = fma(k, -ln2_low<T>, fma(k, -ln2_high<T>, a));
  const Vec<T> z = r * r;
  // Where 2^-k/4 is nothing beside 2^k/4 and might not be a normal number, something else that is nothing.
  const Integers<T> limited = bits(at_most(rounding_shift<T> + 100.0, shifted));
  return {fma(r * z, polynomial_amid_others(z, Terms<T>::sinh), r), z * polynomial_amid_others(z, Terms<T>::cosh),
          power_of_two_of_shifted(shifted, 0.25), from_bits(bits(Vec<T>(0.25)) - (limited << Format<T>::mantissa_bits))};
}

template <class T> EXTENSOR_INLINE Vec<T> sinh(Vec<T> x) {
  const Hyperbolic<T> h = reduce_hyperbolic(x);
  const Vec<T> minus = h.rising - h.falling;
  const Vec<T> half = minus + fma(h.rising + h.falling, h.sinh, minus * h.cosh_rest);
  return with_sign_of(half + half, x);
}

template <class T> EXTENSOR_INLINE Vec<T> cosh(Vec<T> x) {
  const Hyperbolic<T> h = reduce_hyperbolic(x);
  const Vec<T> smaller = fma(h.rising - h.falling, h.sinh, fma(h.rising + h.falling, h.cosh_rest, h.falling));
  const Vec<T> half = h.rising + smaller;
  return half + half;
}

// (1 - e)/(1 + e), e = exp(-2|x|) = power (1 - near): each sum is rounded once.
template <class T> EXTENSOR_INLINE Vec<T> tanh(Vec<T> x) {
  const Vec<T> a = abs(x), twice = at_most(pick<T>(20.0, 40.0), a + a);
  const Vec<T> shifted = fma(twice, -log2_of_e, rounding_shift<T>);
  const Vec<T> k = shifted - rounding_shift<T>;
  // Here k is small, and float32 happens to have log(2) to five bits more than its own.
  const Vec<T> r = sizeof(T) == 4 ? fma(k, 0.6931471805599453, twice) : fma(k, ln2_low<T>, fma(k, ln2_high<T>, twice));
  const Vec<T> near = fma(-(r * r), polynomial(r, exp_of_minus_terms<T>.of), r);
  const Vec<T> power = power_of_two_of_shifted(shifted, 1.0);
  return with_sign_of(fma(power, near, 1.0 - power) / fma(-power, near, 1.0 + power), x);
}

// sigmoid(x) and 1 - sigmoid(x) = sigmoid(-x), both without cancellation.
template <class T> EXTENSOR_INLINE Pair<T> sigmoids(Vec<T> x) {
  const Vec<T> e = exp_of_minus(abs(x));
  const Vec<T> larger = 1.0 / (1.0 + e), smaller = e * larger;
  return {select(x < 0.0, smaller, larger), select(x < 0.0, larger, smaller)};
}

// 1 + exp(-x - low) for x >= far_left, low a small correction.
template <class T> EXTENSOR_INLINE Vec<T> one_and_exp_of_minus(Vec<T> x, Vec<T> low) {
  const ExpInParts<T> e = exp_of_minus_in_parts(at_most(largest_beside_one<T>, x), low);
  return fma(e.power, e.rest, 1.0 + e.power);
}
template <class T> EXTENSOR_INLINE Vec<T> one_and_exp_of_minus(Vec<T> x) { return one_and_exp_of_minus(x, Vec<T>(-0.0)); }

// sigmoid(x + low) = 1/below, for x >= far_left, and 1 - sigmoid(x + low), without cancellation; low is a small correction.
template <class T> struct Gate {
  Vec<T> below, open, closed;
};
template <class T> EXTENSOR_INLINE Gate<T> gate_at(Vec<T> x, Vec<T> low) {
  const ExpInParts<T> e = exp_of_minus_in_parts(limited_exponent(x), low);
  const Vec<T> below = fma(e.power, e.rest, 1.0 + e.power), open = 1.0 / below;
  return {below, open, select(x < 0.0, 1.0 - open, keep(x < largest_beside_one<T>, fma(e.power, e.rest, e.power) * open))};
}

// factor sigmoid(x + low); nan for an infinite factor where the sigmoid is 0.
template <class T> EXTENSOR_INLINE Vec<T> gated(Vec<T> factor, Vec<T> x, Vec<T> low, Vec<T> below) {
  const Vec<T> result = factor / below;
  const Mask<T> far = x < far_left<T>;
  if (__builtin_expect(!any(far), 1)) return result;
  return select(far, far_left_of_gate(factor, x, low, 1.0), result);
}

template <class T> EXTENSOR_INLINE Vec<T> sigmoid(Vec<T> x) {
  const Vec<T> result = 1.0 / one_and_exp_of_minus(x);
  const Mask<T> far = x < far_left<T>;
  if (__builtin_expect(!any(far), 1)) return result;
  const Vec<T> e = exp(x);
  return select(far, fma(-e, e, e), result);
}

// x sigmoid(x)
template <class T> EXTENSOR_INLINE Vec<T> silu(Vec<T> x) { return gated(x, x, Vec<T>(-0.0), one_and_exp_of_minus(x)); }

// x tanh(log(1 + exp(x))) = x/(n + 1/(4n)), n = 1/2 + exp(-x).
template <class T> EXTENSOR_INLINE Vec<T> mish(Vec<T> x) {
  const ExpInParts<T> e = exp_of_minus_in_parts(at_most(largest_beside_one<T>, x));
  const Vec<T> about = 0.5 + e.power;
  const Vec<T> n = fma(e.power, e.rest, about);
  // What n lost in rounding counts on the left; on the right the two terms make up for it.
  const Vec<T> lost = keep(x < 0.0, fma(e.power, e.rest, about - n));
  const Vec<T> result = x / (n + (0.25 / n + lost));
  const Mask<T> far = x < far_left<T>;
  if (__builtin_expect(!any(far), 1)) return result;
  return select(far, far_left_of_gate(x, 0.5), result);
}

}  // namespace extensor::EXTENSOR_ISA
