// The sum of many float32: each four vectors in float32, those sums in float64, because widening every element takes
// longer than reading it. The sum of the squares tells how much that may have lost; where elements cancel and it is too
// much, the caller adds all of them up again in float64.
#pragma once

#include "kernels/reduce/fold.hpp"

namespace extensor::EXTENSOR_ISA {

template <bool Mean>
struct QuickSum : Fold<float, Add, double, Mean> {  // first: the sum, second: the sum of the squares of what was added quickly
  using Exact = Fold<float, Add, double, Mean>;

  static State row(const float* x, int64_t n) {
    constexpr int64_t block = 8192;
    State total = {0, 0};
    for (; n > 0; n -= block, x += block) total = merge(total, 0, block_row(x, min_of(n, block)), 0);
    return total;
  }
  static State merge(State a, int64_t, State b, int64_t) { return {a.first + b.first, a.second + b.second}; }
  // What the roundings to float32 lost is about 2^-24 of the root of the squares.
  static bool is_sound(State total) { return total.second <= 1e6 * (total.first * total.first); }

 private:
  static State block_row(const float* x, int64_t n) {
    constexpr int lanes = Floats::lanes;
    if (n < 8 * lanes) return {fold_row<Add, double>(x, n), 0};
    Doubles acc[4];
    Floats squares[4];
    for (auto& a : acc) a = Doubles(0.0);
    for (auto& s : squares) s = Floats(0.0);
    int64_t i = 0;
    for (; i + 8 * lanes <= n; i += 8 * lanes) {
      for (int c = 0; c < 4; c += 2) {
        Floats part[4];
        for (int p = 0; p < 4; ++p) {
          part[p] = load(x + i + (2 * c + p) * lanes);
          squares[p] = fma(part[p], part[p], squares[p]);
        }
        const Floats sum = (part[0] + part[1]) + (part[2] + part[3]);
        for (int half = 0; half < 2; ++half) acc[c + half] = Add::combine(acc[c + half], widened_part(sum, half));
      }
    }
    double total = fold_lanes<Add>((acc[0] + acc[2]) + (acc[1] + acc[3]));
    if (i < n) total += fold_row<Add, double>(x + i, n - i);
    const double square = fold_lanes<Add>((squares[0] + squares[1]) + (squares[2] + squares[3]));
    // Elements whose squares float32 cannot hold, infinities and nan.
    if (__builtin_expect(!(square > 1e-30 && square < 1e38), 0)) return {fold_row<Add, double>(x, n), 0};
    return {total, square};
  }
};

}  // namespace extensor::EXTENSOR_ISA
