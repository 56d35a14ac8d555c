// Softmax of one row of neighbours. Sums are added up in float64.
#pragma once

#include "kernels/elementwise/vecmath.hpp"
#include "kernels/reduce/row_sums.hpp"

namespace extensor::EXTENSOR_ISA {

// e/sum for sum >= 1, as exact as a division and several times as fast: what is left over corrects the product.
template <class T>
EXTENSOR_INLINE Vec<T> share_of(Vec<T> e, Vec<T> sum, Vec<T> inverse) {
  if constexpr (!has_fma) return e / sum;
  const Vec<T> quotient = e * inverse;
  return fma(fma(-quotient, sum, e), inverse, quotient);
}

// e = exp(x - max), kept in y, and their sum.
template <class T>
EXTENSOR_INLINE void softmax_row(const T* x, int64_t n, T* y) {
  const Vec<T> largest(fold_row<Largest, T>(x, n));
  const Vec<T> sum(sum_pairs<T>(n, [&](int64_t i, int64_t count) EXTENSOR_INLINE_LAMBDA {
    const Wide<T> e = exp(load_wide(x + i, count, T(-__builtin_inf())) - largest);
    store_wide(y + i, e, count);
    return count == wide_lanes<T> ? e : load_wide(y + i, count);
  }));
  const Vec<T> inverse = 1.0 / sum;
  for_each_vector<T>(n, [&](int64_t i, int64_t count) EXTENSOR_INLINE_LAMBDA {
    store_first(y + i, share_of(load_first(y + i, count), sum, inverse), count);
  });
}

template <class T>
EXTENSOR_INLINE void softmax_backward_row(const T* g, const T* y, int64_t n, T* out) {
  const Vec<T> sum(sum_vectors<T>(n, [&](int64_t i, int64_t count) EXTENSOR_INLINE_LAMBDA {
    return load_wide(g + i, count) * load_wide(y + i, count);
  }));
  for_each_vector<T>(n, [&](int64_t i, int64_t count) EXTENSOR_INLINE_LAMBDA {
    store_first(out + i, load_first(y + i, count) * (load_first(g + i, count) - sum), count);
  });
}

// The sum of exp(x - largest).
template <class T>
EXTENSOR_INLINE double sum_of_exp(const T* x, int64_t n, Vec<T> largest) {
  return sum_pairs<T>(n, [&](int64_t i, int64_t count) EXTENSOR_INLINE_LAMBDA {
    const Wide<T> e = exp(load_wide(x + i, count, T(-__builtin_inf())) - largest);
    if (count == wide_lanes<T>) return e;
    T lanes[wide_lanes<T>];
    store_wide(lanes, e, wide_lanes<T>);
    return load_wide(lanes, count);
  });
}

template <class T>
EXTENSOR_INLINE void log_softmax_row(const T* x, int64_t n, T* y) {
  const Vec<T> largest(fold_row<Largest, T>(x, n));
  const Vec<T> log_sum(__builtin_log(sum_of_exp(x, n, largest)));
  for_each_vector<T>(n, [&](int64_t i, int64_t count) EXTENSOR_INLINE_LAMBDA {
    store_first(y + i, load_first(x + i, count) - largest - log_sum, count);
  });
}

template <class T>
EXTENSOR_INLINE void log_softmax_backward_row(const T* g, const T* y, int64_t n, T* out) {
  const Vec<T> sum(sum_vectors<T>(n, [&](int64_t i, int64_t count) EXTENSOR_INLINE_LAMBDA { return load_wide(g + i, count); }));
  for_each_vector<T>(n, [&](int64_t i, int64_t count) EXTENSOR_INLINE_LAMBDA {
    store_first(out + i, load_first(g + i, count) - exp(load_first(y + i, count)) * sum, count);
  });
}

}  // namespace extensor::EXTENSOR_ISA
