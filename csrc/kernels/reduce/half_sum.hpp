// Sums of float16 and bfloat16: eight vectors are added in float32, in pairs, and their sum in float64.
#pragma once

#include "kernels/elementwise/convert.hpp"
#include "kernels/reduce/states.hpp"

namespace extensor::EXTENSOR_ISA {

inline float widened(Float16 half) { return widen_float16_bits(half.bits); }
inline float widened(BFloat16 half) { return widen_bfloat16_bits(half.bits); }

inline Float16 narrowed(float value, Float16) { return {narrow_float16_bits(value)}; }
inline BFloat16 narrowed(float value, BFloat16) { return {narrow_bfloat16_bits(value)}; }

#if (defined(__AVX2__) && defined(__F16C__)) || defined(__aarch64__)
// Part p of two wide vectors of neighbours added: float16 one vector to the other, bfloat16 those at even places to those at odd ones.
EXTENSOR_INLINE Floats part_of_two(const Float16* x, int p) {
  return load_widened(x + p * Floats::lanes) + load_widened(x + wide_lanes<float> + p * Floats::lanes);
}
EXTENSOR_INLINE Floats part_of_two(const BFloat16* x, int p) {
  Integers<float> pairs;
  std::memcpy(&pairs.v, x + 2 * p * Floats::lanes, sizeof pairs.v);
  return from_bits(pairs << 16) + from_bits(pairs & int32_t(0xffff0000));
}

// What for_each_row asks of a reduction.
template <class S, bool mean>
struct HalfSum {
  static EXTENSOR_INLINE State row(const S* x, int64_t n) {
    constexpr int lanes = wide_lanes<float>;
    Wide<double> low(0.0), high(0.0);
    const auto add = [&](const Wide<float>& value) EXTENSOR_INLINE_LAMBDA {
      low = low + widened_part(value, 0);
      high = high + widened_part(value, 1);
    };
    const auto four = [](const S* from, int p) EXTENSOR_INLINE_LAMBDA { return part_of_two(from, p) + part_of_two(from + 2 * lanes, p); };
    int64_t i = 0;
    for (; i + 8 * lanes <= n; i += 8 * lanes) {
      Wide<float> eight;
#pragma GCC unroll 4
      for (int p = 0; p < wide_parts; ++p) part_of(eight, p) = four(x + i, p) + four(x + i + 4 * lanes, p);
      add(eight);
    }
    for (; i + lanes <= n; i += lanes) {
      Wide<float> value;
#pragma GCC unroll 4
      for (int p = 0; p < wide_parts; ++p) part_of(value, p) = load_widened(x + i + p * Floats::lanes);
      add(value);
    }
    double total = fold_lanes<Add>(low + high);
    for (; i < n; ++i) total += double(widened(x[i]));
    if (__builtin_isfinite(total)) return {total, 0};
    // A few bfloat16 may be too large for float32 where all of them together are not.
    for (total = 0, i = 0; i < n; ++i) total += double(widened(x[i]));
    return {total, 0};
  }
  static EXTENSOR_INLINE State merge(State a, int64_t, State b, int64_t) { return {a.first + b.first, 0}; }
  static EXTENSOR_INLINE double result(State total, double count, double) { return mean ? total.first / count : total.first; }
};

template <class S, bool mean>
void sum_half(const ReduceLayout& x, const void* from, void* out) {
  const double count = double(x.pieces * x.length);
  for_each_row<HalfSum<S, mean>>(x, static_cast<const S*>(from), reduce_ns(Reduction::sum, 0.5), [&](int64_t o, State total) EXTENSOR_INLINE_LAMBDA {
    static_cast<S*>(out)[o] = narrowed(float(HalfSum<S, mean>::result(total, count, 0)), S());
  });
}

inline bool reduce_half(DType dtype, Reduction kind, const ReduceLayout& x, const void* from, void* out) {
  if ((kind != Reduction::sum && kind != Reduction::mean) || !has_rows(x)) return false;
  const bool mean = kind == Reduction::mean;
  if (dtype == DType::float16) mean ? sum_half<Float16, true>(x, from, out) : sum_half<Float16, false>(x, from, out);
  else mean ? sum_half<BFloat16, true>(x, from, out) : sum_half<BFloat16, false>(x, from, out);
  return true;
}
#else
inline bool reduce_half(DType, Reduction, const ReduceLayout&, const void*, void*) { return false; }
#endif

}  // namespace extensor::EXTENSOR_ISA
