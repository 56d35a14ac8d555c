// Walks over the vectors of one row of neighbours, and sums over them, which are added up in float64.
#pragma once

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

}  // namespace extensor::EXTENSOR_ISA
