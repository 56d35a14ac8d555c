// Mean and variance of a row of neighbours, and sums over it.
#pragma once

#include "kernels/norm/centre.hpp"

namespace extensor::EXTENSOR_ISA {

// Sums over the vectors of a row of what f(i, count, values) puts into `values`; the lanes that do not exist must be 0.
// Four vectors are added in pairs before they are widened to float64: widening each would take longer than all the rest.
template <class T, int Count, class Function>
EXTENSOR_INLINE Sums<Count> sum_in_fours(int64_t n, const Function& f) {
  constexpr int lanes = Vec<T>::lanes, parts = lanes / Vec<double>::lanes;
  Vec<double> acc[Count][parts];
  for (auto& sum : acc)
    for (auto& part : sum) part = Vec<double>(0.0);
  const auto add = [&](const Vec<T>(&values)[Count]) EXTENSOR_INLINE_LAMBDA {
    for (int s = 0; s < Count; ++s)
      for (int part = 0; part < parts; ++part) acc[s][part] = acc[s][part] + widened_part(values[s], part);
  };
  int64_t i = 0;
  for (; i + 4 * lanes <= n; i += 4 * lanes) {
    Vec<T> of[4][Count];
    for (int k = 0; k < 4; ++k) f(i + k * lanes, lanes, of[k]);
    for (int s = 0; s < Count; ++s) of[0][s] = (of[0][s] + of[1][s]) + (of[2][s] + of[3][s]);
    add(of[0]);
  }
  for (; i < n; i += lanes) {
    Vec<T> values[Count];
    f(i, n - i < lanes ? n - i : lanes, values);
    add(values);
  }
  Sums<Count> sums;
  for (int s = 0; s < Count; ++s) {
    Vec<double> total = acc[s][0];
    for (int part = 1; part < parts; ++part) total = total + acc[s][part];
    sums.of[s] = fold_lanes<Add>(total);
  }
  return sums;
}

// Summed up around the first element, so that only the distances are rounded, not a large mean.
template <class T>
EXTENSOR_INLINE double mean_of(const T* x, int64_t n) {
  const T first = x[0];
  const Vec<T> shift{double(first)};
  const auto distance = [&](int64_t i, int64_t count, Vec<T>(&values)[1]) EXTENSOR_INLINE_LAMBDA {
    values[0] = load_first(x + i, count, first) - shift;
  };
  return double(first) + sum_in_fours<T, 1>(n, distance).of[0] / double(n);
}

// One over the root of the mean square around `centred`.
template <class T>
EXTENSOR_INLINE double inverse_of(const T* x, int64_t n, const Centre<T>& centred, double eps) {
  const auto square = [&](int64_t i, int64_t count, Vec<T>(&values)[1]) EXTENSOR_INLINE_LAMBDA {
    const Vec<T> c = centred(load_first(x + i, count));
    values[0] = existing(c * c, count);
  };
  return 1 / __builtin_sqrt(sum_in_fours<T, 1>(n, square).of[0] / double(n) + eps);
}

}  // namespace extensor::EXTENSOR_ISA
