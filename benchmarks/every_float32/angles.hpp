// Sines and cosines of float32 numbers of any size, in float64: the angle is reduced with as many digits of 2/pi as it takes.
//
// x = m 2^e with an integer m below 2^24, so x 2/pi mod 4 is m C mod 4, where C = 2^e 2/pi mod 4 is the same for all numbers
// of one exponent. C is cut into four pieces of 29 bits: the product of m with each is exact. What is left out is below
// 2^-90, and no float32 comes nearer to a multiple of pi/2 than 2^-34 of a quarter turn.
#pragma once

#include <cmath>
#include <cstdint>
#include <cstring>

namespace angles {

extern "C" {
#pragma omp declare simd notinbranch
double sin(double) noexcept;
#pragma omp declare simd notinbranch
double cos(double) noexcept;
}

constexpr double half_pi = 1.57079632679489661923;

// Digit number i behind the point of 2/pi in binary, from 1 on; 0 in front of it.
inline int digit(int i) {
  static const uint32_t words[] = {0xa2f983, 0x6e4e44, 0x1529fc, 0x2757d1, 0xf534dd, 0xc0db62,
                                   0x95993c, 0x439041, 0xfe5163, 0xabdebb, 0xc561b7, 0x246e3a};
  return i < 1 ? 0 : int(words[(i - 1) / 24] >> (23 - (i - 1) % 24)) & 1;
}

// Piece number `which` of 2^e 2/pi mod 4: its digits of the weights 2^(1 - 29 which) to 2^(-27 - 29 which).
inline double piece(int e, int which) {
  double sum = 0;
  for (int weight = 1 - 29 * which; weight > -28 - 29 * which; --weight) sum += digit(e - weight) * std::ldexp(1.0, weight);
  return sum;
}

// All of one exponent, at least 1 in size.
inline void one_exponent(const double* __restrict x, double* __restrict sine, double* __restrict cosine, int64_t n, int exponent) {
  const double c0 = piece(exponent - 23, 0), c1 = piece(exponent - 23, 1), c2 = piece(exponent - 23, 2), c3 = piece(exponent - 23, 3);
  const double to_integer = std::ldexp(1.0, 23 - exponent);
#pragma omp simd
  for (int64_t i = 0; i < n; ++i) {
    const double m = std::fabs(x[i]) * to_integer;
    const double p = m * c0, first = p - 4.0 * std::floor(p * 0.25), second = m * c1, third = m * c2 + m * c3;
    const double quarter = std::rint(first + second), whole = first - quarter;
    const double sum = whole + second, from = sum - whole, lost = (whole - (sum - from)) + (second - from);
    const double angle = (sum + (lost + third)) * half_pi;
    const double s = sin(angle), c = cos(angle);
    const bool odd = quarter == 1.0 || quarter == 3.0;
    const double positive = (odd ? c : s) * (quarter == 2.0 || quarter == 3.0 ? -1.0 : 1.0);
    sine[i] = x[i] < 0 ? -positive : positive;
    cosine[i] = (odd ? s : c) * (quarter == 1.0 || quarter == 2.0 ? -1.0 : 1.0);
  }
}

inline void small(const double* __restrict x, double* __restrict sine, double* __restrict cosine, int64_t n) {
#pragma omp simd
  for (int64_t i = 0; i < n; ++i) sine[i] = sin(x[i]), cosine[i] = cos(x[i]);
}

inline int exponent_of(double x) {
  uint64_t bits;
  std::memcpy(&bits, &x, sizeof bits);
  return int(bits >> 52 & 0x7ff) - 1023;
}

// Runs of one exponent: float32 numbers in order of their bits have long ones.
inline void sines_and_cosines(const double* x, double* sine, double* cosine, int64_t n) {
  for (int64_t begin = 0, end; begin < n; begin = end) {
    const int exponent = exponent_of(x[begin]);
    end = begin + 1;
    while (end < n && (exponent < 0 ? exponent_of(x[end]) < 0 : exponent_of(x[end]) == exponent)) ++end;
    if (exponent < 0) small(x + begin, sine + begin, cosine + begin, end - begin);
    else one_exponent(x + begin, sine + begin, cosine + begin, end - begin, exponent);
  }
}

}  // namespace angles
