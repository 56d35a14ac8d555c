// Reductions that combine elements one by one: sum, product, largest, smallest.
#pragma once

#include "core/partial.hpp"

namespace extensor::EXTENSOR_ISA {

// What is known of the elements seen so far; what the two numbers mean is up to the reduction.
struct State {
  double first, second;
};

struct Add {
  static constexpr double start = 0;
  template <class V>
  static EXTENSOR_INLINE V combine(V a, V b) { return a + b; }
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
  static EXTENSOR_INLINE Vec<T> combine(Vec<T> a, Vec<T> b) { return select((b > a) || isnan(b), b, a); }
  static EXTENSOR_INLINE double combine(double a, double b) { return b > a || b != b ? b : a; }
};
struct Smallest {
  static constexpr double start = __builtin_inf();
  template <class T>
  static EXTENSOR_INLINE Vec<T> combine(Vec<T> a, Vec<T> b) { return select((b < a) || isnan(b), b, a); }
  static EXTENSOR_INLINE double combine(double a, double b) { return b < a || b != b ? b : a; }
};

// The lanes of a vector combined in halves.
template <class Step, class A>
EXTENSOR_INLINE double fold_lanes(Vec<A> value) {
  A lanes[Vec<A>::lanes];
  store(lanes, value);
  for (int half = Vec<A>::lanes / 2; half > 0; half /= 2)
    for (int i = 0; i < half; ++i) lanes[i] = A(Step::combine(double(lanes[i]), double(lanes[i + half])));
  return double(lanes[0]);
}

// n neighbours. A is the type of the accumulators: eight vectors of them hide the latency of the additions.
template <class Step, class A, class T>
EXTENSOR_INLINE double fold_row(const T* x, int64_t n) {
  constexpr int lanes = Vec<A>::lanes, chains = 8;
  Vec<A> acc[chains];
  for (auto& a : acc) a = Vec<A>(Step::start);
  int64_t i = 0;
  for (; i + lanes * chains <= n; i += lanes * chains)
    for (int c = 0; c < chains; ++c) acc[c] = Step::combine(acc[c], load_as<A>(x + i + c * lanes));
  for (; i + lanes <= n; i += lanes) acc[0] = Step::combine(acc[0], load_as<A>(x + i));
  if (i < n) acc[1] = Step::combine(acc[1], load_first_as<A>(x + i, n - i, A(Step::start)));
  for (int half = chains / 2; half > 0; half /= 2)
    for (int c = 0; c < half; ++c) acc[c] = Step::combine(acc[c], acc[c + half]);
  return fold_lanes<Step>(acc[0]);
}

// Down `rows` rows, for `width` neighbouring columns: totals[c] = combine over r of x[r, c]. Four rows at a time,
// so that the totals are not fetched and stored for each.
template <class Step, class A, class T>
EXTENSOR_INLINE void fold_columns(const T* x, int64_t row, int64_t rows, int64_t width, A* totals) {
  constexpr int lanes = Vec<A>::lanes;
  const int64_t whole = width / lanes * lanes;
  for (int64_t c = 0; c < width; ++c) totals[c] = A(Step::start);
  int64_t r = 0;
  for (; r + 4 <= rows; r += 4) {
    const T* from = x + r * row;
    int64_t c = 0;
    for (; c < whole; c += lanes) {
      const Vec<A> low = Step::combine(load_as<A>(from + c), load_as<A>(from + row + c));
      const Vec<A> high = Step::combine(load_as<A>(from + 2 * row + c), load_as<A>(from + 3 * row + c));
      store(totals + c, Step::combine(load(totals + c), Step::combine(low, high)));
    }
    if (c < width) {
      const auto piece = [&](int64_t i) { return load_first_as<A>(from + i * row + c, width - c, A(0)); };
      const Vec<A> four = Step::combine(Step::combine(piece(0), piece(1)), Step::combine(piece(2), piece(3)));
      store_first(totals + c, Step::combine(load_first_as<A>(totals + c, width - c, A(0)), four), width - c);
    }
  }
  for (; r < rows; ++r) {
    const T* from = x + r * row;
    int64_t c = 0;
    for (; c < whole; c += lanes) store(totals + c, Step::combine(load(totals + c), load_as<A>(from + c)));
    if (c < width)
      store_first(totals + c,
                  Step::combine(load_first_as<A>(totals + c, width - c, A(0)), load_first_as<A>(from + c, width - c, A(0))),
                  width - c);
  }
}

constexpr int64_t strip_width = 512;

constexpr int64_t min_of(int64_t a, int64_t b) { return a < b ? a : b; }

// Accumulators: float64 where rounding counts, the elements' own type where it does not.
template <class T, class Step, class A, bool Mean = false>
struct Fold {
  static State row(const T* x, int64_t n, double) {
    constexpr int64_t block = 8192;  // a longer chain of additions would lose digits
    State total = {fold_row<Step, A>(x, min_of(n, block)), 0};
    for (int64_t start = block; start < n; start += block)
      total.first = Step::combine(total.first, fold_row<Step, A>(x + start, min_of(block, n - start)));
    return total;
  }
  static void columns(const T* x, int64_t row, int64_t rows, int64_t width, State* states) {
    A totals[strip_width];
    fold_columns<Step>(x, row, rows, width, totals);
    for (int64_t c = 0; c < width; ++c) states[c] = {double(totals[c]), 0};
  }
  static State merge(State a, int64_t, State b, int64_t) { return {Step::combine(a.first, b.first), 0}; }
  static double result(State total, double count, double) { return Mean ? total.first / count : total.first; }
};

}  // namespace extensor::EXTENSOR_ISA
