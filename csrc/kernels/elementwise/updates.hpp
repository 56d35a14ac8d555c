// The updates of optimisers, written in the order of the reference so that the bits are its bits.
#pragma once

#include "kernels/elementwise/slopes.hpp"

namespace extensor::EXTENSOR_ISA {

// The gradient with that of the penalty decay/2 |p|^2; without a penalty p has no say, not even as nan.
template <class T> EXTENSOR_INLINE Vec<T> decayed(Vec<T> g, Vec<T> p, Vec<T> decay) {
  return select(decay == 0.0, g, g + decay * p);
}

template <class T>
EXTENSOR_INLINE Pair<T> sgd_with_velocity(Vec<T> p, Vec<T> g, Vec<T> velocity, Vec<T> lr, Vec<T> momentum, Vec<T> nesterov) {
  return {p - lr * select(nesterov != 0.0, g + momentum * velocity, velocity), velocity};
}

template <class T>
EXTENSOR_INLINE Triple<T> adam_moved(Vec<T> p, Vec<T> average, Vec<T> square, Vec<T> size, Vec<T> root, Vec<T> eps) {
  return {p - size * average / (sqrt(square) / root + eps), average, square};
}

template <class T> EXTENSOR_INLINE Vec<T> average(Vec<T> before, Vec<T> value, Vec<T> kept, Vec<T> rest) { return kept * before + rest * value; }

template <class T>
EXTENSOR_INLINE Pair<T> rmsprop_moved(Vec<T> p, Vec<T> g, Vec<T> square, Vec<T> lr, Vec<T> eps) {
  return {p - lr * (g / (sqrt(square) + eps)), square};
}
template <class T>
EXTENSOR_INLINE Triple<T> rmsprop_with_velocity(Vec<T> p, Vec<T> g, Vec<T> square, Vec<T> velocity, Vec<T> lr, Vec<T> eps, Vec<T> momentum) {
  const Vec<T> step = momentum * velocity + g / (sqrt(square) + eps);
  return {p - lr * step, square, step};
}
template <class T>
EXTENSOR_INLINE Triple<T> rmsprop_centred(Vec<T> p, Vec<T> g, Vec<T> square, Vec<T> mean, Vec<T> lr, Vec<T> eps) {
  return {p - lr * (g / (sqrt(square - mean * mean) + eps)), square, mean};
}

template <class T>
EXTENSOR_INLINE Pair<T> adagrad_moved(Vec<T> p, Vec<T> g, Vec<T> total, Vec<T> lr, Vec<T> eps) {
  return {p - lr * g / (sqrt(total) + eps), total};
}

template <class T>
EXTENSOR_INLINE Pair<T> lion_moved(Vec<T> p, Vec<T> direction, Vec<T> mean, Vec<T> lr, Vec<T> decay) {
  return {p - lr * (sign(direction) + decay * p), mean};
}

// The direction, then the averages; its length decides how far.
template <class T>
EXTENSOR_INLINE Triple<T> lamb_direction(Vec<T> p, Vec<T> mean, Vec<T> square, Vec<T> correction1, Vec<T> correction2, Vec<T> eps, Vec<T> decay) {
  return {mean / correction1 / (sqrt(square / correction2) + eps) + decay * p, mean, square};
}

template <class T>
EXTENSOR_INLINE Triple<T> nadam_moved(Vec<T> p, Vec<T> g, Vec<T> mean, Vec<T> square, Vec<T> lr, Vec<T> eps, Vec<T> correction, Vec<T> now,
                                      Vec<T> after) {
  return {p - lr * (now * g + after * mean) / (sqrt(square / correction) + eps), mean, square};
}

// `length` is 0 as long as the average of squares is too short to mean something.
template <class T>
EXTENSOR_INLINE Triple<T> radam_moved(Vec<T> p, Vec<T> mean, Vec<T> square, Vec<T> lr, Vec<T> eps, Vec<T> correction, Vec<T> length) {
  const Vec<T> move = mean / correction;
  return {p - lr * select(length == 0.0, move, move * (length / (sqrt(square) + eps))), mean, square};
}

template <class T>
EXTENSOR_INLINE Triple<T> adadelta_moved(Vec<T> p, Vec<T> g, Vec<T> square, Vec<T> moved, Vec<T> lr, Vec<T> rho, Vec<T> rest, Vec<T> eps) {
  const Vec<T> move = sqrt(moved + eps) / sqrt(square + eps) * g;
  return {p - lr * move, square, rho * moved + rest * (move * move)};
}

}  // namespace extensor::EXTENSOR_ISA
