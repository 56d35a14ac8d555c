// log(sum(exp(x))) in one pass over memory: each block is shifted by its own largest element, and the blocks are
// joined by shifting the smaller one's sum.
#pragma once

#include "kernels/elementwise/vecmath.hpp"
#include "kernels/reduce/fold.hpp"

namespace extensor::EXTENSOR_ISA {

// sum of exp(x - shift), in float64.
template <class T>
EXTENSOR_INLINE double sum_of_exp(const T* x, int64_t n, T shift) {
  constexpr int lanes = wide_lanes<T>, parts = lanes / wide_lanes<double>;
  Wide<double> acc[parts];
  for (auto& a : acc) a = Wide<double>(0.0);
  for (int64_t i = 0; i < n; i += lanes) {
    const Wide<T> e = exp(load_wide(x + i, n - i, T(-__builtin_inf())) - Vec<T>(double(shift)));
    for (int part = 0; part < parts; ++part) acc[part] = acc[part] + widened_part(e, part);
  }
  for (int part = 1; part < parts; ++part) acc[0] = acc[0] + acc[part];
  return fold_lanes<Add>(acc[0]);
}

template <class T>
struct LogSumExp {  // first: largest element, second: sum of exp(x - first); 0 and nothing if first is not finite
  static State row(const T* x, int64_t n) {
    constexpr int64_t block = 2048;
    State total = {-__builtin_inf(), 0};
    for (int64_t start = 0; start < n; start += block) {
      const int64_t count = n - start < block ? n - start : block;
      const double largest = fold_row<Largest, T>(x + start, count);
      total = merge(total, 0, {largest, finite(largest) ? sum_of_exp(x + start, count, T(largest)) : 0}, 0);
    }
    return total;
  }

  static void columns(const T* x, int64_t row, int64_t rows, int64_t width, State* states) {
    constexpr int lanes = Vec<T>::lanes;
    constexpr int64_t block = 32;
    T largest[strip_width + lanes];
    double sums[strip_width + lanes];
    for (int64_t c = 0; c < width; ++c) states[c] = {-__builtin_inf(), 0};
    for (int64_t start = 0; start < rows; start += block) {
      const int64_t count = rows - start < block ? rows - start : block;
      const T* from = x + start * row;
      fold_columns<Largest>(from, row, count, width, largest);
      for (int64_t c = 0; c < width + lanes; ++c) sums[c] = 0;
      for (int64_t r = 0; r < count; ++r) {
        for (int64_t c = 0; c < width; c += lanes) {
          const T* at = from + r * row + c;
          const Vec<T> value = load_first(at, width - c);
          add_to_sums(sums + c, exp(value - load(largest + c)));
        }
      }
      for (int64_t c = 0; c < width; ++c) {
        const double most = double(largest[c]);
        states[c] = merge(states[c], 0, {most, finite(most) ? sums[c] : 0}, 0);
      }
    }
  }

  static State merge(State a, int64_t, State b, int64_t) {
    const double most = Largest::combine(a.first, b.first);
    if (!finite(most)) return {most, 0};
    if (a.first == -__builtin_inf()) return b;
    if (a.first == most) return {most, a.second + b.second * __builtin_exp(b.first - most)};
    return {most, a.second * __builtin_exp(a.first - most) + b.second};
  }

  static double result(State total, double, double) {
    return finite(total.first) ? __builtin_log(total.second) + total.first : total.first;
  }

 private:
  static bool finite(double x) { return x - x == 0; }
};

}  // namespace extensor::EXTENSOR_ISA
