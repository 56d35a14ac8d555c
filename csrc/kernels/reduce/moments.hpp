// Variance in one pass over memory: mean and squared deviations of a block that fits the first-level cache, then
// the blocks are joined by  M2 = M2_a + M2_b + (mean_b - mean_a)^2 n_a n_b / (n_a + n_b).
#pragma once

#include "kernels/reduce/fold.hpp"

namespace extensor::EXTENSOR_ISA {

template <class T, bool Root>
struct Moments {  // first: mean, second: sum of squared deviations from it
  static State row(const T* x, int64_t n) {
    constexpr int64_t block = 2048;
    State total = {0, 0};
    for (int64_t start = 0; start < n; start += block) {
      const int64_t count = n - start < block ? n - start : block;
      total = merge(total, start, block_row(x + start, count), count);
    }
    return total;
  }

  static void columns(const T* x, int64_t row, int64_t rows, int64_t width, State* states) {
    constexpr int lanes = Vec<double>::lanes;
    constexpr int64_t block = 32;
    double means[strip_width + lanes], squares[strip_width + lanes];
    for (int64_t c = 0; c < width; ++c) states[c] = {0, 0};
    for (int64_t start = 0; start < rows; start += block) {
      const int64_t count = rows - start < block ? rows - start : block;
      const T* from = x + start * row;
      fold_columns<Add>(from, row, count, width, means);
      for (int64_t c = 0; c < width; ++c) means[c] /= double(count), squares[c] = 0;
      for (int64_t c = width; c < width + lanes; ++c) means[c] = squares[c] = 0;
      for (int64_t r = 0; r < count; ++r) {
        const auto add = [&](int64_t c, Vec<double> x) EXTENSOR_INLINE_LAMBDA {
          const Vec<double> away = x - load(means + c);
          store(squares + c, fma(away, away, load(squares + c)));
        };
        int64_t c = 0;
        for (; c + lanes <= width; c += lanes) add(c, load_as<double>(from + r * row + c));
        if (c < width) add(c, load_first_as<double>(from + r * row + c, width - c, 0.0));
      }
      for (int64_t c = 0; c < width; ++c) states[c] = merge(states[c], start, {means[c], squares[c]}, count);
    }
  }

  static State merge(State a, int64_t count_a, State b, int64_t count_b) {
    if (count_a == 0) return b;
    const double n = double(count_a + count_b), away = b.first - a.first;
    return {a.first + away * (double(count_b) / n), a.second + b.second + away * away * (double(count_a) * double(count_b) / n)};
  }

  static double result(State total, double count, double ddof) {
    const double divisor = count > ddof ? count - ddof : 0.0;
    const double variance = (count == 0 ? 0.0 : total.second) / divisor;
    return Root ? __builtin_sqrt(variance) : variance;
  }

 private:
  static State block_row(const T* x, int64_t n) {
    constexpr int lanes = wide_lanes<double>, chains = 4;
    const double mean = fold_row<Add, double>(x, n) / double(n);
    const Vec<double> middle(mean);
    Wide<double> acc[chains];
    for (auto& a : acc) a = Wide<double>(0.0);
    int64_t i = 0;
    for (; i + lanes * chains <= n; i += lanes * chains) {
#pragma GCC unroll 4
      for (int c = 0; c < chains; ++c) {
        const Wide<double> away = load_wide_as<double>(x + i + c * lanes) - middle;
        acc[c] = fma(away, away, acc[c]);
      }
    }
    for (; i < n; i += lanes) {
      const Wide<double> away = load_wide_as<double>(x + i, n - i, mean) - middle;
      acc[0] = fma(away, away, acc[0]);
    }
    return {mean, fold_lanes<Add>((acc[0] + acc[1]) + (acc[2] + acc[3]))};
  }
};

}  // namespace extensor::EXTENSOR_ISA
