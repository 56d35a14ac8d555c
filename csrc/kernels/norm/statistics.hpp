// Mean and variance of a row of neighbours, and sums over it.
#pragma once

#include "kernels/norm/centre.hpp"

namespace extensor::EXTENSOR_ISA {

// Sums over the vectors of a row of what f(i, count, sums) adds to `sums`; it must add 0 to the lanes that do not exist.
// Four vectors are added up before they are widened to float64: widening each would take longer than all the rest.
template <class T, int Count, class Function>
EXTENSOR_INLINE Sums<Count> sum_in_fours(int64_t n, const Function& f) {
  constexpr int lanes = Vec<T>::lanes, parts = lanes / Vec<double>::lanes;
  Vec<double> acc[Count][parts];
  for (auto& sum : acc)
    for (auto& part : sum) part = Vec<double>(0.0);
  Vec<T> few[Count];
  const auto start = [&]() EXTENSOR_INLINE_LAMBDA {
    for (auto& sum : few) sum = Vec<T>(0.0);
  };
  const auto widen = [&]() EXTENSOR_INLINE_LAMBDA {
    for (int s = 0; s < Count; ++s)
      for (int part = 0; part < parts; ++part) acc[s][part] = acc[s][part] + widened_part(few[s], part);
  };
  int64_t i = 0;
  for (; i + 4 * lanes <= n; i += 4 * lanes) {
    start();
    for (int k = 0; k < 4; ++k) f(i + k * lanes, lanes, few);
    widen();
  }
  start();
  for (; i < n; i += lanes) f(i, n - i < lanes ? n - i : lanes, few);
  widen();
  Sums<Count> sums;
  for (int s = 0; s < Count; ++s) {
    Vec<double> total = acc[s][0];
    for (int part = 1; part < parts; ++part) total = total + acc[s][part];
    sums.of[s] = fold_lanes<Add>(total);
  }
  return sums;
}

// The mean, summed up around the first element, so that only the distances are rounded, not a large mean.
template <class T>
EXTENSOR_INLINE double mean_of(const T* x, int64_t n) {
  const T first = x[0];
  const Vec<T> shift{double(first)};
  const auto distance = [&](int64_t i, int64_t count, Vec<T>(&sums)[1]) EXTENSOR_INLINE_LAMBDA {
    sums[0] = sums[0] + (load_first(x + i, count, first) - shift);
  };
  return double(first) + sum_in_fours<T, 1>(n, distance).of[0] / double(n);
}

// u = (x - mean) / s with s^2 the mean square around the mean, plus eps. The mean is taken away in two parts: see Centre.
template <class T>
struct Normaliser {
  Vec<T> high, inverse, rest;

  Normaliser() = default;
  // The sum of squares around `high` exceeds that around the mean by n low^2. Where nothing is taken away, the mean is 0.
  EXTENSOR_INLINE Normaliser(const T* x, int64_t n, double mean, double eps) : high(double(T(mean))) {
    const double low = mean - double(T(mean));
    const Vec<T> centre = high;
    const auto square = [&](int64_t i, int64_t count, Vec<T>(&sums)[1]) EXTENSOR_INLINE_LAMBDA {
      const Vec<T> d = load_first(x + i, count, T(mean)) - centre;
      sums[0] = fma(d, d, sums[0]);
    };
    const double squares = sum_in_fours<T, 1>(n, square).of[0] / double(n) - low * low;
    const double one_over = 1 / __builtin_sqrt((squares < 0 ? 0 : squares) + eps);
    inverse = Vec<T>(one_over), rest = Vec<T>(-low * one_over);
  }
  EXTENSOR_INLINE Vec<T> operator()(Vec<T> x) const { return fma(x - high, inverse, rest); }
};

}  // namespace extensor::EXTENSOR_ISA
