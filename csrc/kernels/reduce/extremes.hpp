// The extreme element of a slice and how many elements are equal to it, in one pass over memory: each block is searched
// and counted while it is in the cache.
#pragma once

#include "kernels/reduce/fold.hpp"

namespace extensor::EXTENSOR_ISA {

// Elements equal to `wanted`; at most 2^31 of them.
template <class T>
EXTENSOR_INLINE int64_t count_equal(const T* x, int64_t n, T wanted) {
  constexpr int lanes = Vec<T>::lanes;
  const Vec<T> sought(static_cast<double>(wanted));
  Integers<T> counts(typename Integers<T>::Integer(0));
  int64_t i = 0, total = 0;
  for (; i + lanes <= n; i += lanes) counts = counts - minus_one_where(load(x + i) == sought);
  for (; i < n; ++i) total += x[i] == wanted;
  for (int lane = 0; lane < lanes; ++lane) total += counts.v[lane];
  return total;
}

template <class T, class Step>
struct Extremes {  // first: the extreme element, second: how often it is there
  static State row(const T* x, int64_t n) {
    constexpr int64_t block = 4096;
    State total = {Step::start, 0};
    for (int64_t start = 0; start < n; start += block) {
      const int64_t count = min_of(block, n - start);
      const double extreme = fold_row<Step, T>(x + start, count);
      total = merge(total, 0, {extreme, double(count_equal(x + start, count, T(extreme)))}, 0);
    }
    return total;
  }

  static void columns(const T* x, int64_t row, int64_t rows, int64_t width, State* states) {
    constexpr int lanes = Vec<T>::lanes;
    constexpr int64_t block = 32;
    T extremes[strip_width + lanes], counts[strip_width + lanes];
    for (int64_t c = 0; c < width; ++c) states[c] = {Step::start, 0};
    for (int64_t start = 0; start < rows; start += block) {
      const int64_t count = min_of(block, rows - start);
      const T* from = x + start * row;
      fold_columns<Step>(from, row, count, width, extremes);
      for (int64_t c = 0; c < width + lanes; ++c) counts[c] = 0;
      for (int64_t r = 0; r < count; ++r) {
        int64_t c = 0;
        for (; c + lanes <= width; c += lanes)
          store(counts + c, load(counts + c) + keep(load(from + r * row + c) == load(extremes + c), Vec<T>(1.0)));
        for (; c < width; ++c) counts[c] += T(from[r * row + c] == extremes[c]);
      }
      for (int64_t c = 0; c < width; ++c) states[c] = merge(states[c], 0, {double(extremes[c]), double(counts[c])}, 0);
    }
  }

  static State merge(State a, int64_t, State b, int64_t) {
    const double extreme = Step::combine(a.first, b.first);
    return {extreme, (a.first == extreme ? a.second : 0) + (b.first == extreme ? b.second : 0)};
  }
};

}  // namespace extensor::EXTENSOR_ISA
