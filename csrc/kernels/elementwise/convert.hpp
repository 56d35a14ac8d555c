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

inline void widen_bfloat16(const void* from, float* to, int64_t n) {
  const uint16_t* halves = static_cast<const uint16_t*>(from);
  for (int64_t i = 0; i < n; ++i) to[i] = widen_bfloat16_bits(halves[i]);
}

inline void narrow_bfloat16(const float* from, void* to, int64_t n) {
  uint16_t* halves = static_cast<uint16_t*>(to);
  for (int64_t i = 0; i < n; ++i) halves[i] = narrow_bfloat16_bits(from[i]);
}

inline void widen_float16(const void* from, float* to, int64_t n) {
  const uint16_t* halves = static_cast<const uint16_t*>(from);
  int64_t i = 0;
#ifdef __F16C__
  for (; i + 8 <= n; i += 8) _mm256_storeu_ps(to + i, _mm256_cvtph_ps(_mm_loadu_si128((const __m128i*)(halves + i))));
#endif
  for (; i < n; ++i) to[i] = widen_float16_bits(halves[i]);
}

inline void narrow_float16(const float* from, void* to, int64_t n) {
  uint16_t* halves = static_cast<uint16_t*>(to);
  int64_t i = 0;
#ifdef __F16C__
  for (; i + 8 <= n; i += 8) {
    _mm_storeu_si128((__m128i*)(halves + i), _mm256_cvtps_ph(_mm256_loadu_ps(from + i), _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC));
  }
#endif
  for (; i < n; ++i) halves[i] = narrow_float16_bits(from[i]);
}

}  // namespace extensor::EXTENSOR_ISA
