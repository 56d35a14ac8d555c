// AVX-512: vectors of 64 bytes, masks in registers of their own kind.
#pragma once

#include <immintrin.h>

#include <cstdint>

namespace extensor::EXTENSOR_ISA {
constexpr int vector_bytes = 64;
constexpr bool has_fma = true, has_scaling = true, has_masked_loads = true, converts_halves = true,
               folds_in_halves = true;
}  // namespace extensor::EXTENSOR_ISA

#include "core/simd/vectors.hpp"

namespace extensor::EXTENSOR_ISA {

// One bit per lane.
template <class T>
struct Mask {
  using Element = T;
  using Raw = std::conditional_t<sizeof(T) == 4, __mmask16, __mmask8>;
  Raw v;
};

#define EXTENSOR_COMPARE_VECTORS(op, floating, integer)                                                                  \
  template <class T> EXTENSOR_INLINE Mask<T> operator op(Vec<T> a, Vec<T> b) {                                           \
    if constexpr (sizeof(T) == 4) return {_mm512_cmp_ps_mask((__m512)a.v, (__m512)b.v, floating)};                       \
    else return {_mm512_cmp_pd_mask((__m512d)a.v, (__m512d)b.v, floating)};                                              \
  }                                                                                                                      \
  template <class T> EXTENSOR_INLINE Mask<T> operator op(Integers<T> a, Integers<T> b) {                                 \
    if constexpr (sizeof(T) == 4) return {_mm512_cmp_epi32_mask((__m512i)a.v, (__m512i)b.v, integer)};                   \
    else return {_mm512_cmp_epi64_mask((__m512i)a.v, (__m512i)b.v, integer)};                                            \
  }
EXTENSOR_COMPARE_VECTORS(<, _CMP_LT_OQ, _MM_CMPINT_LT)
EXTENSOR_COMPARE_VECTORS(<=, _CMP_LE_OQ, _MM_CMPINT_LE)
EXTENSOR_COMPARE_VECTORS(>, _CMP_GT_OQ, _MM_CMPINT_NLE)
EXTENSOR_COMPARE_VECTORS(>=, _CMP_GE_OQ, _MM_CMPINT_NLT)
EXTENSOR_COMPARE_VECTORS(==, _CMP_EQ_OQ, _MM_CMPINT_EQ)
EXTENSOR_COMPARE_VECTORS(!=, _CMP_NEQ_UQ, _MM_CMPINT_NE)
#undef EXTENSOR_COMPARE_VECTORS

// Through intrinsics: the compiler takes plain operators on these integers to the general registers and back.
#define EXTENSOR_MASK_OPERATOR(op, name)                                           \
  template <class T> EXTENSOR_INLINE Mask<T> operator op(Mask<T> a, Mask<T> b) {   \
    if constexpr (sizeof(T) == 4) return {_k##name##_mask16(a.v, b.v)};            \
    else return {_k##name##_mask8(a.v, b.v)};                                      \
  }
EXTENSOR_MASK_OPERATOR(&&, and)
EXTENSOR_MASK_OPERATOR(||, or)
EXTENSOR_MASK_OPERATOR(^, xor)
#undef EXTENSOR_MASK_OPERATOR
template <class T> EXTENSOR_INLINE Mask<T> operator!(Mask<T> a) {
  if constexpr (sizeof(T) == 4) return {_knot_mask16(a.v)};
  else return {_knot_mask8(a.v)};
}

template <class T> EXTENSOR_INLINE Vec<T> select(Mask<T> m, Vec<T> a, Vec<T> b) {
  if constexpr (sizeof(T) == 4) return {(typename Vec<T>::Raw)_mm512_mask_blend_ps(m.v, (__m512)b.v, (__m512)a.v)};
  else return {(typename Vec<T>::Raw)_mm512_mask_blend_pd(m.v, (__m512d)b.v, (__m512d)a.v)};
}
// a where m, else +0: one instruction where a blend takes several.
template <class T> EXTENSOR_INLINE Vec<T> keep(Mask<T> m, Vec<T> a) {
  if constexpr (sizeof(T) == 4) return {(typename Vec<T>::Raw)_mm512_maskz_mov_ps(m.v, (__m512)a.v)};
  else return {(typename Vec<T>::Raw)_mm512_maskz_mov_pd(m.v, (__m512d)a.v)};
}
// -1 where m, else 0.
template <class T> EXTENSOR_INLINE Integers<T> minus_one_where(Mask<T> m) {
  if constexpr (sizeof(T) == 4) return {(typename Integers<T>::Raw)_mm512_movm_epi32(m.v)};
  else return {(typename Integers<T>::Raw)_mm512_movm_epi64(m.v)};
}
// True in the first `count` lanes.
template <class T> EXTENSOR_INLINE Mask<T> lanes_below(int count) {
  return {static_cast<typename Mask<T>::Raw>((1u << count) - 1)};
}
// Any lane set?
template <class T> EXTENSOR_INLINE bool any(Mask<T> m) { return m.v != 0; }

// Bytes 0 or not to masks, and masks to bytes 0 or 1.
template <class T> EXTENSOR_INLINE Mask<T> load_mask(const uint8_t* from) {
  __m128i bytes = _mm_setzero_si128();
  std::memcpy(&bytes, from, Vec<T>::lanes);
  return {static_cast<typename Mask<T>::Raw>(_mm_test_epi8_mask(bytes, bytes))};
}
template <class T> EXTENSOR_INLINE void store_mask(uint8_t* to, Mask<T> m) {
  const __m128i bytes = _mm_maskz_mov_epi8(m.v, _mm_set1_epi8(1));
  std::memcpy(to, &bytes, vector_bytes / sizeof(T));
}

// The larger of a bound and x, the smaller of a bound and x; a nan in x passes through.
template <class T> EXTENSOR_INLINE Vec<T> at_least(Vec<T> b, Vec<T> x) {
  using Raw = typename Vec<T>::Raw;
  return {sizeof(T) == 4 ? (Raw)_mm512_max_ps((__m512)b.v, (__m512)x.v) : (Raw)_mm512_max_pd((__m512d)b.v, (__m512d)x.v)};
}
template <class T> EXTENSOR_INLINE Vec<T> at_most(Vec<T> b, Vec<T> x) {
  using Raw = typename Vec<T>::Raw;
  return {sizeof(T) == 4 ? (Raw)_mm512_min_ps((__m512)b.v, (__m512)x.v) : (Raw)_mm512_min_pd((__m512d)b.v, (__m512d)x.v)};
}

// The lower and the upper half of the lanes in double precision, and back.
EXTENSOR_INLINE Doubles widen_low(Floats a) { return {(Doubles::Raw)_mm512_cvtps_pd(_mm512_castps512_ps256((__m512)a.v))}; }
EXTENSOR_INLINE Doubles widen_high(Floats a) { return {(Doubles::Raw)_mm512_cvtps_pd(_mm512_extractf32x8_ps((__m512)a.v, 1))}; }
EXTENSOR_INLINE Floats narrow(Doubles low, Doubles high) {
  const __m512 lower = _mm512_castps256_ps512(_mm512_cvtpd_ps((__m512d)low.v));
  return {(Floats::Raw)_mm512_insertf32x8(lower, _mm512_cvtpd_ps((__m512d)high.v), 1)};
}

// table[index mod 16] in each lane.
EXTENSOR_INLINE Floats lookup(const float (&table)[16], Integers<float> index) {
  return {(Floats::Raw)_mm512_permutexvar_ps((__m512i)index.v, _mm512_loadu_ps(table))};
}

// a*b + c, rounded once.
template <class T> EXTENSOR_INLINE Vec<T> fma(Vec<T> a, Vec<T> b, Vec<T> c) {
  if constexpr (sizeof(T) == 4) return {(typename Vec<T>::Raw)_mm512_fmadd_ps((__m512)a.v, (__m512)b.v, (__m512)c.v)};
  else return {(typename Vec<T>::Raw)_mm512_fmadd_pd((__m512d)a.v, (__m512d)b.v, (__m512d)c.v)};
}
template <class T> EXTENSOR_INLINE Vec<T> sqrt(Vec<T> a) {
  if constexpr (sizeof(T) == 4) return {(typename Vec<T>::Raw)_mm512_sqrt_ps((__m512)a.v)};
  else return {(typename Vec<T>::Raw)_mm512_sqrt_pd((__m512d)a.v)};
}
// a 2^k, k a whole number, rounded once.
template <class T> EXTENSOR_INLINE Vec<T> scaled(Vec<T> a, Vec<T> k) {
  if constexpr (sizeof(T) == 4) return {(typename Vec<T>::Raw)_mm512_scalef_ps((__m512)a.v, (__m512)k.v)};
  else return {(typename Vec<T>::Raw)_mm512_scalef_pd((__m512d)a.v, (__m512d)k.v)};
}

// Rounding to whole numbers; the sign of zero is kept.
template <int mode, class T> EXTENSOR_INLINE Vec<T> rounded(Vec<T> a) {
  if constexpr (sizeof(T) == 4) return {(typename Vec<T>::Raw)_mm512_roundscale_ps((__m512)a.v, mode | _MM_FROUND_NO_EXC)};
  else return {(typename Vec<T>::Raw)_mm512_roundscale_pd((__m512d)a.v, mode | _MM_FROUND_NO_EXC)};
}
template <class T> EXTENSOR_INLINE Vec<T> round(Vec<T> a) { return rounded<_MM_FROUND_TO_NEAREST_INT>(a); }
template <class T> EXTENSOR_INLINE Vec<T> floor(Vec<T> a) { return rounded<_MM_FROUND_TO_NEG_INF>(a); }
template <class T> EXTENSOR_INLINE Vec<T> ceil(Vec<T> a) { return rounded<_MM_FROUND_TO_POS_INF>(a); }
template <class T> EXTENSOR_INLINE Vec<T> trunc(Vec<T> a) { return rounded<_MM_FROUND_TO_ZERO>(a); }

// As many floats as a vector has doubles, and the first `count` of them, where the other lanes are `rest`.
EXTENSOR_INLINE Doubles load_doubles(const float* from) { return (Doubles::Raw)_mm512_cvtps_pd(_mm256_loadu_ps(from)); }
EXTENSOR_INLINE Doubles load_first_doubles(const float* from, int64_t count, double rest) {
  const __mmask8 there = __mmask8((1u << count) - 1);
  return (Doubles::Raw)_mm512_mask_cvtps_pd(_mm512_set1_pd(rest), there, _mm256_maskz_loadu_ps(there, from));
}

// The first `count` lanes, fewer than all. Never touches memory behind them.
template <class T> EXTENSOR_INLINE Vec<T> load_some(const T* from, int64_t count, T rest) {
  if constexpr (sizeof(T) == 4)
    return (typename Vec<T>::Raw)_mm512_mask_loadu_ps(_mm512_set1_ps(rest), __mmask16((1u << count) - 1), from);
  else
    return (typename Vec<T>::Raw)_mm512_mask_loadu_pd(_mm512_set1_pd(rest), __mmask8((1u << count) - 1), from);
}
template <class T> EXTENSOR_INLINE void store_some(T* to, Vec<T> value, int64_t count) {
  if constexpr (sizeof(T) == 4) _mm512_mask_storeu_ps(to, __mmask16((1u << count) - 1), (__m512)value.v);
  else _mm512_mask_storeu_pd(to, __mmask8((1u << count) - 1), (__m512d)value.v);
}

// The sum or product of n neighbours in float64, in half vectors: Zen 4 converts elements on their way from memory to 256 bits at
// the speed of the cache, to 512 bits at half of it.
// `start` is what leaves a sum or product as it is.
template <bool adds>
EXTENSOR_INLINE double fold_widened(const float* x, int64_t n, float start) {
  constexpr int lanes = 4, chains = 8;
  const __m256d one = _mm256_set1_pd(1.0);
  const auto joined = [](auto a, auto b) EXTENSOR_INLINE_LAMBDA {
    if constexpr (adds) return a + b;
    else return a * b;
  };
  const auto plus = [&](__m256d sum, __m128 more) EXTENSOR_INLINE_LAMBDA {
    if constexpr (adds) return _mm256_fmadd_pd(_mm256_cvtps_pd(more), one, sum);
    else return _mm256_mul_pd(_mm256_cvtps_pd(more), sum);
  };
  __m256d sums[chains];
  for (__m256d& sum : sums) sum = adds ? _mm256_setzero_pd() : one;
  int64_t i = 0;
  for (; i + lanes * chains <= n; i += lanes * chains) {
#pragma GCC unroll 8
    for (int c = 0; c < chains; ++c) sums[c] = plus(sums[c], _mm_loadu_ps(x + i + c * lanes));
  }
  for (; i + lanes <= n; i += lanes) sums[0] = plus(sums[0], _mm_loadu_ps(x + i));
  if (i < n) sums[1] = plus(sums[1], _mm_mask_loadu_ps(_mm_set1_ps(start), __mmask8((1u << (n - i)) - 1), x + i));
  const __m256d all = joined(joined(joined(sums[0], sums[1]), joined(sums[2], sums[3])), joined(joined(sums[4], sums[5]), joined(sums[6], sums[7])));
  const __m128d two = joined(_mm256_castpd256_pd128(all), _mm256_extractf128_pd(all, 1));
  return joined(two[0], two[1]);
}

// 16 bytes from each of four places: rows[first + q * step] + offset.
template <class T> EXTENSOR_INLINE Vec<T> load_parts(const T* const* rows, int first, int step, int64_t offset) {
  const auto part = [&](int q) { return _mm_loadu_si128(reinterpret_cast<const __m128i*>(rows[first + q * step] + offset)); };
  __m512i all = _mm512_castsi128_si512(part(0));
  all = _mm512_inserti32x4(all, part(1), 1);
  all = _mm512_inserti32x4(all, part(2), 2);
  return (typename Vec<T>::Raw)_mm512_inserti32x4(all, part(3), 3);
}

// 16-bit words to the bits of floats of that meaning, and back: of float16, and of the upper halves of 32-bit lanes.
EXTENSOR_INLINE Floats load_float16(const void* from) { return {(Floats::Raw)_mm512_cvtph_ps(_mm256_loadu_si256((const __m256i*)from))}; }
EXTENSOR_INLINE void store_float16(void* to, Floats value) {
  _mm256_storeu_si256((__m256i*)to, _mm512_cvtps_ph((__m512)value.v, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC));
}
EXTENSOR_INLINE Floats load_upper_halves(const void* from) {
  return {(Floats::Raw)_mm512_slli_epi32(_mm512_cvtepu16_epi32(_mm256_loadu_si256((const __m256i*)from)), 16)};
}
// The lanes, each less than 2^16, moved together.
EXTENSOR_INLINE void store_words(void* to, Integers<float> lanes) {
  _mm256_storeu_si256((__m256i*)to, _mm512_cvtepi32_epi16((__m512i)lanes.v));
}

}  // namespace extensor::EXTENSOR_ISA
