// Products whose operands both lie dense along k: every element of C is a scalar product.
//
//   c[i, j] = sum_p a[i, p] * b[j, p]
//
// No packing and no transposing, at the price of one sum over the lanes per element; the right form when A or
// B has only a few rows, or k is long and C is small.
#pragma once

#include "core/wide.hpp"
#include "kernels/matmul/microkernel.hpp"

namespace extensor::EXTENSOR_ISA {

// Partial sums over a longer stretch would lose digits of a float.
constexpr int64_t dot_stretch = 2048;

// Sum of the lanes in halves: (0+4, 1+5, 2+6, 3+7), then (0+2, 1+3), then the last pair.
template <class T>
EXTENSOR_INLINE T sum_lanes(Wide<T> value) {
  T lanes[wide_lanes<T>];
  store_wide(lanes, value, wide_lanes<T>);
  for (int half = wide_lanes<T> / 2; half > 0; half /= 2)
    for (int i = 0; i < half; ++i) lanes[i] += lanes[i + half];
  return lanes[0];
}

// One part of the wide vectors whose lanes are the sums below: total[i][j] of a[i, :] and b[j, :].
template <class T, int Rows, int Columns>
EXTENSOR_INLINE void dot_part(int64_t k, int part, const T* a, int64_t a_row, const T* b, int64_t b_row, Vec<T> (&total)[Rows][Columns]) {
  constexpr int lanes = wide_lanes<T>;
  a += part * Vec<T>::lanes, b += part * Vec<T>::lanes;
  for (auto& row : total)
    for (auto& sum : row) sum = Vec<T>(0.0);
  for (int64_t start = 0; start < k; start += dot_stretch) {
    const int64_t end = k - start < dot_stretch ? k : start + dot_stretch;
    Vec<T> acc[Rows][Columns];
    for (auto& row : acc)
      for (auto& sum : row) sum = Vec<T>(0.0);
    int64_t p = start;
    for (; p + lanes <= end; p += lanes) {
      Vec<T> av[Rows];
      for (int i = 0; i < Rows; ++i) av[i] = load(a + i * a_row + p);
      for (int j = 0; j < Columns; ++j) {
        const Vec<T> bv = load(b + j * b_row + p);
        for (int i = 0; i < Rows; ++i) acc[i][j] = fma(av[i], bv, acc[i][j]);
      }
    }
    const int rest = int(end - p) - part * Vec<T>::lanes;
    if (rest > 0) {
      for (int j = 0; j < Columns; ++j) {
        const Vec<T> bv = load_first(b + j * b_row + p, rest);
        for (int i = 0; i < Rows; ++i) acc[i][j] = fma(load_first(a + i * a_row + p, rest), bv, acc[i][j]);
      }
    }
    for (int i = 0; i < Rows; ++i)
      for (int j = 0; j < Columns; ++j) total[i][j] = total[i][j] + acc[i][j];
  }
}

// sums[i * Columns + j] = dot(a[i, :], b[j, :]), Rows x Columns of them at a time. A pass for each part of the wide vectors: as
// many sums as there are registers for.
template <class T, int Rows, int Columns>
EXTENSOR_INLINE void dot_tile(int64_t k, const T* a, int64_t a_row, const T* b, int64_t b_row, T* sums) {
  if constexpr (wide_parts == 1) {
    Vec<T> total[Rows][Columns];
    dot_part<T, Rows, Columns>(k, 0, a, a_row, b, b_row, total);
    for (int i = 0; i < Rows; ++i)
      for (int j = 0; j < Columns; ++j) sums[i * Columns + j] = sum_lanes<T>(total[i][j]);
  } else {
    Wide<T> totals[Rows][Columns];
    for (int part = 0; part < wide_parts; ++part) {
      Vec<T> total[Rows][Columns];
      dot_part<T, Rows, Columns>(k, part, a, a_row, b, b_row, total);
      for (int i = 0; i < Rows; ++i)
        for (int j = 0; j < Columns; ++j) part_of(totals[i][j], part) = total[i][j];
    }
    for (int i = 0; i < Rows; ++i)
      for (int j = 0; j < Columns; ++j) sums[i * Columns + j] = sum_lanes<T>(totals[i][j]);
  }
}

// Scalar product of two long rows: eight chains hide the latency that the tile above hides with its width.
template <class T>
inline T dot_stretches(int64_t k, const T* a, const T* b) {
  constexpr int lanes = wide_lanes<T>, chains = 8;
  double total = 0;
  for (int64_t start = 0; start < k; start += dot_stretch * chains) {
    const int64_t end = k - start < dot_stretch * chains ? k : start + dot_stretch * chains;
    Wide<T> sums;
    for (int part = 0; part < wide_parts; ++part) {
      const T *const x = a + part * Vec<T>::lanes, *const y = b + part * Vec<T>::lanes;
      Vec<T> acc[chains];
      for (auto& sum : acc) sum = Vec<T>(0.0);
      int64_t p = start;
      for (; p + lanes * chains <= end; p += lanes * chains)
        for (int c = 0; c < chains; ++c) acc[c] = fma(load(x + p + c * lanes), load(y + p + c * lanes), acc[c]);
      for (; p + lanes <= end; p += lanes) acc[0] = fma(load(x + p), load(y + p), acc[0]);
      const int rest = int(end - p) - part * Vec<T>::lanes;
      if (rest > 0) acc[1] = fma(load_first(x + p, rest), load_first(y + p, rest), acc[1]);
      for (int half = chains / 2; half > 0; half /= 2)
        for (int c = 0; c < half; ++c) acc[c] = acc[c] + acc[c + half];
      part_of(sums, part) = acc[0];
    }
    total += double(sum_lanes<T>(sums));
  }
  return T(total);
}

}  // namespace extensor::EXTENSOR_ISA
