// What the formulas are made of: guards, choices and derivatives too long for one line.
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

// g / (1 + x^2) without an overflow of the square.
template <class T> EXTENSOR_INLINE Vec<T> atan_grad(Vec<T> g, Vec<T> x) {
  const Vec<T> result = g / (1.0 + x * x);
  const Mask<T> far = abs(x) > pick<T>(1e15, 1e150);
  return __builtin_expect(!any(far), 1) ? result : select(far, g / x / x, result);
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
// The two factors of selu as one, rounded once.
template <class T> EXTENSOR_INLINE Vec<T> selu(Vec<T> x) { return select(x > 0.0, x * selu_scale, expm1(x) * (selu_scale * selu_alpha)); }
template <class T> EXTENSOR_INLINE Vec<T> selu_grad(Vec<T> g, Vec<T> x) {
  return g * select(x > 0.0, Vec<T>(selu_scale), exp(x) * (selu_scale * selu_alpha));
}

// Slopes that pass through zero are accurate relative to themselves: around its root each is a positive function times h(x)
// with h(root) = 0, and h is written in d = x - root and exp(x) - exp(root) = exp(root) expm1(d), in which no terms cancel.
// d = high - low, of which `high` is exact around the root.
template <class T> struct Distance {
  Vec<T> high;
  double low;
  EXTENSOR_INLINE Vec<T> rounded() const { return high - low; }
};
template <class T> EXTENSOR_INLINE Distance<T> distance_from(Vec<T> x, double root_high, double root_low) { return {x - root_high, root_low}; }

// The tanh form of gelu is x sigmoid(u), u = scale x + cubed x^3. The exponential magnifies the error of u: it has a low part.
// Beyond 30 the gate is 0 or 1, and the cube must not overflow.
template <class T> constexpr double gelu_scale = pick<T>(1.5957691669464111, 1.5957691216057308);
template <class T> constexpr double gelu_scale_low = pick<T>(-4.534068054340423e-08, -9.96930880911092e-17);
template <class T> constexpr double gelu_cubed = pick<T>(0.07135481387376785, 0.07135481627260025);
template <class T> constexpr double gelu_cubed_low = pick<T>(2.3988324659995897e-09, -6.175149918155315e-19);
template <class T> EXTENSOR_INLINE Pair<T> gelu_gate(Vec<T> x) {
  const Vec<T> near = limited(x, Vec<T>(30.0));
  const Pair<T> square = exact_product(near, near);
  const Pair<T> cubic = exact_product(square.first, Vec<T>(gelu_cubed<T>));
  const Vec<T> sum = gelu_scale<T> + cubic.first, back = sum - cubic.first;
  const Vec<T> lost = (gelu_scale<T> - back) + (cubic.first - (sum - back));
  const Vec<T> low = lost + (fma(square.second, gelu_cubed<T>, fma(square.first, gelu_cubed_low<T>, cubic.second)) + gelu_scale_low<T>);
  const Pair<T> u = exact_product(near, sum);
  return {u.first, fma(near, low, u.second)};
}
template <class T> EXTENSOR_INLINE Vec<T> gelu_tanh(Vec<T> x) {
  const Pair<T> u = gelu_gate(x);
  return gated(x, u.first, u.second, one_and_exp_of_minus(u.first, u.second));
}
// s (1 + x (1 - s) u'), s = sigmoid(u); around its root s (1 - s) h, h = 1 + exp(u) + x u'; nan at both infinities.
template <class T> EXTENSOR_INLINE Vec<T> gelu_tanh_slope(Vec<T> x) {
  const double cubed = 0.07135481627260025, root = -0.7524614220710163;
  const Vec<T> thrice = 3 * cubed;
  const Vec<T> near = limited(x, Vec<T>(30.0));
  const Pair<T> u = gelu_gate(x);
  const Gate<T> gate = gate_at(u.first, u.second);
  // x (1 - s), far to the left in two parts
  const Vec<T> rest = select(x < 0.0, fma(-near, gate.open, near), near * gate.closed);
  const Vec<T> large = select(x < -1.0, near, rest), small = keep(x < -1.0, near * gate.open);
  const Pair<T> square = exact_product(near, near);
  const Vec<T> slope = fma(square.first, thrice, gelu_scale<T>), slope_low = fma(square.second, thrice, gelu_scale_low<T>);
  const Vec<T> factor = fma(large, slope, fma(-small, slope, fma(large, slope_low, 1.0)));
  const Distance<T> d = distance_from(near, pick<T>(-0.7524614334106445, root), pick<T>(1.1339627903339533e-08, 3.635560509207687e-17));
  const Vec<T> q = fma(near, near + root, root * root);  // (x^3 - root^3)/d
  const Vec<T> steps = fma(q, thrice, gelu_scale<T>);
  const Vec<T> risen = expm1(d.rounded() * fma(q, Vec<T>(cubed), gelu_scale<T>));
  const Vec<T> h = fma(d.high, steps, fma(risen, 0.29195521191476713, fma(d.high, gelu_scale_low<T>, steps * -d.low)));
  const Vec<T> away = d.high;
  const Mask<T> around = away < 0.4 && away > -1.0;
  return gated(select(around, fma(-h, gate.open, h), factor), u.first, u.second, gate.below) + (x - x);
}

// s (1 + x (1 - s)), s = sigmoid(x); around its root s (1 - s) h, h = 1 + x + exp(x); nan at both infinities.
template <class T> EXTENSOR_INLINE Vec<T> silu_slope(Vec<T> x) {
  const Gate<T> gate = gate_at(x, Vec<T>(-0.0));
  const Vec<T> factor = select(x < 0.0, fma(-x, gate.open, 1.0 + x), fma(x, gate.closed, 1.0));
  const Distance<T> d = distance_from(x, pick<T>(-1.2784645557403564, -1.2784645427610737), pick<T>(1.2979282537628478e-08, -1.0946994183093437e-16));
  const Vec<T> h = d.high + fma(expm1(d.rounded()), 0.2784645427610738, -d.low);
  return gated(select(abs(d.high) < 0.75, fma(-h, gate.open, h), factor), x, Vec<T>(-0.0), gate.below) + (x - x);
}

// h e / (2 + 2 e + e^2)^2, h = 4 (x + 1) + 4 e^2 + e^3 + e (4 x + 6), e = exp(x). A quarter of the divisor by e is
// 1/e + 2 + 2 e + e^2 + e^3/4, into which the largest part of 1/e comes last.
template <class T> EXTENSOR_INLINE Vec<T> mish_slope_left(Vec<T> given) {
  constexpr double c = 0.3034825352815289;  // exp(root)
  const double limit = pick<T>(-85.0, -700.0);
  const Vec<T> x = at_least(limit, given);
  const ExpInParts<T> inverse = exp_of_minus_in_parts(x), parts = exp_of_minus_in_parts(-x);
  const Vec<T> small = parts.power * parts.rest, e = small + parts.power;
  const Vec<T> quarter = inverse.power + fma(inverse.power, inverse.rest, fma(e, fma(e, fma(e, 0.25, 1.0), 2.0), 2.0));
  const Distance<T> d = distance_from(x, pick<T>(-1.1924312114715576, -1.1924312145154952), pick<T>(-3.0439375464652585e-09, -4.8484829848031044e-17));
  const Vec<T> m = expm1(d.rounded());
  const Vec<T> inner = fma(fma(m, Vec<T>(c * c * c), 3 * c * c * c + 4 * c * c), m, fma(x, Vec<T>(4 * c), c * (6.0 + 8 * c + 3 * c * c)));
  const Vec<T> around = fma(d.high, Vec<T>(4.0 * (1.0 + c)), fma(m, inner, -4.0 * (1.0 + c) * d.low));
  const Vec<T> by_e = fma(e, e + 4.0, fma(x, Vec<T>(4.0), 6.0));
  const Vec<T> rest = fma(x, Vec<T>(4.0), 4.0);
  const Vec<T> direct = select(x < -2.0, fma(e, by_e, rest), fma(parts.power, by_e, fma(small, by_e, rest)));
  const Vec<T> result = select(abs(d.high) < 0.3, around, direct) * 0.25 / quarter;
  const Mask<T> far = given < limit;
  if (__builtin_expect(!any(far), 1)) return result;
  return select(far, far_left_of_gate(1.0 + given, given, Vec<T>(-0.0), 0.0), result);
}

// With t = tanh(log(1 + exp(x))) = 1/(n + 1/(4n)), n = 1/2 + e, e = exp(-x): t + x t^2 e (1 - 1/(4n^2)). At both infinities
// the slope is nan.
template <class T> EXTENSOR_INLINE Vec<T> mish_slope(Vec<T> x) {
  const double limit = pick<T>(80.0, 700.0);
  const Vec<T> near = limited(x, Vec<T>(limit));
  const ExpInParts<T> parts = exp_of_minus_in_parts(near);
  const Vec<T> n = fma(parts.power, parts.rest, 0.5 + parts.power), z = 0.25 / n;
  const Vec<T> e = fma(parts.power, parts.rest, parts.power), t = 1.0 / (n + z);
  const Vec<T> result = fma((x * t) * (t * e), fma(-4.0 * z, z, 1.0), t);
  const Vec<T> right = select(x >= limit, 1.0 + (x - x), result);
  return select(x < -0.6, mish_slope_left(x), right);
}

}  // namespace extensor::EXTENSOR_ISA
