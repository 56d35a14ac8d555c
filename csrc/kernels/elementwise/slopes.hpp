// What the formulas are made of: guards, choices, derivatives and updates too long for one line.
#pragma once

#include "kernels/elementwise/vecmath.hpp"

namespace extensor::EXTENSOR_ISA {

constexpr double ln_of_2 = 0.69314718055994531;
constexpr double ln_of_10 = 2.3025850929940457;
constexpr double two_over_root_pi = 1.1283791670955126;
constexpr double selu_alpha = 1.6732632423543772848170429916717;
constexpr double selu_scale = 1.0507009873554804934193349852946;

template <class T> EXTENSOR_INLINE Pair<T> both(Vec<T> a, Vec<T> b) { return {a, b}; }
template <class T> EXTENSOR_INLINE Vec<T> cube(Vec<T> x) { return x * x * x; }

// g where `kept` holds, 0 elsewhere, nan where x is nan.
template <class T> EXTENSOR_INLINE Vec<T> passed(Vec<T> g, Vec<T> x, Mask<T> kept) {
  return select(kept, g, keep(isnan(x), x));
}

// d, but never nearer to zero than eps.
template <class T> EXTENSOR_INLINE Vec<T> guarded(Vec<T> d, Vec<T> eps) { return select(abs(d) < eps, copysign(eps, d), d); }

template <class T> EXTENSOR_INLINE Vec<T> limited(Vec<T> x, Vec<T> limit) { return at_most(limit, at_least(-limit, x)); }

template <class T> EXTENSOR_INLINE Vec<T> sign(Vec<T> x) {
  return select(x > 0.0, 1.0, select(x < 0.0, Vec<T>(-1.0), keep(isnan(x), x)));
}

template <class T> EXTENSOR_INLINE Vec<T> maximum(Vec<T> a, Vec<T> b) { return select(isnan(a), a, at_least(a, b)); }
template <class T> EXTENSOR_INLINE Vec<T> minimum(Vec<T> a, Vec<T> b) { return select(isnan(a), a, at_most(a, b)); }

// The part of the gradient of maximum(a, b) that goes to a: 1, 0, or half for a tie; nan beside a nan.
template <class T> EXTENSOR_INLINE Vec<T> winner_share(Vec<T> a, Vec<T> b) {
  const Vec<T> share = select(a == b, 0.5, keep(a > b, Vec<T>(1.0)));
  return select(isnan(a) || isnan(b), Vec<T>(not_a_number), share);
}
template <class T> EXTENSOR_INLINE Pair<T> shared(Vec<T> g, Vec<T> share) { return {g * share, g * (1.0 - share)}; }

template <class T> EXTENSOR_INLINE Vec<T> divide_grad_a(Vec<T> g, Vec<T> b, Vec<T> eps) { return g / guarded(b, eps); }
template <class T> EXTENSOR_INLINE Vec<T> divide_grad_b(Vec<T> g, Vec<T> a, Vec<T> b, Vec<T> eps) {
  const Vec<T> d = guarded(b, eps);
  return -g * (a / d) / d;
}
template <class T> EXTENSOR_INLINE Vec<T> reciprocal_grad(Vec<T> g, Vec<T> d) { return -g / d / d; }

template <class T> EXTENSOR_INLINE Vec<T> modulo_grad_b(Vec<T> g, Vec<T> a, Vec<T> b) { return -g * floor_divide(a, b); }

// Near zero, for exponents below 1, the base is guarded: copysign(eps, a), where -0 to a fractional
// power counts as +0; and a finite gradient stays finite.
template <class T> struct GuardedBase {
  Mask<T> near;
  Vec<T> base;
};
template <class T> EXTENSOR_INLINE GuardedBase<T> guard_base(Vec<T> a, Vec<T> b, Vec<T> eps) {
  const Mask<T> near = abs(a) < eps && b < 1.0;
  const Mask<T> fractional = floor(b) != b;
  const Vec<T> side = select(fractional && a == 0.0, 0.0, a);
  return {near, select(near, copysign(eps, side), a)};
}
template <class T> EXTENSOR_INLINE Vec<T> tamed(Vec<T> grad, Vec<T> g, Mask<T> near) {
  const Vec<T> largest = pick<T>(3.4028234663852886e38, 1.7976931348623157e308);
  return select(near && abs(g) < infinity, limited(grad, largest), grad);
}

template <class T> EXTENSOR_INLINE Vec<T> power_grad_a(Vec<T> g, Vec<T> a, Vec<T> b, Vec<T> eps) {
  const GuardedBase<T> d = guard_base(a, b, eps);
  return select(b == 0.0, 0.0, tamed(g * (b * pow(d.base, b - 1.0)), g, d.near));
}
template <class T> EXTENSOR_INLINE Vec<T> power_grad_b(Vec<T> g, Vec<T> a, Vec<T> b, Vec<T> eps) {
  const GuardedBase<T> d = guard_base(a, b, eps);
  const Mask<T> zero = a == 0.0;
  const Vec<T> base = select(zero, d.base, a);
  const Vec<T> grad = g * (pow(base, b) * log(select(zero, abs(base), base)));
  return select(zero, select(b >= 0.0, Vec<T>(0.0), tamed(grad, g, d.near)), grad);
}

template <class T> EXTENSOR_INLINE Vec<T> leaky_grad(Vec<T> g, Vec<T> x, Vec<T> alpha) {
  return select(x > 0.0, g, passed(g * alpha, x, x <= 0.0));
}

template <class T> EXTENSOR_INLINE Vec<T> tan_grad(Vec<T> g, Vec<T> t) { return g * (1.0 + t * t); }

template <class T> EXTENSOR_INLINE Vec<T> erf_grad(Vec<T> g, Vec<T> x) {
  const Vec<T> a = at_most(40.0, abs(x));
  const Pair<T> square = exact_product(a, a);
  const Pair<T> e = exp_of_minus_in_two(square.first, square.second);
  return g * (e.first * two_over_root_pi) * e.second;
}

// log(1 + exp(beta x))/beta; the usual beta is 1, and it is the same in all lanes.
template <class T> EXTENSOR_INLINE Vec<T> softplus(Vec<T> x, Vec<T> beta) {
  const Vec<T> result = softplus(x * beta);
  return any(beta != 1.0) ? result / beta : result;
}

// The exponential side of elu and selu is skipped where no lane needs it.
template <class T> EXTENSOR_INLINE Vec<T> elu(Vec<T> x, Vec<T> alpha) {
  const Mask<T> positive = x > 0.0;
  return any(!positive) ? select(positive, x, expm1(x) * alpha) : x;
}
template <class T> EXTENSOR_INLINE Vec<T> elu_grad(Vec<T> g, Vec<T> x, Vec<T> alpha) {
  const Mask<T> positive = x > 0.0;
  return any(!positive) ? select(positive, g, g * exp(x) * alpha) : g;
}

// The tanh form of gelu is x sigmoid(u), u = scale x (1 + cubic x^2). Beyond 30 the gate is 0 or 1, and
// the cube must not overflow.
constexpr double gelu_scale = 1.5957691216057308, gelu_cubic = 0.044715;
template <class T> EXTENSOR_INLINE Vec<T> gelu_tanh(Vec<T> x) {
  const Vec<T> near = limited(x, Vec<T>(30.0));
  return x * sigmoid(gelu_scale * near * (1.0 + gelu_cubic * (near * near)));
}
template <class T> EXTENSOR_INLINE Vec<T> gelu_tanh_slope(Vec<T> x) {
  const Vec<T> near = limited(x, Vec<T>(30.0)), square = near * near;
  const Pair<T> gate = sigmoids(gelu_scale * near * (1.0 + gelu_cubic * square));
  return gate.first + x * (gate.first * gate.second * (gelu_scale * (1.0 + 3 * gelu_cubic * square)));
}

template <class T> EXTENSOR_INLINE Vec<T> silu_slope(Vec<T> x) {
  const Pair<T> s = sigmoids(x);
  return s.first * (1.0 + x * s.second);
}

// With t = tanh(log(1 + exp(x))) = 1/(n + 1/(4n)), n = 1/2 + e, e = exp(-x): t + x t^2 e (1 - 1/(4n^2)). Far to the left
// t is exp(x); at both infinities the slope is nan.
template <class T> EXTENSOR_INLINE Vec<T> mish_slope(Vec<T> x) {
  const double limit = pick<T>(80.0, 700.0);
  const Vec<T> near = limited(x, Vec<T>(limit));
  const ExpInParts<T> parts = exp_of_minus_in_parts(near);
  const Vec<T> n = fma(parts.power, parts.rest, 0.5 + parts.power), z = 0.25 / n;
  const Vec<T> e = fma(parts.power, parts.rest, parts.power), t = 1.0 / (n + z);
  const Vec<T> result = fma((x * t) * (t * e), fma(-4.0 * z, z, 1.0), t);
  const Mask<T> far = abs(x) >= limit;
  if (__builtin_expect(!any(far), 1)) return result;
  return select(far, select(x < 0.0, exp(x) * (1.0 + x), 1.0 + (x - x)), result);
}

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

}  // namespace extensor::EXTENSOR_ISA
