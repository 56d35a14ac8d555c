// erf, and the standard normal distribution, which gelu needs.
#pragma once

#include "kernels/elementwise/vecmath/exponential.hpp"

namespace extensor::EXTENSOR_ISA {

template <class T> EXTENSOR_INLINE Vec<T> erf(Vec<T> x) {
  const Vec<T> a = at_most(pick<T>(4.0, 6.0), abs(x));  // from there on erf is 1
  const Vec<T> z = a * a;
  const Vec<T> small = fma(a, polynomial(z, Terms<T>::erf), a);
  const Vec<T> t = (a - 3.0) / (a + 3.0);
  const Vec<T> large = 1.0 - exp_of_negative(z) * polynomial(t, Terms<T>::erfcx);
  return with_sign_of(select(a < 1.0, small, large), x);
}

// The distribution function P(X <= x) and the density of the standard normal distribution, both
// accurate relative to themselves, however far out x is.
template <class T> struct Normal {
  Vec<T> below, density;
};
template <class T> EXTENSOR_INLINE Normal<T> normal_distribution(Vec<T> x) {
  const Vec<T> a = at_most(pick<T>(14.5, 39.0), abs(x));
  const Pair<T> square = exact_product(a, a);
  const Vec<T> e = exp(square.first * -0.5, square.second * -0.5);
  const double c = pick<T>(4.0, 5.0);
  const Vec<T> inverse = 1.0 / (a + c);
  const Vec<T> tail = e * (inverse * polynomial(a * inverse - 0.5, Terms<T>::normal_tail));
  return {select(x < 0.0, tail, 1.0 - tail), e * 0.3989422804014327};
}

}  // namespace extensor::EXTENSOR_ISA
