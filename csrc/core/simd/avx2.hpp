// AVX2 with FMA and F16C: vectors of 32 bytes.
#pragma once

#include <immintrin.h>

#include <cstdint>

namespace extensor::EXTENSOR_ISA {
constexpr int vector_bytes = 32;
constexpr bool has_fma = true, has_scaling = false, has_masked_loads = false, converts_halves = true,
               folds_in_halves = false;
}  // namespace extensor::EXTENSOR_ISA

#include "core/simd/masks.hpp"

namespace extensor::EXTENSOR_ISA {

// Any lane set?
template <class T> EXTENSOR_INLINE bool any(Mask<T> m) { return !_mm256_testz_si256((__m256i)m.v, (__m256i)m.v); }

// The lanes of two halves of a mask as 16-bit words.
EXTENSOR_INLINE __m128i narrow_mask(__m128i low, __m128i high, float) { return _mm_packs_epi32(low, high); }
EXTENSOR_INLINE __m128i narrow_mask(__m128i low, __m128i high, double) {
  const __m128i lanes = _mm_castps_si128(_mm_shuffle_ps(_mm_castsi128_ps(low), _mm_castsi128_ps(high), 0x88));
  return _mm_packs_epi32(lanes, lanes);
}
// Masks to bytes 0 or 1.
template <class T> EXTENSOR_INLINE void store_mask(uint8_t* to, Mask<T> m) {
  const __m128i words = narrow_mask(_mm256_castsi256_si128((__m256i)m.v), _mm256_extracti128_si256((__m256i)m.v, 1), T());
  const __m128i bytes = _mm_and_si128(_mm_packs_epi16(words, words), _mm_set1_epi8(1));
  std::memcpy(to, &bytes, vector_bytes / sizeof(T));
}

// The larger of a bound and x, the smaller of a bound and x; a nan in x passes through.
template <class T> EXTENSOR_INLINE Vec<T> at_least(Vec<T> b, Vec<T> x) {
  using Raw = typename Vec<T>::Raw;
  return {sizeof(T) == 4 ? (Raw)_mm256_max_ps((__m256)b.v, (__m256)x.v) : (Raw)_mm256_max_pd((__m256d)b.v, (__m256d)x.v)};
}
template <class T> EXTENSOR_INLINE Vec<T> at_most(Vec<T> b, Vec<T> x) {
  using Raw = typename Vec<T>::Raw;
  return {sizeof(T) == 4 ? (Raw)_mm256_min_ps((__m256)b.v, (__m256)x.v) : (Raw)_mm256_min_pd((__m256d)b.v, (__m256d)x.v)};
}

// The lower and the upper half of the lanes in double precision, and back.
EXTENSOR_INLINE Doubles widen_low(Floats a) { return {(Doubles::Raw)_mm256_cvtps_pd(_mm256_castps256_ps128((__m256)a.v))}; }
EXTENSOR_INLINE Doubles widen_high(Floats a) { return {(Doubles::Raw)_mm256_cvtps_pd(_mm256_extractf128_ps((__m256)a.v, 1))}; }
EXTENSOR_INLINE Floats narrow(Doubles low, Doubles high) {
  return {(Floats::Raw)_mm256_set_m128(_mm256_cvtpd_ps((__m256d)high.v), _mm256_cvtpd_ps((__m256d)low.v))};
}

// table[index mod 16] in each lane.
EXTENSOR_INLINE Floats lookup(const float (&table)[16], Integers<float> index) {
  const __m256 low = _mm256_permutevar8x32_ps(_mm256_loadu_ps(table), (__m256i)index.v);
  const __m256 high = _mm256_permutevar8x32_ps(_mm256_loadu_ps(table + 8), (__m256i)index.v);
  return {(Floats::Raw)_mm256_blendv_ps(low, high, (__m256)(index << 28).v)};
}

// The same of indices below 8.
#define EXTENSOR_LOOKUP_OF_8
EXTENSOR_INLINE Floats lookup_of_8(const float (&table)[16], Integers<float> index) {
  return {(Floats::Raw)_mm256_permutevar8x32_ps(_mm256_loadu_ps(table), (__m256i)index.v)};
}

// a*b + c, rounded once.
template <class T> EXTENSOR_INLINE Vec<T> fma(Vec<T> a, Vec<T> b, Vec<T> c) {
  if constexpr (sizeof(T) == 4) return {(typename Vec<T>::Raw)_mm256_fmadd_ps((__m256)a.v, (__m256)b.v, (__m256)c.v)};
  else return {(typename Vec<T>::Raw)_mm256_fmadd_pd((__m256d)a.v, (__m256d)b.v, (__m256d)c.v)};
}
template <class T> EXTENSOR_INLINE Vec<T> sqrt(Vec<T> a) {
  if constexpr (sizeof(T) == 4) return {(typename Vec<T>::Raw)_mm256_sqrt_ps((__m256)a.v)};
  else return {(typename Vec<T>::Raw)_mm256_sqrt_pd((__m256d)a.v)};
}

// Rounding to whole numbers; the sign of zero is kept.
template <int mode, class T> EXTENSOR_INLINE Vec<T> rounded(Vec<T> a) {
  if constexpr (sizeof(T) == 4) return {(typename Vec<T>::Raw)_mm256_round_ps((__m256)a.v, mode | _MM_FROUND_NO_EXC)};
  else return {(typename Vec<T>::Raw)_mm256_round_pd((__m256d)a.v, mode | _MM_FROUND_NO_EXC)};
}
template <class T> EXTENSOR_INLINE Vec<T> round(Vec<T> a) { return rounded<_MM_FROUND_TO_NEAREST_INT>(a); }
template <class T> EXTENSOR_INLINE Vec<T> floor(Vec<T> a) { return rounded<_MM_FROUND_TO_NEG_INF>(a); }
template <class T> EXTENSOR_INLINE Vec<T> ceil(Vec<T> a) { return rounded<_MM_FROUND_TO_POS_INF>(a); }
template <class T> EXTENSOR_INLINE Vec<T> trunc(Vec<T> a) { return rounded<_MM_FROUND_TO_ZERO>(a); }

// As many floats as a vector has doubles.
EXTENSOR_INLINE Doubles load_doubles(const float* from) { return (Doubles::Raw)_mm256_cvtps_pd(_mm_loadu_ps(from)); }

// All bits set in the first `count` lanes.
template <class T>
EXTENSOR_INLINE __m256i first_lanes(int64_t count) {
  static constexpr typename integer_of<T>::type all = -1;
  static constexpr typename integer_of<T>::type lanes[16] = {all, all, all, all, all, all, all, all};
  return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(lanes + 8 - count));
}
// The first `count` lanes, fewer than all. Never touches memory behind them.
template <class T> EXTENSOR_INLINE Vec<T> load_some(const T* from, int64_t count, T rest) {
  const __m256i mask = first_lanes<T>(count);
  Vec<T> value;
  if constexpr (sizeof(T) == 4) value.v = (typename Vec<T>::Raw)_mm256_maskload_ps(from, mask);
  else value.v = (typename Vec<T>::Raw)_mm256_maskload_pd(from, mask);
  return rest == T(0) ? value : select(Mask<T>{(typename Vec<T>::RawInteger)mask}, value, Vec<T>(double(rest)));
}
// In halves: a masked store takes many times longer on some processors.
template <class T> EXTENSOR_INLINE void store_some(T* to, Vec<T> value, int64_t count) {
  if constexpr (sizeof(T) == 4) {
    __m128 part = _mm256_castps256_ps128((__m256)value.v);
    if (count & 4) {
      _mm_storeu_ps(to, part);
      part = _mm256_extractf128_ps((__m256)value.v, 1);
      to += 4;
    }
    if (count & 2) {
      _mm_storel_pi(reinterpret_cast<__m64*>(to), part);
      part = _mm_movehl_ps(part, part);
      to += 2;
    }
    if (count & 1) _mm_store_ss(to, part);
  } else {
    __m128d part = _mm256_castpd256_pd128((__m256d)value.v);
    if (count & 2) {
      _mm_storeu_pd(to, part);
      part = _mm256_extractf128_pd((__m256d)value.v, 1);
      to += 2;
    }
    if (count & 1) _mm_store_sd(to, part);
  }
}

// 16 bytes from each of two places: rows[first + q * step] + offset.
template <class T> EXTENSOR_INLINE Vec<T> load_parts(const T* const* rows, int first, int step, int64_t offset) {
  const auto part = [&](int q) { return _mm_loadu_si128(reinterpret_cast<const __m128i*>(rows[first + q * step] + offset)); };
  return (typename Vec<T>::Raw)_mm256_inserti128_si256(_mm256_castsi128_si256(part(0)), part(1), 1);
}

// 16-bit words to the bits of floats of that meaning, and back: of float16, and of the upper halves of 32-bit lanes.
EXTENSOR_INLINE Floats load_float16(const void* from) { return {(Floats::Raw)_mm256_cvtph_ps(_mm_loadu_si128((const __m128i*)from))}; }
EXTENSOR_INLINE void store_float16(void* to, Floats value) {
  _mm_storeu_si128((__m128i*)to, _mm256_cvtps_ph((__m256)value.v, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC));
}
EXTENSOR_INLINE Floats load_upper_halves(const void* from) {
  return {(Floats::Raw)_mm256_slli_epi32(_mm256_cvtepu16_epi32(_mm_loadu_si128((const __m128i*)from)), 16)};
}
// The lanes, each less than 2^16, moved together.
EXTENSOR_INLINE void store_words(void* to, Integers<float> lanes) {
  const __m256i wide = (__m256i)lanes.v;
  _mm_storeu_si128((__m128i*)to, _mm_packus_epi32(_mm256_castsi256_si128(wide), _mm256_extracti128_si256(wide, 1)));
}

}  // namespace extensor::EXTENSOR_ISA
