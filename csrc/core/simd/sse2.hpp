// SSE2, which every 64-bit x86 has.
#pragma once

#include <immintrin.h>

#include "core/simd/plain.hpp"

namespace extensor::EXTENSOR_ISA {

constexpr bool has_fma = false;

// Any lane set?
template <class T> EXTENSOR_INLINE bool any(Mask<T> m) { return _mm_movemask_epi8((__m128i)m.v) != 0; }

// The lanes of two halves of a mask as 16-bit words.
EXTENSOR_INLINE __m128i narrow_mask(__m128i low, __m128i high, float) { return _mm_packs_epi32(low, high); }
EXTENSOR_INLINE __m128i narrow_mask(__m128i low, __m128i high, double) {
  const __m128i lanes = _mm_castps_si128(_mm_shuffle_ps(_mm_castsi128_ps(low), _mm_castsi128_ps(high), 0x88));
  return _mm_packs_epi32(lanes, lanes);
}
// Masks to bytes 0 or 1.
template <class T> EXTENSOR_INLINE void store_mask(uint8_t* to, Mask<T> m) {
  const __m128i words = narrow_mask((__m128i)m.v, (__m128i)m.v, T());
  const __m128i bytes = _mm_and_si128(_mm_packs_epi16(words, words), _mm_set1_epi8(1));
  std::memcpy(to, &bytes, vector_bytes / sizeof(T));
}

// The larger of a bound and x, the smaller of a bound and x; a nan in x passes through.
template <class T> EXTENSOR_INLINE Vec<T> at_least(Vec<T> b, Vec<T> x) {
  using Raw = typename Vec<T>::Raw;
  return {sizeof(T) == 4 ? (Raw)_mm_max_ps((__m128)b.v, (__m128)x.v) : (Raw)_mm_max_pd((__m128d)b.v, (__m128d)x.v)};
}
template <class T> EXTENSOR_INLINE Vec<T> at_most(Vec<T> b, Vec<T> x) {
  using Raw = typename Vec<T>::Raw;
  return {sizeof(T) == 4 ? (Raw)_mm_min_ps((__m128)b.v, (__m128)x.v) : (Raw)_mm_min_pd((__m128d)b.v, (__m128d)x.v)};
}

// a*b + c, rounded twice.
template <class T> EXTENSOR_INLINE Vec<T> fma(Vec<T> a, Vec<T> b, Vec<T> c) { return a * b + c; }
template <class T> EXTENSOR_INLINE Vec<T> sqrt(Vec<T> a) {
  if constexpr (sizeof(T) == 4) return {(typename Vec<T>::Raw)_mm_sqrt_ps((__m128)a.v)};
  else return {(typename Vec<T>::Raw)_mm_sqrt_pd((__m128d)a.v)};
}

}  // namespace extensor::EXTENSOR_ISA
