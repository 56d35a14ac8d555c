// Sums of float32 with float32 instructions, nearly as exact as in float64. Widening every element runs at half the
// speed at which a cache delivers them; this keeps up.
//
// A chain of additions starts at a number far above all it will meet, s = far + x1 + x2 + ..., so that its partial sums
// are multiples of one unit and what an addition rounds off is known exactly:
//
//   after = s + x,   error = x - (after - s)
//
// The sum is (s - far) plus the sum of the errors. An error is at most half a unit, and their own sum in float32 loses a
// 2^-24th of that: before the result is rounded it is off by about 2^-30 of the largest magnitude. How far is far enough
// is guessed from the first elements. If a chain ends outside the numbers with the unit it started with, because others
// were much larger or are not finite, the stretch is summed again in float64.
#pragma once

#include "kernels/reduce/states.hpp"

namespace extensor::EXTENSOR_ISA {

// Four chains hide the latency of the additions.
constexpr int64_t float_step = 4 * Floats::lanes;
// Longer ones would wander further than guessed; shorter ones are not worth the guess.
constexpr int64_t longest_float_stretch = 64 * float_step, shortest_float_stretch = 512;
constexpr int stretches_at_once = 8;

// Per lane 1.5 * 2^k, 2^k being some 2^9 times the largest of a quarter of the step's elements: 64 of that size, or
// some that are larger, leave a chain between 2^k and 2^(k+1). Overflows to something that is never found valid.
EXTENSOR_INLINE Floats far_above(const float* x) {
  constexpr int lanes = Floats::lanes;
  Floats largest = abs(load(x));
  for (int c = 1; c < 4; ++c) largest = at_least(largest, abs(load(x + c * lanes)));
  for (int by = lanes / 2; 4 * by > lanes / 2; by /= 2)
    largest = at_least(largest, rotated(largest, by, std::make_integer_sequence<int, lanes>()));
  const Integers<float> exponent = 0x7f800000, margin = 9 << 23, half = 1 << 22;
  return from_bits(((bits(largest) & exponent) + margin) | half);
}

struct FloatStretch {
  Doubles sum;
  bool valid;
};
// n elements, whole steps.
EXTENSOR_INLINE FloatStretch sum_from_far(const float* x, int64_t n) {
  constexpr int lanes = Floats::lanes;
  const Floats far = far_above(x);
  Floats sums[4] = {far, far, far, far}, errors[4] = {0.0, 0.0, 0.0, 0.0};
  for (int64_t i = 0; i < n; i += float_step) {
    for (int c = 0; c < 4; ++c) {
      const Floats value = loaded_once(x + i + c * lanes), after = sums[c] + value;
      // Two of the four on the multipliers, which are idle.
      const Floats moved = has_fma ? fma(sums[c], Floats(-1.0), after) : after - sums[c];
      errors[c] = errors[c] + (has_fma ? fma(moved, Floats(-1.0), value) : value - moved);
      sums[c] = after;
    }
  }
  const auto changed = [&](int c) EXTENSOR_INLINE_LAMBDA { return bits(sums[c]) ^ bits(far); };
  const Integers<float> sign_and_exponent = int32_t(0xff800000);
  const Mask<float> left = ((changed(0) | changed(1) | changed(2) | changed(3)) & sign_and_exponent) != Integers<float>(0);
  // Exact: four times less than 2^22 units.
  const Floats sum = ((sums[0] - far) + (sums[1] - far)) + ((sums[2] - far) + (sums[3] - far));
  const Floats error = (errors[0] + errors[1]) + (errors[2] + errors[3]);
  return {(widen_low(sum) + widen_low(error)) + (widen_high(sum) + widen_high(error)), !any(left)};
}

// totals[i] = the sum of the n elements from x + i * stride on, n at most longest_float_stretch. Several stretches at a
// time: the last steps of one need not wait for the first of the next.
inline void sum_stretches(const float* x, int64_t stride, int64_t n, int64_t count, double* totals) {
  const int64_t whole = n < shortest_float_stretch ? 0 : n / float_step * float_step;
  FloatStretch results[stretches_at_once];
  if (whole > 0)
    for (int64_t i = 0; i < count; ++i) results[i] = sum_from_far(x + i * stride, whole);
  for (int64_t i = 0; i < count; ++i) {
    const bool valid = whole > 0 && results[i].valid;
    const int64_t summed = valid ? whole : 0;
    totals[i] = valid ? fold_lanes<Add>(results[i].sum) : 0;
    if (summed < n) totals[i] += fold_row<Add, double>(x + i * stride + summed, n - summed);
  }
}

template <bool Mean>
struct FloatSum : Fold<float, Add, double, Mean> {
  static State row(const float* x, int64_t n) {
    double total = 0, totals[stretches_at_once];
    while (n > 0) {
      const int64_t length = min_of(n, longest_float_stretch), count = min_of(stretches_at_once, n / length);
      sum_stretches(x, length, length, count, totals);
      for (int64_t i = 0; i < count; ++i) total += totals[i];
      x += count * length;
      n -= count * length;
    }
    return {total, 0};
  }
};

template <bool Mean>
struct SomeRows<FloatSum<Mean>> {
  static constexpr int at_once = stretches_at_once;
  static void run(const float* x, int64_t stride, int64_t rows, int64_t n, State* states) {
    if (n > longest_float_stretch) {
      for (int64_t r = 0; r < rows; ++r) states[r] = FloatSum<Mean>::row(x + r * stride, n);
      return;
    }
    double totals[stretches_at_once];
    sum_stretches(x, stride, n, rows, totals);
    for (int64_t r = 0; r < rows; ++r) states[r] = {totals[r], 0};
  }
};

}  // namespace extensor::EXTENSOR_ISA
