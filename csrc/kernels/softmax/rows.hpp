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

template <int Count>
struct Sums {
  double of[Count];
};

// Sums over the wide vectors of a row of what f(i, count, values) puts into `values`; the lanes that do not exist must be 0.
// Two vectors at a time, which do not wait for each other's additions.
template <class T, int Count, class Function>
EXTENSOR_INLINE Sums<Count> sum_several(int64_t n, const Function& f) {
  constexpr int lanes = wide_lanes<T>, parts = lanes / wide_lanes<double>;
  Wide<double> acc[2][Count][parts];
  for (auto& chain : acc)
    for (auto& sum : chain)
      for (auto& part : sum) part = Wide<double>(0.0);
  const auto add = [&](int chain, int64_t i, int64_t count) EXTENSOR_INLINE_LAMBDA {
    Wide<T> values[Count];
    f(i, count, values);
    for (int s = 0; s < Count; ++s)
      for (int part = 0; part < parts; ++part) acc[chain][s][part] = acc[chain][s][part] + widened_part(values[s], part);
  };
  int64_t i = 0;
  for (; i + 2 * lanes <= n; i += 2 * lanes) add(0, i, lanes), add(1, i + lanes, lanes);
  if (i + lanes <= n) add(0, i, lanes), i += lanes;
  if (i < n) add(1, i, n - i);
  Sums<Count> sums;
  for (int s = 0; s < Count; ++s) {
    Wide<double> total = acc[0][s][0] + acc[1][s][0];
    for (int part = 1; part < parts; ++part) total = total + (acc[0][s][part] + acc[1][s][part]);
    sums.of[s] = fold_lanes<Add>(total);
  }
  return sums;
}

// The sum of f(i, count).
template <class T, class Function>
EXTENSOR_INLINE double sum_vectors(int64_t n, const Function& f) {
  return sum_several<T, 1>(n, [&](int64_t i, int64_t count, Wide<T>(&values)[1]) EXTENSOR_INLINE_LAMBDA { values[0] = f(i, count); }).of[0];
}

// The sum of f(i, count), numbers of one sign: of two vectors their sum is widened, which is the slower part.
template <class T, class Function>
EXTENSOR_INLINE double sum_pairs(int64_t n, const Function& f) {
  constexpr int lanes = wide_lanes<T>, parts = lanes / wide_lanes<double>;
  Wide<double> sums[parts];
  for (auto& sum : sums) sum = Wide<double>(0.0);
  const auto add = [&](const Wide<T>& values) EXTENSOR_INLINE_LAMBDA {
    for (int part = 0; part < parts; ++part) sums[part] = sums[part] + widened_part(values, part);
  };
  int64_t i = 0;
  for (; i + 2 * lanes <= n; i += 2 * lanes) add(f(i, lanes) + f(i + lanes, lanes));
  if (i + lanes <= n) add(f(i, lanes)), i += lanes;
  if (i < n) add(f(i, n - i));
  for (int part = 1; part < parts; ++part) sums[0] = sums[0] + sums[part];
  return fold_lanes<Add>(sums[0]);
}

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
