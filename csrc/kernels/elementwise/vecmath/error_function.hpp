// erf, and the standard normal distribution, which gelu needs.
#pragma once

#include "kernels/elementwise/vecmath/exponential.hpp"

namespace extensor::EXTENSOR_ISA {

// float32: 16 pieces, each lane with the coefficients of its own.
EXTENSOR_INLINE Floats erf(Floats x) {
  const Floats a = at_most(4.0, abs(x));  // from there on erf is 1
  const Integers<float> index = bits(fma(a, 3.75, rounding_shift<float>));
  const auto& c = Terms<float>::erf;
  const Floats d = a - lookup(c[0], index);
  constexpr int last = sizeof c / sizeof c[0] - 1;
  Floats slope = lookup(c[last], index);
  for (int i = last - 1; i >= 2; --i) slope = fma(slope, d, lookup(c[i], index));
  return with_sign_of(fma(slope, d, lookup(c[1], index) + d), x);
}

EXTENSOR_INLINE Doubles erf(Doubles x) {
  const Doubles a = at_most(6.0, abs(x));
  const Doubles z = a * a;
  const Doubles small = fma(a, polynomial(z, Terms<double>::erf), a);
  const Doubles t = (a - 3.0) / (a + 3.0);
  const Doubles large = 1.0 - exp_of_minus_normal(z) * polynomial(t, Terms<double>::erfcx);
  return with_sign_of(select(a < 1.0, small, large), x);
}

template <class T> constexpr auto halved_exp = exp_terms_at(-0.5, Terms<T>::exp);

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
  const Vec<T> magic = rounding_shift<T> + double(Normal<T>::scale);
  const Vec<T> shifted = fma(square.first, -0.5 * log2_of_e, magic);
  const Vec<T> k = shifted - magic;
  const Vec<T> near = fma(k, 2 * ln2_high<T>, square.first);
  const Vec<T> t = fma(k, 2 * ln2_low<T>, near) + square.second;
  const Vec<T> p = polynomial_amid_others(t, halved_exp<T>.of);
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
