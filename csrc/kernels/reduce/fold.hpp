// Reductions that combine elements one by one: sum, product, largest, smallest.
#pragma once

#include <utility>

#include "core/whole.hpp"
#include "core/partial.hpp"

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

// Lane i of the result: the lanes of values[i] combined. As many vectors as they have lanes share the steps that one alone
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

// n neighbours. A is the type of the accumulators: eight vectors of them hide the latency of the additions.
template <class Step, class A, class T>
EXTENSOR_INLINE double fold_row(const T* x, int64_t n) {
  if constexpr (sizeof(A) > sizeof(T) && folds_in_halves) return fold_widened<std::is_same_v<Step, Add>>(x, n, float(Step::start));
  constexpr int lanes = Vec<A>::lanes, chains = 8;
  Vec<A> total(Step::start);
  int64_t i = 0;
  if (n >= lanes * chains) {
    Vec<A> acc[chains];
    for (int c = 0; c < chains; ++c) acc[c] = load_as<A>(x + c * lanes);
    for (i = lanes * chains; i + lanes * chains <= n; i += lanes * chains)
      for (int c = 0; c < chains; ++c) acc[c] = Step::combine(acc[c], load_as<A>(x + i + c * lanes));
    for (int half = chains / 2; half > 0; half /= 2)
      for (int c = 0; c < half; ++c) acc[c] = Step::combine(acc[c], acc[c + half]);
    total = acc[0];
  }
  for (; i + lanes <= n; i += lanes) total = Step::combine(total, load_as<A>(x + i));
  if (i < n) total = Step::combine(total, load_first_as<A>(x + i, n - i, A(Step::start)));
  return fold_lanes<Step>(total);
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
