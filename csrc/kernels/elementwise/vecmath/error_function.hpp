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

// exp(-t/2) = 1 - t/2 + t^2 p(t), from the terms of exp(r) = 1 + r + r^2 p(r).
template <int count> struct Coefficients { double of[count]; };
template <int count> constexpr Coefficients<count> exp_of_minus_half(const double (&exp)[count]) {
  Coefficients<count> result = {};
  double factor = 0.25;
  for (int i = 0; i < count; ++i, factor *= -0.5) result.of[i] = exp[i] * factor;
  return result;
}
template <class T> constexpr auto halved_exp = exp_of_minus_half(Terms<T>::exp);

// erfc(a/sqrt(2))/2 / exp(-a^2/2), for 0 <= a up to where exp(-a^2/2) is 0.
EXTENSOR_INLINE Floats normal_tail(Floats a) {
  return polynomial(a, Terms<float>::normal_tail_top) / polynomial(a, Terms<float>::normal_tail_bottom);
}
EXTENSOR_INLINE Doubles normal_tail(Doubles a) {
  const Doubles inverse = 1.0 / (a + 5.0);
  return polynomial(fma(a, inverse, -0.5), Terms<double>::normal_tail) * inverse;
}

// The standard normal distribution at x = +-a: the density is e / sqrt(2 pi) and the probability beyond a is tail * e,
// where e = first * small, `small` being a constant power of two: e itself may be less than the normal numbers. Both are
// accurate relative to themselves, however far out x is.
template <class T> struct Normal {
  Vec<T> a, first, tail;
  static constexpr int scale = sizeof(T) == 4 ? 64 : 512;
  static constexpr double small = pick<T>(5.421010862427522e-20, 7.458340731200207e-155);  // 2^-scale
};
template <class T> EXTENSOR_INLINE Normal<T> normal_distribution(Vec<T> x) {
  const Vec<T> a = at_most(pick<T>(14.5, 39.0), abs(x));  // there both, even times x, are 0
  const Pair<T> square = exact_product(a, a);
  // exp(-a^2/2), as reduce_exponent and exp_of_reduced have it, without their last bit: the tail has no more than that.
  // k + scale is in the last bits of `shifted`, from where it is added to the exponent.
  const Vec<T> magic = pick<T>(12582912.0, 6755399441055744.0) + double(Normal<T>::scale);
  const Vec<T> shifted = fma(square.first, -0.5 * log2_of_e, magic);
  const Vec<T> k = shifted - magic;
  const Vec<T> near = fma(k, 2 * pick<T>(0.693145751953125, 0.6931471803691238), square.first);
  const Vec<T> t = fma(k, 2 * pick<T>(1.428606765330187e-06, 1.9082149292705877e-10), near) + square.second;
  const Vec<T> p = sizeof(T) == 4 ? polynomial_in_one_chain(t, halved_exp<T>.of) : polynomial(t, halved_exp<T>.of);
  const Integers<T> e = bits(fma(fma(p, t, -0.5), t, 1.0));
  return {a, from_bits(e + (bits(shifted) << Format<T>::mantissa_bits)), normal_tail(a)};
}

// x P(X <= x). On the right it is x minus what lies beyond; at -infinity it is nan, as -infinity times 0.
template <class T> EXTENSOR_INLINE Vec<T> gelu(Vec<T> x) {
  const Normal<T> normal = normal_distribution(x);
  const Vec<T> beyond = (normal.a * normal.tail) * normal.first;
  return fma(beyond, -Normal<T>::small, select(x < 0.0, x - x, x));
}

// P(X <= x) + x density(x); nan at both infinities.
template <class T> EXTENSOR_INLINE Vec<T> gelu_slope(Vec<T> x) {
  const Normal<T> normal = normal_distribution(x);
  const Vec<T> e = normal.first * Normal<T>::small;
  const Vec<T> beyond = normal.tail * e;
  return select(x < 0.0, beyond, 1.0 - beyond) + x * (e * 0.3989422804014327);
}

}  // namespace extensor::EXTENSOR_ISA
