// erf, and the standard normal distribution, which gelu needs.
#pragma once

#include "kernels/elementwise/vecmath/exponential.hpp"

namespace extensor::EXTENSOR_ISA {

// float32: 16 pieces around i/scale, each lane with the coefficients of its own: the value at c[0], and d and the slope
// to a, d = a - c[0].
struct Piece {
  Floats value, d, slope;
};
template <int count, class Lookup> EXTENSOR_INLINE Piece piece_of(Floats a, const float (&c)[count][16], const Lookup& of) {
  const Floats d = a - of(c[0]);
  Floats slope = of(c[count - 1]);
  for (int i = count - 2; i >= 2; --i) slope = fma(slope, d, of(c[i]));
  return {of(c[1]), d, slope};
}
template <int count> EXTENSOR_INLINE Piece find_piece(Floats a, double scale, const float (&c)[count][16]) {
  const Floats place = fma(a, scale, rounding_shift<float>);
  const Integers<float> index = bits(place);
#if defined(EXTENSOR_LOOKUP_OF_8)
  // All numbers in the lower half of the pieces, as most are: a table of one vector.
  if (!any(place >= rounding_shift<float> + 8.0))
    return piece_of(a, c, [&](const float (&table)[16]) EXTENSOR_INLINE_LAMBDA { return lookup_of_8(table, index); });
#endif
  return piece_of(a, c, [&](const float (&table)[16]) EXTENSOR_INLINE_LAMBDA { return lookup(table, index); });
}

EXTENSOR_INLINE Floats erf(Floats x) {
  const Piece piece = find_piece(at_most(4.0, abs(x)), 3.75, Terms<float>::erf);  // from there on erf is 1
  return with_sign_of(fma(piece.slope, piece.d, piece.value + piece.d), x);
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
// exp(-a^2/2) = (1 + rest) 2^-scale * 2^(k + scale), where k + scale is in the last bits of `shifted`.
template <class T> struct NormalParts {
  Vec<T> a, square, shifted, rest;
};
template <class T> EXTENSOR_INLINE NormalParts<T> normal_parts(Vec<T> x) {
  const Vec<T> a = at_most(pick<T>(14.5, 39.0), abs(x));  // there the density and what lies beyond, even times x, are 0
  const Pair<T> square = exact_product(a, a);
  // As reduce_exponent and exp_of_reduced have it, without their last bit: the tail has no more than that.
  const Vec<T> magic = rounding_shift<T> + double(Normal<T>::scale);
  const Vec<T> shifted = fma(square.first, -0.5 * log2_of_e, magic);
  const Vec<T> k = shifted - magic;
  const Vec<T> near = fma(k, 2 * ln2_high<T>, square.first);
  const Vec<T> t = fma(k, 2 * ln2_low<T>, near) + square.second;
  const Vec<T> p = polynomial_amid_others(t, halved_exp<T>.of);
  return {a, square.first, shifted, fma(p, t, -0.5) * t};
}
// value * 2^(k + scale)
template <class T> EXTENSOR_INLINE Vec<T> scaled_by_shifted(Vec<T> value, Vec<T> shifted) {
  return from_bits(bits(value) + (bits(shifted) << Format<T>::mantissa_bits));
}

template <class T> EXTENSOR_INLINE Normal<T> normal_distribution(Vec<T> x) {
  const NormalParts<T> parts = normal_parts(x);
  return {parts.a, scaled_by_shifted(parts.rest + 1.0, parts.shifted), normal_tail(parts.a)};
}

// x P(X <= x). On the right it is x minus what lies beyond; at -infinity it is nan, as -infinity times 0.
EXTENSOR_INLINE Doubles gelu(Doubles x) {
  const Normal<double> normal = normal_distribution(x);
  const Doubles beyond = (normal.a * normal.tail) * normal.first;
  return fma(beyond, -Normal<double>::small, select(x < 0.0, x - x, x));
}

// P(X <= x) + x density(x); nan at both infinities.
template <class T> EXTENSOR_INLINE Vec<T> gelu_slope_anywhere(Vec<T> x) {
  const Normal<T> normal = normal_distribution(x);
  const double density = 0.3989422804014327;
  const Vec<T> e = normal.first * Normal<T>::small;
  const Vec<T> right = fma(-normal.tail, e, 1.0) + x * (e * density);
  // The product with `small` comes last: it may be less than the normal numbers.
  const Vec<T> left = fma(normal.a, Vec<T>(-density), normal.tail) * normal.first * keep(x > pick<T>(-14.5, -39.0), Vec<T>(Normal<T>::small));
  return select(x < 0.0, left + (x - x), right);
}
EXTENSOR_INLINE Doubles gelu_slope(Doubles x) { return gelu_slope_anywhere(x); }

// gelu(x) of x <= -5.5 in float32: -a P(X > a), a multiple of the density that is nearly constant.
EXTENSOR_INLINE Floats gelu_far_left(Floats x) {
  const NormalParts<float> parts = normal_parts(x);
  const Floats z = 1.0 / parts.square;
  const Floats w = z * polynomial_in_one_chain(z, Terms<float>::far_tail);
  const double high = 0.3989422917366028, low = -1.1335170080339907e-08;  // 1/sqrt(2 pi)
  const Floats both = fma(parts.rest, w, parts.rest) + w;  // (1 + rest) (1 + w) - 1
  const Floats product = high + fma(both, high, low);
  return fma(scaled_by_shifted(product, parts.shifted), -Normal<float>::small, x - x);  // nan at -infinity
}

// float32 in pieces; few numbers are so far to the left that they have none.
constexpr double end_of_gelu_pieces = 5.5, scale_of_gelu_pieces = 2.8;
EXTENSOR_INLINE Floats gelu_rest(Floats x, const float (&c)[9][16]) {
  const Piece piece = find_piece(at_most(end_of_gelu_pieces, abs(x)), scale_of_gelu_pieces, c);
  return fma(piece.slope, piece.d, piece.value);
}

EXTENSOR_INLINE Floats gelu(Floats x) {
  const Floats result = at_least(0.0, x) - gelu_rest(x, Terms<float>::gelu_rest);
  const Mask<float> far = x < -end_of_gelu_pieces;
  if (__builtin_expect(!any(far), 1)) return result;
  return select(far, gelu_far_left(x), result);
}

EXTENSOR_INLINE Floats gelu_slope(Floats x) {
  const Floats rest = gelu_rest(x, Terms<float>::gelu_slope_rest);
  const Floats result = select(x < 0.0, rest, 1.0 - rest);
  const Mask<float> far = abs(x) > end_of_gelu_pieces;
  return __builtin_expect(!any(far), 1) ? result : select(far, gelu_slope_anywhere(x), result);
}

}  // namespace extensor::EXTENSOR_ISA
