// Mean and variance of a row of neighbours, and sums over it.
#pragma once

#include "kernels/norm/centre.hpp"

namespace extensor::EXTENSOR_ISA {

template <int Count>
struct SumsInLanes {
  Wide<double> of[Count];
};

// Sums over the wide vectors of a row of what f(i, count, sums) adds to `sums`; it must add 0 to the lanes that do not exist.
// Four vectors are added up before they are widened to float64: widening each would take longer than all the rest.
template <class T, int Count, class Function>
EXTENSOR_INLINE SumsInLanes<Count> lanes_in_fours(int64_t n, const Function& f) {
  constexpr int lanes = wide_lanes<T>, parts = lanes / wide_lanes<double>;
  Wide<double> acc[Count][parts];
  for (auto& sum : acc)
    for (auto& part : sum) part = Wide<double>(0.0);
  Wide<T> few[Count];
  const auto start = [&]() EXTENSOR_INLINE_LAMBDA {
    for (auto& sum : few) sum = Wide<T>(0.0);
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
  if (i < n) {
    start();
    for (; i < n; i += lanes) f(i, n - i < lanes ? n - i : lanes, few);
    widen();
  }
  SumsInLanes<Count> sums;
  for (int s = 0; s < Count; ++s) {
    sums.of[s] = acc[s][0];
    for (int part = 1; part < parts; ++part) sums.of[s] = sums.of[s] + acc[s][part];
  }
  return sums;
}

template <class T, int Count, class Function>
EXTENSOR_INLINE Sums<Count> sum_in_fours(int64_t n, const Function& f) {
  const SumsInLanes<Count> lanes = lanes_in_fours<T, Count>(n, f);
  Sums<Count> sums;
  for (int s = 0; s < Count; ++s) sums.of[s] = fold_lanes<Add>(lanes.of[s]);
  return sums;
}

// The sum of the distances of a row from its first element.
template <class T>
EXTENSOR_INLINE Wide<double> distances_in_lanes(const T* x, int64_t n) {
  const T first = x[0];
  const Vec<T> shift{double(first)};
  return lanes_in_fours<T, 1>(n, [&](int64_t i, int64_t count, Wide<T>(&sums)[1]) EXTENSOR_INLINE_LAMBDA {
    sums[0] = sums[0] + (load_wide(x + i, count, first) - shift);
  }).of[0];
}

// The sum of the squares of the distances of a row from `centre`.
template <class T>
EXTENSOR_INLINE Wide<double> squares_in_lanes(const T* x, int64_t n, T centre) {
  const Vec<T> shift{double(centre)};
  return lanes_in_fours<T, 1>(n, [&](int64_t i, int64_t count, Wide<T>(&sums)[1]) EXTENSOR_INLINE_LAMBDA {
    const Wide<T> d = load_wide(x + i, count, centre) - shift;
    sums[0] = fma(d, d, sums[0]);
  }).of[0];
}

// Lane k: the sum of the lanes of parts[k]. Of one vector, in all lanes; added in the same order.
template <int Count>
EXTENSOR_INLINE Wide<double> sums_of_lanes(Wide<double> (&parts)[Count]) {
  if constexpr (Count == wide_lanes<double>) return fold_lanes_of_each<Add>(parts);
  static_assert(Count == 1 || Count == wide_lanes<double>);
  Vec<double> sums[wide_parts];
  for (int p = 0; p < wide_parts; ++p) {
    sums[p] = part_of(parts[0], p);
    for (int half = Vec<double>::lanes / 2; half > 0; half /= 2) {
      Vec<double> even, odd;
      split_pairs(sums[p], sums[p], even, odd);
      sums[p] = Add::combine(even, odd);
    }
  }
  for (int half = wide_parts / 2; half > 0; half /= 2)
    for (int p = 0; p < half; ++p) sums[p] = Add::combine(sums[2 * p], sums[2 * p + 1]);
  return Wide<double>(sums[0]);
}

// u = (x - mean) / s with s^2 the mean square around the mean, plus eps. The mean is taken away in two parts: see Centre.
template <class T>
struct Normaliser {
  Vec<T> high, inverse, rest;

  template <class V>
  EXTENSOR_INLINE V operator()(V x) const { return fma(x - high, inverse, rest); }
};

// Between these, s^2 and the squares it is made of are ordinary numbers of the format. (Of 1e19, a float, the square is not.)
template <class T>
constexpr double least_square = sizeof(T) == 4 ? 1e-30 : 1e-290;

// Those of one row, or of as many as a wide vector has doubles: then means and roots are taken of all at once. False if one of them
// is out of the range of the format, or not a number: such rows want to be tamed.
template <class T, int Count>
EXTENSOR_INLINE bool normalise_rows(const T* x, int64_t n, bool centre, double eps, Normaliser<T> (&units)[Count]) {
  constexpr int lanes = wide_lanes<double>;
  const Vec<double> length{double(n)};
  Wide<double> parts[Count], mean(0.0);
  if (centre) {  // summed up around the first element, so that only the distances are rounded, not a large mean
    double firsts[lanes];
    for (int k = 0; k < lanes; ++k) firsts[k] = double(x[k % Count * n]);
    for (int k = 0; k < Count; ++k) parts[k] = distances_in_lanes(x + k * n, n);
    mean = load_wide(firsts) + sums_of_lanes(parts) / length;
  }
  T high[lanes], inverse[lanes], rest[lanes];
  store_wide_as<T>(high, mean);
  const Wide<double> lows = mean - load_wide_as<double>(high);
  for (int k = 0; k < Count; ++k) parts[k] = squares_in_lanes(x + k * n, n, high[k]);
  // The sum of squares around `high` exceeds that around the mean by n low^2. Where nothing is taken away, the mean is 0.
  const Wide<double> sums = sums_of_lanes(parts);
  bool ordinary = true;
  for (int p = 0; p < (Count == 1 ? 1 : wide_parts); ++p) {
    const Vec<double> low = part_of(lows, p), squares = part_of(sums, p) / length - low * low;
    const Vec<double> shifted = at_least(0.0, squares) + eps, one_over = 1.0 / sqrt(shifted);
    store_as<T>(inverse + p * Vec<double>::lanes, one_over), store_as<T>(rest + p * Vec<double>::lanes, -low * one_over);
    ordinary = ordinary && !any(!(shifted > least_square<T> && shifted < 1 / least_square<T>));
  }
  for (int k = 0; k < Count; ++k) units[k] = {broadcast(high[k]), broadcast(inverse[k]), broadcast(rest[k])};
  return ordinary;
}

// A row of extreme numbers times a power of two that makes them ordinary: (x - mean) / s stays the same if eps is multiplied
// by the square of it, and 1 / s is `factor` times as large as that of the row in `room`.
template <class T>
struct TamedRow {
  const T* x;
  double eps;
  T factor = 1;

  TamedRow(const T* from, int64_t n, double eps_, T* room) : x(room), eps(eps_) {
    constexpr int most = sizeof(T) == 4 ? 100 : 500;
    T largest = 0;
    for (int64_t i = 0; i < n; ++i) largest = __builtin_fabs(double(from[i])) > double(largest) ? T(__builtin_fabs(double(from[i]))) : largest;
    if (largest > 0 && largest <= (sizeof(T) == 4 ? T(__FLT_MAX__) : T(__DBL_MAX__))) {
      int exponent = -__builtin_ilogb(double(largest));
      exponent = exponent > most ? most : exponent < -most ? -most : exponent;
      factor = T(__builtin_ldexp(1.0, exponent));
      eps *= double(factor) * double(factor);
    }
    for (int64_t i = 0; i < n; ++i) room[i] = from[i] * factor;
  }
};

// body(x, normaliser, factor) for one row, or for what it is when tamed, in `room`; see TamedRow.
template <class T, class Body>
EXTENSOR_INLINE void with_normaliser(const T* x, int64_t n, bool centre, double eps, T* room, const Body& body) {
  Normaliser<T> unit[1];
  if (normalise_rows(x, n, centre, eps, unit)) return body(x, unit[0], T(1));
  const TamedRow<T> tamed(x, n, eps, room);
  normalise_rows(tamed.x, n, centre, tamed.eps, unit);
  body(tamed.x, unit[0], tamed.factor);
}

}  // namespace extensor::EXTENSOR_ISA
