// Powers whose exponent is one number for all elements, with the special values of pow.
#pragma once

#include "kernels/elementwise/slopes.hpp"

namespace extensor::EXTENSOR_ISA {

// x^0.5 and x^-0.5: unlike the root, of -0 as of +0, and of -infinity as of infinity.
template <class T> EXTENSOR_INLINE Vec<T> half_power(Vec<T> x) { return select(x == -infinity, infinity, sqrt(x + 0.0)); }
template <class T> EXTENSOR_INLINE Vec<T> minus_half_power(Vec<T> x) { return select(x == -infinity, 0.0, 1.0 / sqrt(x + 0.0)); }

// The square of the reciprocal: that of the square would lose results near the smallest numbers.
template <class T> EXTENSOR_INLINE Vec<T> minus_second_power(Vec<T> x) {
  const Vec<T> inverse = 1.0 / x;
  return inverse * inverse;
}

// The gradient of x^0.5, guarded as that of any power is.
template <class T> EXTENSOR_INLINE Vec<T> half_power_grad(Vec<T> g, Vec<T> a, Vec<T> eps) {
  const GuardedBase<T> d = guard_base(a, Vec<T>(0.5), eps);
  return tamed(g * (0.5 * minus_half_power(d.base)), g, d.near);
}
// The gradient of x^-1.
template <class T> EXTENSOR_INLINE Vec<T> inverse_grad(Vec<T> g, Vec<T> a, Vec<T> eps) {
  const GuardedBase<T> d = guard_base(a, Vec<T>(-1.0), eps);
  return tamed(g * -minus_second_power(d.base), g, d.near);
}

}  // namespace extensor::EXTENSOR_ISA
