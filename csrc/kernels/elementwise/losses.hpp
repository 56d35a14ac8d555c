// What the formulas of the losses are made of. p or x is the prediction, t the target, g what arrives at the loss.
#pragma once

#include "kernels/elementwise/slopes.hpp"

namespace extensor::EXTENSOR_ISA {

template <class T> EXTENSOR_INLINE Vec<T> smooth_l1(Vec<T> z, Vec<T> beta) {
  return select(z < beta, 0.5 * z * z / beta, z - 0.5 * beta);
}
template <class T> EXTENSOR_INLINE Vec<T> huber(Vec<T> z, Vec<T> delta) {
  return select(z <= delta, 0.5 * z * z, delta * (z - 0.5 * delta));
}

// t softplus(-x) + (1 - t) softplus(x). What the two share is computed once.
template <class T> EXTENSOR_INLINE Vec<T> logistic_entropy(Vec<T> x, Vec<T> t) {
  const Vec<T> tail = softplus(-abs(x));
  return t * (at_least(0.0, -x) + tail) + (1.0 - t) * (at_least(0.0, x) + tail);
}
template <class T> EXTENSOR_INLINE Vec<T> logistic_slope(Pair<T> s, Vec<T> t) { return (1.0 - t) * s.first - t * s.second; }

// The usual exponent is 2; it is the same in all lanes.
template <class T> EXTENSOR_INLINE Vec<T> focal_discount(Vec<T> miss, Vec<T> gamma) {
  return any(gamma != 2.0) ? pow(miss, gamma) : miss * miss;
}
template <class T> EXTENSOR_INLINE Vec<T> focal_miss(Pair<T> s, Vec<T> t) { return s.first * (1.0 - t) + s.second * t; }

template <class T> EXTENSOR_INLINE Vec<T> focal(Vec<T> x, Vec<T> t, Vec<T> balance, Vec<T> gamma) {
  return balance * focal_discount(focal_miss(sigmoids(x), t), gamma) * logistic_entropy(x, t);
}
template <class T> EXTENSOR_INLINE Vec<T> focal_slope(Vec<T> x, Vec<T> t, Vec<T> balance, Vec<T> gamma) {
  const Pair<T> s = sigmoids(x);
  const Vec<T> miss = focal_miss(s, t);
  // Where nothing is missed, nothing changes.
  const Vec<T> change = keep(miss != 0.0, s.first * s.second * (1.0 - 2.0 * t) / miss);
  return balance * (focal_discount(miss, gamma) * (gamma * change * logistic_entropy(x, t) + logistic_slope(s, t)));
}

// Where p is 0 the divergence is the constant 0, but a nan of q is seen.
template <class T> EXTENSOR_INLINE Vec<T> where_present(Vec<T> p, Vec<T> q, Vec<T> value) {
  return select(p == 0.0, keep(isnan(q), q), value);
}

}  // namespace extensor::EXTENSOR_ISA
