// Between the 16-bit floating types and float32.
// Included only by sources that are compiled once per instruction set.
#pragma once

#include <cstdint>
#include <cstring>

#include "core/simd.hpp"

namespace extensor::EXTENSOR_ISA {

// bfloat16 is the upper half of a float32; rounded half to even, a nan stays a (quiet) nan.
inline float widen_bfloat16_bits(uint16_t half) {
  const uint32_t wide = static_cast<uint32_t>(half) << 16;
  float result;
  std::memcpy(&result, &wide, sizeof result);
  return result;
}

inline uint16_t narrow_bfloat16_bits(float value) {
  uint32_t wide;
  std::memcpy(&wide, &value, sizeof wide);
  const uint32_t rounded = (wide + 0x7fff + ((wide >> 16) & 1)) >> 16;
  const uint32_t quiet = (wide >> 16) | 0x40;
  return static_cast<uint16_t>((wide & 0x7fffffff) > 0x7f800000 ? quiet : rounded);
}

// float16 without conversion instructions. A subnormal half becomes a normal float by an exact
// multiplication; on the way back, adding a suitable power of two rounds at the right bit.
inline float widen_float16_bits(uint16_t half) {
  const uint32_t sign = static_cast<uint32_t>(half & 0x8000) << 16;
  const uint32_t magnitude = static_cast<uint32_t>(half & 0x7fff) << 13;
  float value;
  std::memcpy(&value, &magnitude, sizeof value);
  value *= 5192296858534827628530496329220096.0f;  // 2^112, the difference of the exponent biases
  uint32_t bits;
  std::memcpy(&bits, &value, sizeof bits);
  if ((half & 0x7c00) == 0x7c00) bits = 0x7f800000u | (half & 0x3ffu) << 13 | ((half & 0x3ffu) ? 0x400000u : 0u);
  bits |= sign;
  std::memcpy(&value, &bits, sizeof value);
  return value;
}

inline uint16_t narrow_float16_bits(float value) {
  uint32_t bits;
  std::memcpy(&bits, &value, sizeof bits);
  const uint16_t sign = static_cast<uint16_t>((bits >> 16) & 0x8000);
  bits &= 0x7fffffff;
  if (bits > 0x7f800000) return static_cast<uint16_t>(sign | 0x7e00 | ((bits >> 13) & 0x3ff));
  if (bits >= 0x477ff000) return sign | 0x7c00;  // rounds to 2^16 or more
  if (bits < 0x38800000) {                       // below 2^-14: the unit of the last place is 2^-24
    float magnitude;
    std::memcpy(&magnitude, &bits, sizeof magnitude);
    magnitude += 0.5f;
    uint32_t shifted;
    std::memcpy(&shifted, &magnitude, sizeof shifted);
    return static_cast<uint16_t>(sign | (shifted - 0x3f000000));
  }
  bits += 0xfff + ((bits >> 13) & 1);
  return static_cast<uint16_t>(sign | ((bits - 0x38000000) >> 13));
}

// Elements of the two types as they lie in memory.
struct Float16 {
  uint16_t bits;
};
struct BFloat16 {
  uint16_t bits;
};

// bfloat16 in lanes of 32 bits, not yet moved together.
EXTENSOR_INLINE Integers<float> rounded_to_bfloat16(Floats value) {
  const Integers<float> wide = bits(value), upper = shift_right_logical(wide, 16);
  const Integers<float> rounded = shift_right_logical(wide + (upper & 1) + 0x7fff, 16);
  return bits(select(isnan(value), from_bits(upper | 0x40), from_bits(rounded)));
}

// Vectors of them, where there are instructions for it (converts_halves); elsewhere blocks are converted by the functions below.
template <class S>
EXTENSOR_INLINE Floats load_widened(const S* from) {
  if constexpr (std::is_same_v<S, Float16>) return load_float16(from);
  else return load_upper_halves(from);
}
template <class S>
EXTENSOR_INLINE void store_narrowed(S* to, Floats value) {
  if constexpr (std::is_same_v<S, Float16>) store_float16(to, value);
  else store_words(to, rounded_to_bfloat16(value));
}

inline void widen_bfloat16(const void* from, float* to, int64_t n) {
  const uint16_t* halves = static_cast<const uint16_t*>(from);
  int64_t i = 0;
  if constexpr (converts_halves)
    for (; i + Floats::lanes <= n; i += Floats::lanes) store(to + i, load_widened(static_cast<const BFloat16*>(from) + i));
  for (; i < n; ++i) to[i] = widen_bfloat16_bits(halves[i]);
}

inline void narrow_bfloat16(const float* from, void* to, int64_t n) {
  uint16_t* halves = static_cast<uint16_t*>(to);
  int64_t i = 0;
  if constexpr (converts_halves)
    for (; i + Floats::lanes <= n; i += Floats::lanes) store_narrowed(static_cast<BFloat16*>(to) + i, load(from + i));
  for (; i < n; ++i) halves[i] = narrow_bfloat16_bits(from[i]);
}

inline void widen_float16(const void* from, float* to, int64_t n) {
  const uint16_t* halves = static_cast<const uint16_t*>(from);
  int64_t i = 0;
  if constexpr (converts_halves)
    for (; i + Floats::lanes <= n; i += Floats::lanes) store(to + i, load_widened(static_cast<const Float16*>(from) + i));
  for (; i < n; ++i) to[i] = widen_float16_bits(halves[i]);
}

inline void narrow_float16(const float* from, void* to, int64_t n) {
  uint16_t* halves = static_cast<uint16_t*>(to);
  int64_t i = 0;
  if constexpr (converts_halves)
    for (; i + Floats::lanes <= n; i += Floats::lanes) store_narrowed(static_cast<Float16*>(to) + i, load(from + i));
  for (; i < n; ++i) halves[i] = narrow_float16_bits(from[i]);
}

}  // namespace extensor::EXTENSOR_ISA
