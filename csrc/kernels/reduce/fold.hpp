// Reductions that combine elements one by one: sum, product, largest, smallest.
#pragma once

#include <utility>

#include "core/whole.hpp"
#include "core/wide.hpp"

namespace extensor::EXTENSOR_ISA {

// What is known of the elements seen so far; what the two numbers mean is up to the reduction.
struct State {
  double first, second;
};

struct Add {
  static constexpr double start = 0;
  static EXTENSOR_INLINE double combine(double a, double b) { return a + b; }
  // 1 * b + a is a + b, on the multipliers: the adders are busy widening float to double.
  template <class T>
  static EXTENSOR_INLINE Vec<T> combine(Vec<T> a, Vec<T> b) { return has_fma ? fma(b, Vec<T>(1.0), a) : a + b; }
  template <class T>
  static EXTENSOR_INLINE Group<T> combine(const Group<T>& a, const Group<T>& b) { return EXTENSOR_BY_PARTS(combine(a.part[p], b.part[p])); }
};
struct Multiply {
  static constexpr double start = 1;
  template <class V>
  static EXTENSOR_INLINE V combine(V a, V b) { return a * b; }
};
// A nan wins and stays.
struct Largest {
  static constexpr double start = -__builtin_inf();
  template <class T>
  static EXTENSOR_INLINE Vec<T> combine(Vec<T> a, Vec<T> b) { return select(isnan(a), a, at_least(a, b)); }
  template <class T>
  static EXTENSOR_INLINE T combine(T a, T b) { return b > a || b != b ? b : a; }
};
struct Smallest {
  static constexpr double start = __builtin_inf();
  template <class T>
  static EXTENSOR_INLINE Vec<T> combine(Vec<T> a, Vec<T> b) { return select(isnan(a), a, at_most(a, b)); }
  template <class T>
  static EXTENSOR_INLINE T combine(T a, T b) { return b < a || b != b ? b : a; }
};

// Lane i gets what is in lane i + by, counted round.
template <class A, int... lane>
EXTENSOR_INLINE Vec<A> rotated(Vec<A> value, int by, std::integer_sequence<int, lane...>) {
  typename Vec<A>::RawInteger from = {(lane + by) % Vec<A>::lanes...};
#if defined(__clang__)
  return typename Vec<A>::Raw{value.v[from[lane]]...};
#else
  return __builtin_shuffle(value.v, from);
#endif
}

// The lanes of a vector combined in halves.
template <class Step, class A>
EXTENSOR_INLINE double fold_lanes(Vec<A> value) {
  for (int half = Vec<A>::lanes / 2; half > 0; half /= 2)
    value = Step::combine(value, rotated(value, half, std::make_integer_sequence<int, Vec<A>::lanes>()));
  return double(value.v[0]);
}

template <class Step, class A>
EXTENSOR_INLINE double fold_lanes(Group<A> value) {
#pragma GCC unroll 2
  for (int half = wide_parts / 2; half > 0; half /= 2)
#pragma GCC unroll 2
    for (int p = 0; p < half; ++p) value.part[p] = Step::combine(value.part[p], value.part[p + half]);
  return fold_lanes<Step>(value.part[0]);
}

// Lane i of the result: the lanes of values[i] combined, neighbours first. As many vectors as they have lanes share the steps that one alone
// would take with most lanes idle. Leaves nothing of use in `values`.
template <class Step, class A>
EXTENSOR_INLINE Vec<A> fold_lanes_of_each(Vec<A> (&values)[Vec<A>::lanes]) {
#pragma GCC unroll 4
  for (int half = Vec<A>::lanes / 2; half > 0; half /= 2) {
#pragma GCC unroll 8
    for (int i = 0; i < half; ++i) {
      Vec<A> even, odd;
      split_pairs(values[2 * i], values[2 * i + 1], even, odd);
      values[i] = Step::combine(even, odd);
    }
  }
  return values[0];
}

template <class Step, class A>
EXTENSOR_INLINE Group<A> fold_lanes_of_each(Group<A> (&values)[wide_lanes<A>]) {
  constexpr int lanes = Vec<A>::lanes;
  Group<A> result;
#pragma GCC unroll 4
  for (int q = 0; q < wide_parts; ++q) {
    Vec<A> parts[wide_parts];
    for (int p = 0; p < wide_parts; ++p) {
      Vec<A> some[lanes];
      for (int i = 0; i < lanes; ++i) some[i] = values[q * lanes + i].part[p];
      parts[p] = fold_lanes_of_each<Step>(some);
    }
    for (int half = wide_parts / 2; half > 0; half /= 2)
      for (int p = 0; p < half; ++p) parts[p] = Step::combine(parts[2 * p], parts[2 * p + 1]);
    result.part[q] = parts[0];
  }
  return result;
}

// The sum or product of n neighbours in float64: eight chains of four lanes. Half of a register of AVX-512, whose own way
// (folds_in_halves) is faster and combines the same elements.
template <class Step>
EXTENSOR_INLINE double fold_in_fours(const float* x, int64_t n) {
  if constexpr (folds_in_halves) {
    return fold_widened<std::is_same_v<Step, Add>>(x, n, float(Step::start));
  } else {
    constexpr int lanes = 4, chains = 8, wide = Vec<double>::lanes, parts = lanes / wide;
    Vec<double> acc[chains][parts];
#pragma GCC unroll 8
    for (auto& sum : acc)
#pragma GCC unroll 2
      for (auto& part : sum) part = Vec<double>(Step::start);
    int64_t i = 0;
    for (; i + lanes * chains <= n; i += lanes * chains)
#pragma GCC unroll 8
      for (int c = 0; c < chains; ++c)
#pragma GCC unroll 2
        for (int p = 0; p < parts; ++p) acc[c][p] = Step::combine(acc[c][p], load_as<double>(x + i + c * lanes + p * wide));
    for (; i + lanes <= n; i += lanes)
      for (int p = 0; p < parts; ++p) acc[0][p] = Step::combine(acc[0][p], load_as<double>(x + i + p * wide));
    for (int p = 0; p < parts && i + p * wide < n; ++p)
      acc[1][p] = Step::combine(acc[1][p], load_first_as<double>(x + i + p * wide, n - i - p * wide, Step::start));
#pragma GCC unroll 4
    for (int step = 1; step < chains; step *= 2)
      for (int c = 0; c < chains; c += 2 * step)
        for (int p = 0; p < parts; ++p) acc[c][p] = Step::combine(acc[c][p], acc[c + step][p]);
    if constexpr (parts == 2) acc[0][0] = Step::combine(acc[0][0], acc[0][parts - 1]);
    return fold_lanes<Step>(acc[0][0]);
  }
}

// n neighbours. A is the type of the accumulators: eight chains of them hide the latency of the additions. Wide vectors of
// several registers take a pass for each of them over what the first-level cache holds, for chains that do not fit the registers
// would be slower.
template <class Step, class A, class T>
EXTENSOR_INLINE double fold_row(const T* x, int64_t n) {
  if constexpr (sizeof(A) > sizeof(T) && has_fma) {
    return fold_in_fours<Step>(x, n);
  } else {
    constexpr int lanes = wide_lanes<A>, chains = 8;
    Wide<A> total{Step::start};
    int64_t i = 0;
    if (n >= lanes * chains) {
      constexpr int64_t step = lanes * chains, stretch = wide_parts == 1 ? INT64_MAX / 2 : 12 * 1024 / int64_t(sizeof(T)) / step * step;
      const int64_t end = n / step * step;
      Vec<A> sums[wide_parts][chains];
      for (int p = 0; p < wide_parts; ++p)
        for (int c = 0; c < chains; ++c) sums[p][c] = load_as<A>(x + p * Vec<A>::lanes + c * lanes);
      for (int64_t start = step; start < end; start += stretch) {
        const int64_t stop = min_of(end, start + stretch);
        for (int p = 0; p < wide_parts; ++p) {
          const T* from = x + p * Vec<A>::lanes;
          Vec<A> acc[chains];
          for (int c = 0; c < chains; ++c) acc[c] = sums[p][c];
          for (i = start; i < stop; i += step)
            for (int c = 0; c < chains; ++c) acc[c] = Step::combine(acc[c], load_as<A>(from + i + c * lanes));
          for (int c = 0; c < chains; ++c) sums[p][c] = acc[c];
        }
      }
      i = end;
      for (int p = 0; p < wide_parts; ++p) {
        for (int half = chains / 2; half > 0; half /= 2)
          for (int c = 0; c < half; ++c) sums[p][c] = Step::combine(sums[p][c], sums[p][c + half]);
        part_of(total, p) = sums[p][0];
      }
    }
    const auto add = [&](const Wide<A>& more) EXTENSOR_INLINE_LAMBDA {
#pragma GCC unroll 4
      for (int p = 0; p < wide_parts; ++p) part_of(total, p) = Step::combine(part_of(total, p), part_of(more, p));
    };
    for (; i + lanes <= n; i += lanes) add(load_wide_as<A>(x + i));
    if (i < n) add(load_wide_as<A>(x + i, n - i, A(Step::start)));
    return fold_lanes<Step>(total);
  }
}

// totals[c] = combine(totals[c], x[0, c], ..., x[Rows - 1, c]) for `width` neighbouring columns.
template <int Rows, class Step, class A, class T>
EXTENSOR_INLINE void fold_some_rows(const T* x, int64_t row, int64_t width, A* totals) {
  constexpr int lanes = Vec<A>::lanes;
  const auto combined = [&](const auto& piece) EXTENSOR_INLINE_LAMBDA {
    Vec<A> parts[Rows];
    for (int r = 0; r < Rows; ++r) parts[r] = piece(x + r * row);
    for (int half = Rows / 2; half > 0; half /= 2)
      for (int r = 0; r < half; ++r) parts[r] = Step::combine(parts[r], parts[r + half]);
    return parts[0];
  };
  int64_t c = 0;
  for (; c + lanes <= width; c += lanes) {
    const auto whole = [&](const T* from) EXTENSOR_INLINE_LAMBDA { return load_as<A>(from + c); };
    store(totals + c, Step::combine(load(totals + c), combined(whole)));
  }
  if (c == width) return;
  const auto rest = [&](const T* from) EXTENSOR_INLINE_LAMBDA { return load_first_as<A>(from + c, width - c, A(0)); };
  store_first(totals + c, Step::combine(load_first_as<A>(totals + c, width - c, A(0)), combined(rest)), width - c);
}

// Down `rows` rows: totals[c] = combine over r of x[r, c]. Eight rows at a time, so that the totals are not fetched and
// stored for each, and memory is read in several places at once.
template <class Step, class A, class T>
EXTENSOR_INLINE void fold_columns(const T* x, int64_t row, int64_t rows, int64_t width, A* totals) {
  for (int64_t c = 0; c < width; ++c) totals[c] = A(Step::start);
  int64_t r = 0;
  for (; r + 8 <= rows; r += 8) fold_some_rows<8, Step>(x + r * row, row, width, totals);
  for (; r < rows; ++r) fold_some_rows<1, Step>(x + r * row, row, width, totals);
}

constexpr int64_t strip_width = 1024;

// Accumulators: float64 where rounding counts, the elements' own type where it does not.
template <class T, class Step, class A, bool Mean = false>
struct Fold {
  static State row(const T* x, int64_t n) {
    constexpr int64_t block = 8192;  // a longer chain of additions would lose digits
    double total = Step::start;
    for (; n > 0; n -= block, x += block) total = Step::combine(total, fold_row<Step, A>(x, min_of(n, block)));
    return {total, 0};
  }
  static void columns(const T* x, int64_t row, int64_t rows, int64_t width, State* states) {
    constexpr int64_t block = 256;  // rows; a longer chain of additions would lose digits
    A totals[strip_width];
    for (int64_t c = 0; c < width; ++c) states[c] = {Step::start, 0};
    for (int64_t start = 0; start < rows; start += block) {
      fold_columns<Step>(x + start * row, row, min_of(block, rows - start), width, totals);
      for (int64_t c = 0; c < width; ++c) states[c].first = Step::combine(states[c].first, double(totals[c]));
    }
  }
  static State merge(State a, int64_t, State b, int64_t) { return {Step::combine(a.first, b.first), 0}; }
  static double result(State total, double count, double) { return Mean ? total.first / count : total.first; }
};

}  // namespace extensor::EXTENSOR_ISA
