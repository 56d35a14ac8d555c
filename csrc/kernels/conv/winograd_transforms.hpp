// The transforms of Winograd's method, one dimension at a time.
//
// A sum y[i] = g[0] d[i] + g[1] d[i + 1] + ... for a few neighbouring i is part of a product of two polynomials. Their
// product is known from its values at six points, which cost six multiplications; from values back to coefficients are
// only additions and multiplications by constants:
//
//   y = A ((G g) * (B d))        4 outputs of 3 taps, or 3 outputs of 4 taps, from 6 inputs
//
// In two dimensions each transform is applied to columns, then to rows: 36 multiplications where the plain sum for
// 4 x 4 outputs takes 144. The points are 0, +-3/4, +-3/2 and infinity. With the usual 0, +-1, +-2 rounding errors are
// about twice as large (measured on normal and on rectified data: 5 times those of a plain float32 sum instead of 2.5);
// like those, they make every constant of A and B a float, and pairs of opposite points share their work.
#pragma once

#include "core/simd.hpp"

namespace extensor::EXTENSOR_ISA {

constexpr int winograd_points = 6, winograd_outputs = 4, winograd_taps = 3;
constexpr int winograd_products = winograd_points * winograd_points;

constexpr double point_a = 0.75, point_b = 1.5;
constexpr double square_a = point_a * point_a, square_b = point_b * point_b;

// Values of the six inputs at the points: B d.
struct InputTransform {
  template <class T>
  EXTENSOR_INLINE void operator()(const Vec<T> (&d)[6], Vec<T> (&to)[6]) const {
    const Vec<T> even_a = fma(d[2], -square_b, d[4]), odd_a = fma(d[1], -square_b, d[3]);
    const Vec<T> even_b = fma(d[2], -square_a, d[4]), odd_b = fma(d[1], -square_a, d[3]);
    to[0] = fma(d[0], square_a * square_b, fma(d[2], -(square_a + square_b), d[4]));
    to[1] = fma(odd_a, point_a, even_a);
    to[2] = fma(odd_a, -point_a, even_a);
    to[3] = fma(odd_b, point_b, even_b);
    to[4] = fma(odd_b, -point_b, even_b);
    to[5] = fma(d[1], square_a * square_b, fma(d[3], -(square_a + square_b), d[5]));
  }
};

// Four outputs from the products at the points, or three: A m.
struct ProductTransform {
  template <class T>
  EXTENSOR_INLINE void operator()(const Vec<T> (&m)[6], Vec<T> (&y)[4]) const {
    const Vec<T> sum_a = m[1] + m[2], difference_a = m[1] - m[2];
    const Vec<T> sum_b = m[3] + m[4], difference_b = m[3] - m[4];
    y[0] = m[0] + (sum_a + sum_b);
    y[1] = fma(difference_b, point_b, difference_a * point_a);
    y[2] = fma(sum_b, square_b, sum_a * square_a);
    y[3] = fma(difference_b, square_b * point_b, fma(difference_a, square_a * point_a, m[5]));
  }

  template <class T>
  EXTENSOR_INLINE void operator()(const Vec<T> (&m)[6], Vec<T> (&y)[3]) const {
    const Vec<T> sum_a = m[1] + m[2], sum_b = m[3] + m[4];
    y[0] = m[0] + (sum_a + sum_b);
    y[1] = fma(m[3] - m[4], point_b, (m[1] - m[2]) * point_a);
    y[2] = fma(sum_b, square_b, fma(sum_a, square_a, m[5]));
  }
};

// Values of three or four taps at the points, without the factors below: diag(1 / point_factor) G g.
struct TapTransform {
  template <class T, int Taps>
  EXTENSOR_INLINE void operator()(const Vec<T> (&g)[Taps], Vec<T> (&to)[6]) const {
    Vec<T> odd_a = g[1], odd_b = g[1];
    if constexpr (Taps == 4) {
      odd_a = fma(g[3], square_a, odd_a);
      odd_b = fma(g[3], square_b, odd_b);
    }
    const Vec<T> even_a = fma(g[2], square_a, g[0]), even_b = fma(g[2], square_b, g[0]);
    to[0] = g[0];
    to[1] = fma(odd_a, point_a, even_a);
    to[2] = fma(odd_a, -point_a, even_a);
    to[3] = fma(odd_b, point_b, even_b);
    to[4] = fma(odd_b, -point_b, even_b);
    to[5] = g[Taps - 1];
  }
};

// Of every point, one over the product of its distances to the other finite ones.
constexpr double point_factors[6] = {
    1 / (square_a * square_b),
    1 / (2 * square_a * (square_a - square_b)),
    1 / (2 * square_a * (square_a - square_b)),
    1 / (2 * square_b * (square_b - square_a)),
    1 / (2 * square_b * (square_b - square_a)),
    1,
};

// `transform` applied to the columns of a square, then to the rows.
template <class T, int From, int To, class Transform>
EXTENSOR_INLINE void transform_square(const Vec<T> (&from)[From][From], Vec<T> (&to)[To][To], const Transform& transform) {
  Vec<T> half[To][From];
  for (int j = 0; j < From; ++j) {
    Vec<T> column[From], changed[To];
    for (int i = 0; i < From; ++i) column[i] = from[i][j];
    transform(column, changed);
    for (int i = 0; i < To; ++i) half[i][j] = changed[i];
  }
  for (int i = 0; i < To; ++i) transform(half[i], to[i]);
}

}  // namespace extensor::EXTENSOR_ISA
