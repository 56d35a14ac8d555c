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
// ratio * e, where e = first * second; both accurate relative to themselves, however far out x is.
template <class T> struct Normal {
  Vec<T> a, first, second, ratio;
};
template <class T> EXTENSOR_INLINE Normal<T> normal_distribution(Vec<T> x) {
  const Vec<T> a = at_most(pick<T>(14.5, 39.0), abs(x));  // there both, even times x, are 0
  const Pair<T> square = exact_product(a, a);
  Reduced<T> reduced = reduce_exponent(square.first * -0.5);
  reduced.r = fma(square.second, -0.5, reduced.r);
  const Pair<T> e = exp_in_two(reduced);
  const Vec<T> c = pick<T>(4.0, 5.0);
  const Vec<T> inverse = 1.0 / (a + c);
  return {a, e.first, e.second, polynomial(a * inverse - 0.5, Terms<T>::normal_tail) * inverse};
}

// x P(X <= x). On the right it is x minus what lies beyond; at -infinity it is nan, as -infinity times 0.
template <class T> EXTENSOR_INLINE Vec<T> gelu(Vec<T> x) {
  const Normal<T> normal = normal_distribution(x);
  const Vec<T> beyond = (copysign(normal.a, x) * normal.ratio) * normal.first * normal.second;
  return select(x < 0.0, fma(x, 0.0, beyond), x - beyond);
}

// P(X <= x) + x density(x); nan at both infinities.
template <class T> EXTENSOR_INLINE Vec<T> gelu_slope(Vec<T> x) {
  const Normal<T> normal = normal_distribution(x);
  const Vec<T> e = normal.first * normal.second;
  const Vec<T> beyond = normal.ratio * e;
  return select(x < 0.0, beyond, 1.0 - beyond) + x * (e * 0.3989422804014327);
}

}  // namespace extensor::EXTENSOR_ISA
