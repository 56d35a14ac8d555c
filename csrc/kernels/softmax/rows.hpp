// Softmax of one row of neighbours. Sums are added up in float64.
#pragma once

#include "kernels/elementwise/vecmath.hpp"
#include "kernels/reduce/fold.hpp"

namespace extensor::EXTENSOR_ISA {

// body(i, count): the vectors of a row of n elements; the last one may have fewer elements than lanes.
template <class T, class Body>
EXTENSOR_INLINE void for_each_vector(int64_t n, const Body& body) {
  int64_t i = 0;
  for (; i + Vec<T>::lanes <= n; i += Vec<T>::lanes) body(i, Vec<T>::lanes);
  if (i < n) body(i, n - i);
}

// Sum of f(i, count) over the vectors of a row; the lanes that do not exist must be 0.
template <class T, class Function>
EXTENSOR_INLINE double sum_vectors(int64_t n, const Function& f) {
  constexpr int lanes = Vec<T>::lanes, wide = Vec<double>::lanes;
  Vec<double> acc[lanes / wide];
  for (auto& a : acc) a = Vec<double>(0.0);
  for_each_vector<T>(n, [&](int64_t i, int64_t count) EXTENSOR_INLINE_LAMBDA {
    const Vec<T> value = f(i, count);
    for (int part = 0; part < lanes / wide; ++part) acc[part] = acc[part] + widened_part(value, part);
  });
  for (int part = 1; part < lanes / wide; ++part) acc[0] = acc[0] + acc[part];
  return fold_lanes<Add>(acc[0]);
}

// e = exp(x - max), kept in y, and their sum.
template <class T>
EXTENSOR_INLINE void softmax_row(const T* x, int64_t n, T* y) {
  const Vec<T> largest(fold_row<Largest, T>(x, n));
  const Vec<T> sum(sum_vectors<T>(n, [&](int64_t i, int64_t count) EXTENSOR_INLINE_LAMBDA {
    const Vec<T> e = exp(load_first(x + i, count, T(-__builtin_inf())) - largest);
    store_first(y + i, e, count);
    return count == Vec<T>::lanes ? e : load_first(y + i, count);
  }));
  for_each_vector<T>(n, [&](int64_t i, int64_t count) EXTENSOR_INLINE_LAMBDA {
    store_first(y + i, load_first(y + i, count) / sum, count);
  });
}

template <class T>
EXTENSOR_INLINE void softmax_backward_row(const T* g, const T* y, int64_t n, T* out) {
  const Vec<T> sum(sum_vectors<T>(n, [&](int64_t i, int64_t count) EXTENSOR_INLINE_LAMBDA {
    return load_first(g + i, count) * load_first(y + i, count);
  }));
  for_each_vector<T>(n, [&](int64_t i, int64_t count) EXTENSOR_INLINE_LAMBDA {
    store_first(out + i, load_first(y + i, count) * (load_first(g + i, count) - sum), count);
  });
}

// The logarithm of the sum of exp(x - largest).
template <class T>
EXTENSOR_INLINE double log_of_sum(const T* x, int64_t n, Vec<T> largest) {
  const double sum = sum_vectors<T>(n, [&](int64_t i, int64_t count) EXTENSOR_INLINE_LAMBDA {
    const Vec<T> e = exp(load_first(x + i, count, T(-__builtin_inf())) - largest);
    if (count == Vec<T>::lanes) return e;
    T lanes[Vec<T>::lanes];
    store(lanes, e);
    return load_first(lanes, count);
  });
  return __builtin_log(sum);
}

template <class T>
EXTENSOR_INLINE void log_softmax_row(const T* x, int64_t n, T* y) {
  const Vec<T> largest(fold_row<Largest, T>(x, n));
  const Vec<T> log_sum(log_of_sum(x, n, largest));
  for_each_vector<T>(n, [&](int64_t i, int64_t count) EXTENSOR_INLINE_LAMBDA {
    store_first(y + i, load_first(x + i, count) - largest - log_sum, count);
  });
}

template <class T>
EXTENSOR_INLINE void log_softmax_backward_row(const T* g, const T* y, int64_t n, T* out) {
  const Vec<T> sum(sum_vectors<T>(n, [&](int64_t i, int64_t count) EXTENSOR_INLINE_LAMBDA { return load_first(g + i, count); }));
  for_each_vector<T>(n, [&](int64_t i, int64_t count) EXTENSOR_INLINE_LAMBDA {
    store_first(out + i, load_first(g + i, count) - exp(load_first(y + i, count)) * sum, count);
  });
}

}  // namespace extensor::EXTENSOR_ISA
