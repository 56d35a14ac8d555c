// Reductions that combine elements one by one: sum, product, largest, smallest.
#pragma once

#include <utility>

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

// n neighbours. A is the type of the accumulators: eight vectors of them hide the latency of the additions.
template <class Step, class A, class T>
EXTENSOR_INLINE double fold_row(const T* x, int64_t n) {
  constexpr int lanes = Vec<A>::lanes, chains = 8;
  Vec<A> total(Step::start);
  int64_t i = 0;
  if (n >= lanes * chains) {
    Vec<A> acc[chains];
    for (int c = 0; c < chains; ++c) acc[c] = load_as<A>(x + c * lanes);
    for (i = lanes * chains; i + lanes * chains <= n; i += lanes * chains) {
      // Many short rows are one long stretch of memory, which the processor does not know.
      for (int line = 0; line < lanes * chains; line += 64 / int(sizeof(T))) __builtin_prefetch(x + i + line + 4096 / sizeof(T));
      for (int c = 0; c < chains; ++c) acc[c] = Step::combine(acc[c], load_as<A>(x + i + c * lanes));
    }
    for (int half = chains / 2; half > 0; half /= 2)
      for (int c = 0; c < half; ++c) acc[c] = Step::combine(acc[c], acc[c + half]);
    total = acc[0];
  }
  for (; i + lanes <= n; i += lanes) total = Step::combine(total, load_as<A>(x + i));
  if (i < n) total = Step::combine(total, load_first_as<A>(x + i, n - i, A(Step::start)));
  return fold_lanes<Step>(total);
}

// The same for a long row, which is read in four places at once: memory delivers more that way.
template <class Step, class A, int64_t Count, class T>
EXTENSOR_INLINE double fold_long_row(const T* x) {
  constexpr int lanes = Vec<A>::lanes, places = 4;
  constexpr int64_t piece = Count / places;
  Vec<A> acc[places][2];
  for (auto& pair : acc) pair[0] = pair[1] = Vec<A>(Step::start);
  for (int64_t i = 0; i < piece; i += 2 * lanes)
    for (int p = 0; p < places; ++p)
      for (int c = 0; c < 2; ++c) acc[p][c] = Step::combine(acc[p][c], load_as<A>(x + p * piece + i + c * lanes));
  for (int p = 0; p < places; ++p) acc[p][0] = Step::combine(acc[p][0], acc[p][1]);
  return fold_lanes<Step>(Step::combine(Step::combine(acc[0][0], acc[1][0]), Step::combine(acc[2][0], acc[3][0])));
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
  static State row(const T* x, int64_t n) {
    constexpr int64_t block = 8192;  // a longer chain of additions would lose digits
    if (n < block) return {fold_row<Step, A>(x, n), 0};
    double total = Step::start;
    for (; n >= block; n -= block, x += block) total = Step::combine(total, fold_long_row<Step, A, block>(x));
    return {n == 0 ? total : Step::combine(total, fold_row<Step, A>(x, n)), 0};
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
