// erf, and the standard normal distribution, which gelu needs.
#pragma once

#include "kernels/elementwise/vecmath/exponential.hpp"

namespace extensor::EXTENSOR_ISA {

template <class T> EXTENSOR_INLINE Vec<T> erf(Vec<T> x) {
  const Vec<T> a = at_most(pick<T>(4.0, 6.0), abs(x));  // from there on erf is 1
  const Vec<T> z = a * a;
  const Vec<T> small = fma(a, polynomial(z, Terms<T>::erf), a);
  const Vec<T> t = (a - 3.0) / (a + 3.0);
  const Vec<T> large = 1.0 - exp_of_minus_normal(z) * polynomial(t, Terms<T>::erfcx);
  return with_sign_of(select(a < 1.0, small, large), x);
}

// The standard normal distribution at x = +-a: the density is e / sqrt(2 pi) and the probability beyond a is
// ratio / (a + c) * e, where e = first * small, `small` being a constant power of two: e itself may be less than the normal
// numbers. Both are accurate relative to themselves, however far out x is.
template <class T> struct Normal {
  Vec<T> a, first, ratio, inverse;  // inverse is 1 / (a + c)
  static constexpr int scale = sizeof(T) == 4 ? 64 : 512;
  static constexpr double small = pick<T>(5.421010862427522e-20, 7.458340731200207e-155);  // 2^-scale
};
template <class T> EXTENSOR_INLINE Normal<T> normal_distribution(Vec<T> x) {
  const Vec<T> a = at_most(pick<T>(14.5, 39.0), abs(x));  // there both, even times x, are 0
  const Pair<T> square = exact_product(a, a);
  // exp(-a^2/2), as reduce_exponent and exp_of_reduced have it, without their last bit: the ratio has no more than that
  const Rounded<T> k = round_to_integer(square.first, -0.5 * log2_of_e);
  const Vec<T> near = fma(k.number, -pick<T>(0.693145751953125, 0.6931471803691238), square.first * -0.5);
  const Vec<T> rest = fma(k.number, -pick<T>(1.428606765330187e-06, 1.9082149292705877e-10), near);
  const Vec<T> r = fma(square.second, -0.5, rest);
  const Vec<T> e = fma(fma(polynomial(r, Terms<T>::exp), r, 1.0), r, 1.0);
  const Vec<T> inverse = 1.0 / (a + pick<T>(4.0, 5.0));
  return {a, e * power_of_two(k.integer + Integers<T>(Normal<T>::scale)),
          polynomial(fma(a, inverse, -0.5), Terms<T>::normal_tail), inverse};
}

// x P(X <= x). On the right it is x minus what lies beyond; at -infinity it is nan, as -infinity times 0.
template <class T> EXTENSOR_INLINE Vec<T> gelu(Vec<T> x) {
  const Normal<T> normal = normal_distribution(x);
  const Vec<T> beyond = (normal.a * normal.inverse) * normal.ratio * normal.first * Normal<T>::small;
  return select(x < 0.0, fma(x, 0.0, -beyond), x - beyond);
}

// P(X <= x) + x density(x); nan at both infinities.
template <class T> EXTENSOR_INLINE Vec<T> gelu_slope(Vec<T> x) {
  const Normal<T> normal = normal_distribution(x);
  const Vec<T> e = normal.first * Normal<T>::small;
  const Vec<T> beyond = normal.ratio * normal.inverse * e;
  return select(x < 0.0, beyond, 1.0 - beyond) + x * (e * 0.3989422804014327);
}

}  // namespace extensor::EXTENSOR_ISA
