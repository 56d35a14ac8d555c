// NEON of 64-bit ARM: vectors of 16 bytes, four of which are a wide one (core/wide.hpp).
#pragma once

#include <arm_neon.h>

#include <cstdint>

namespace extensor::EXTENSOR_ISA {
constexpr int vector_bytes = 16;
constexpr bool has_fma = true, has_scaling = false, has_masked_loads = false, converts_halves = true, folds_in_halves = false;
}  // namespace extensor::EXTENSOR_ISA

#include "core/simd/masks.hpp"

namespace extensor::EXTENSOR_ISA {

// Any lane set?
template <class T> EXTENSOR_INLINE bool any(Mask<T> m) { return vmaxvq_u32((uint32x4_t)m.v) != 0; }

// Masks to bytes 0 or 1.
template <class T> EXTENSOR_INLINE void store_mask(uint8_t* to, Mask<T> m) {
  const uint32x4_t lanes = (uint32x4_t)m.v;
  if constexpr (sizeof(T) == 4) {
    const uint16x4_t words = vmovn_u32(lanes);
    const uint8x8_t bytes = vand_u8(vmovn_u16(vcombine_u16(words, words)), vdup_n_u8(1));
    std::memcpy(to, &bytes, 4);
  } else {
    to[0] = vgetq_lane_u32(lanes, 0) & 1, to[1] = vgetq_lane_u32(lanes, 2) & 1;
  }
}

// The larger of a bound and x, the smaller of a bound and x; a nan in x passes through. The instructions for it order zeros and
// nan in another way than those of x86.
template <class T> EXTENSOR_INLINE Vec<T> at_least(Vec<T> b, Vec<T> x) { return select(b > x, b, x); }
template <class T> EXTENSOR_INLINE Vec<T> at_most(Vec<T> b, Vec<T> x) { return select(b < x, b, x); }

// The lower and the upper half of the lanes in double precision, and back.
EXTENSOR_INLINE Doubles widen_low(Floats a) { return {(Doubles::Raw)vcvt_f64_f32(vget_low_f32((float32x4_t)a.v))}; }
EXTENSOR_INLINE Doubles widen_high(Floats a) { return {(Doubles::Raw)vcvt_high_f64_f32((float32x4_t)a.v)}; }
EXTENSOR_INLINE Floats narrow(Doubles low, Doubles high) {
  return {(Floats::Raw)vcvt_high_f32_f64(vcvt_f32_f64((float64x2_t)low.v), (float64x2_t)high.v)};
}

// table[index mod 16] in each lane, byte by byte.
EXTENSOR_INLINE Floats lookup(const float (&table)[16], Integers<float> index) {
  const uint8_t* const bytes = reinterpret_cast<const uint8_t*>(table);
  const uint8x16x4_t all = {{vld1q_u8(bytes), vld1q_u8(bytes + 16), vld1q_u8(bytes + 32), vld1q_u8(bytes + 48)}};
  const uint32x4_t first = vshlq_n_u32(vandq_u32((uint32x4_t)index.v, vdupq_n_u32(15)), 2);  // the first byte of each number
  const uint32x4_t places = vaddq_u32(vmulq_n_u32(first, 0x01010101), vdupq_n_u32(0x03020100));
  return {(Floats::Raw)vqtbl4q_u8(all, vreinterpretq_u8_u32(places))};
}

// a*b + c, rounded once.
template <class T> EXTENSOR_INLINE Vec<T> fma(Vec<T> a, Vec<T> b, Vec<T> c) {
  if constexpr (sizeof(T) == 4) return {(typename Vec<T>::Raw)vfmaq_f32((float32x4_t)c.v, (float32x4_t)a.v, (float32x4_t)b.v)};
  else return {(typename Vec<T>::Raw)vfmaq_f64((float64x2_t)c.v, (float64x2_t)a.v, (float64x2_t)b.v)};
}
template <class T> EXTENSOR_INLINE Vec<T> sqrt(Vec<T> a) {
  if constexpr (sizeof(T) == 4) return {(typename Vec<T>::Raw)vsqrtq_f32((float32x4_t)a.v)};
  else return {(typename Vec<T>::Raw)vsqrtq_f64((float64x2_t)a.v)};
}

// Rounding to whole numbers; the sign of zero is kept.
#define EXTENSOR_ROUNDING(name, instruction)                                                          \
  template <class T> EXTENSOR_INLINE Vec<T> name(Vec<T> a) {                                          \
    if constexpr (sizeof(T) == 4) return {(typename Vec<T>::Raw)instruction##q_f32((float32x4_t)a.v)}; \
    else return {(typename Vec<T>::Raw)instruction##q_f64((float64x2_t)a.v)};                         \
  }
EXTENSOR_ROUNDING(round, vrndn)
EXTENSOR_ROUNDING(floor, vrndm)
EXTENSOR_ROUNDING(ceil, vrndp)
EXTENSOR_ROUNDING(trunc, vrnd)
#undef EXTENSOR_ROUNDING

// As many floats as a vector has doubles.
EXTENSOR_INLINE Doubles load_doubles(const float* from) { return {(Doubles::Raw)vcvt_f64_f32(vld1_f32(from))}; }

// The first `count` lanes, fewer than all. Never touches memory behind them.
template <class T> EXTENSOR_INLINE Vec<T> load_some(const T* from, int64_t count, T rest) {
  T lanes[Vec<T>::lanes];
  for (T& lane : lanes) lane = rest;
  for (int64_t i = 0; i < count; ++i) lanes[i] = from[i];
  return load(lanes);
}
template <class T> EXTENSOR_INLINE void store_some(T* to, Vec<T> value, int64_t count) {
  T lanes[Vec<T>::lanes];
  store(lanes, value);
  for (int64_t i = 0; i < count; ++i) to[i] = lanes[i];
}

// 16 bytes, a vector, at rows[first] + offset.
template <class T> EXTENSOR_INLINE Vec<T> load_parts(const T* const* rows, int first, int, int64_t offset) { return load(rows[first] + offset); }

// 16-bit words to the bits of floats of that meaning, and back: of float16, and of the upper halves of 32-bit lanes.
EXTENSOR_INLINE Floats load_float16(const void* from) {
  return {(Floats::Raw)vcvt_f32_f16(vreinterpret_f16_u16(vld1_u16(static_cast<const uint16_t*>(from))))};
}
EXTENSOR_INLINE void store_float16(void* to, Floats value) {
  vst1_u16(static_cast<uint16_t*>(to), vreinterpret_u16_f16(vcvt_f16_f32((float32x4_t)value.v)));
}
EXTENSOR_INLINE Floats load_upper_halves(const void* from) {
  return {(Floats::Raw)vshll_n_u16(vld1_u16(static_cast<const uint16_t*>(from)), 16)};
}
// The lanes, each less than 2^16, moved together.
EXTENSOR_INLINE void store_words(void* to, Integers<float> lanes) { vst1_u16(static_cast<uint16_t*>(to), vmovn_u32((uint32x4_t)lanes.v)); }

}  // namespace extensor::EXTENSOR_ISA
