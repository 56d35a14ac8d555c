// What the functions of the vector mathematics share.
//
// Every function takes and returns whole vectors, computes each lane by the same operations whatever
// its neighbours are, and is accurate to 2 units in the last place (benchmarks/vecmath_accuracy.py
// measures it). Where lanes need different formulas all of them are computed and each lane picks its own; a
// formula for rare lanes is left out when no lane of the vector needs it.
#pragma once

#include "core/simd.hpp"
#include "kernels/elementwise/vecmath/coefficients.hpp"

namespace extensor::EXTENSOR_ISA {

template <class T> struct Format;
template <> struct Format<float> {
  static constexpr int mantissa_bits = 23, bits = 32;
  static constexpr int32_t bias = 127;
  static constexpr double smallest_normal = 1.17549435e-38;
};
template <> struct Format<double> {
  static constexpr int mantissa_bits = 52, bits = 64;
  static constexpr int64_t bias = 1023;
  static constexpr double smallest_normal = 2.2250738585072014e-308;
};

// One constant per format.
template <class T> constexpr double pick(double single, double twice) { return sizeof(T) == 4 ? single : twice; }

constexpr double infinity = __builtin_inf();
constexpr double not_a_number = __builtin_nan("");

// Two vectors: the gradients of two operands, or a number as an unevaluated sum of a large and a small part.
template <class T> struct Pair { Vec<T> first, second; };
template <class T> struct Triple { Vec<T> first, second, third; };

// c[0] + c[1] x + c[2] x^2 + ... with the fewest operations: for formulas that have others to do meanwhile.
template <class T, int count>
EXTENSOR_INLINE Vec<T> polynomial_in_one_chain(Vec<T> x, const double (&c)[count]) {
  Vec<T> sum = c[count - 1];
  for (int i = count - 2; i >= 0; --i) sum = fma(sum, x, c[i]);
  return sum;
}

// The same; long ones as two interleaved chains that overlap in time.
template <class T, int count>
EXTENSOR_INLINE Vec<T> polynomial(Vec<T> x, const double (&c)[count]) {
  if constexpr (count < 5) {
    return polynomial_in_one_chain(x, c);
  } else {
    const Vec<T> square = x * x;
    Vec<T> last = c[count - 1], other = c[count - 2];
    for (int i = count - 3; i >= 1; i -= 2) {
      last = fma(last, square, c[i]);
      other = fma(other, square, c[i - 1]);
    }
    if constexpr (count % 2 == 1) {  // `last` holds the even powers and lacks c[0]
      return fma(other, x, fma(last, square, c[0]));
    } else {
      return fma(last, x, other);
    }
  }
}

// The same in formulas that have enough other work to hide the latency of the short chains of float32.
template <class T, int count>
EXTENSOR_INLINE Vec<T> polynomial_amid_others(Vec<T> x, const double (&c)[count]) {
  if constexpr (sizeof(T) == 4) return polynomial_in_one_chain(x, c);
  else return polynomial(x, c);
}

// Coefficients computed from others.
template <int count> struct Coefficients { double of[count]; };

// 2^k for k that keep the result a normal number.
template <class T> EXTENSOR_INLINE Vec<T> power_of_two(Integers<T> k) {
  return from_bits((k + Integers<T>(Format<T>::bias)) << Format<T>::mantissa_bits);
}

// 2^k as a product of two powers, because 2^k itself may not be a normal number of the format.
template <class T> EXTENSOR_INLINE Pair<T> split_power_of_two(Integers<T> k) {
  const Integers<T> both = k + Integers<T>(2 * Format<T>::bias);
  const Integers<T> half = shift_right_logical(both, 1);
  return {from_bits(half << Format<T>::mantissa_bits), from_bits((both - half) << Format<T>::mantissa_bits)};
}

// The nearest whole number as a floating number and as an integer, for |x| < 2^21 or so.
template <class T> struct Rounded {
  Vec<T> number;
  Integers<T> integer;
};
// Adding 1.5 * 2^mantissa pushes the fraction out of the mantissa.
template <class T> constexpr double rounding_shift = pick<T>(12582912.0, 6755399441055744.0);
template <class T> EXTENSOR_INLINE Rounded<T> round_to_integer(Vec<T> x, double factor) {
  const Vec<T> magic = rounding_shift<T>;
  const Vec<T> shifted = fma(x, Vec<T>(factor), magic);
  return {shifted - magic, bits(shifted) - bits(magic)};
}

// factor * 2^k where `shifted` = k + rounding_shift: k, in its last bits, is added to the exponent of the factor.
template <class T> EXTENSOR_INLINE Vec<T> power_of_two_of_shifted(Vec<T> shifted, double factor) {
  return from_bits((bits(shifted) << Format<T>::mantissa_bits) + bits(Vec<T>(factor)));
}

// a * b exactly, as the rounded product and what is missing.
template <class T> EXTENSOR_INLINE Pair<T> exact_product(Vec<T> a, Vec<T> b) {
  const Vec<T> product = a * b;
  if constexpr (has_fma) {
    return {product, fma(a, b, -product)};
  } else {
    // Without fused multiplication: halves of the mantissa, whose products are exact.
    const double splitter = pick<T>(4097.0, 134217729.0);
    const Vec<T> ac = a * splitter, bc = b * splitter;
    const Vec<T> a1 = ac - (ac - a), b1 = bc - (bc - b);
    const Vec<T> a2 = a - a1, b2 = b - b1;
    return {product, ((a1 * b1 - product) + a1 * b2 + a2 * b1) + a2 * b2};
  }
}

// The sign of x on a result that is +0 or already has that sign.
template <class T> EXTENSOR_INLINE Vec<T> with_sign_of(Vec<T> result, Vec<T> x) {
  return from_bits(bits(result) | sign_bit(x));
}

}  // namespace extensor::EXTENSOR_ISA
