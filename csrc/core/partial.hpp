// Vectors that are only partly filled, and vectors of elements of another floating type.
#pragma once

#include "core/simd.hpp"

// A lambda that is part of the loop it is called from.
#define EXTENSOR_INLINE_LAMBDA __attribute__((always_inline))

namespace extensor::EXTENSOR_ISA {

// As many elements of T as A has lanes, converted to A.
template <class A, class T>
EXTENSOR_INLINE Vec<A> load_as(const T* from) {
  if constexpr (sizeof(A) == sizeof(T)) {
    return load(from);
  } else {
#if defined(__AVX512F__)
    return (typename Vec<A>::Raw)_mm512_cvtps_pd(_mm256_loadu_ps(from));
#elif defined(__AVX2__)
    return (typename Vec<A>::Raw)_mm256_cvtps_pd(_mm_loadu_ps(from));
#else
    typedef T Narrow __attribute__((vector_size(Vec<A>::lanes * sizeof(T))));
    Narrow narrow;
    std::memcpy(&narrow, from, sizeof narrow);
    return __builtin_convertvector(narrow, typename Vec<A>::Raw);
#endif
  }
}

// All lanes, converted to T.
template <class T, class A>
EXTENSOR_INLINE void store_as(T* to, Vec<A> value) {
  if constexpr (sizeof(A) == sizeof(T)) {
    store(to, value);
  } else {
    typedef T Narrow __attribute__((vector_size(Vec<A>::lanes * sizeof(T))));
    const Narrow narrow = __builtin_convertvector(value.v, Narrow);
    std::memcpy(to, &narrow, sizeof narrow);
  }
}

// The first `count` lanes, converted to A; the others are `rest`. Never touches memory behind them.
template <class A, class T>
EXTENSOR_INLINE Vec<A> load_first_as(const T* from, int64_t count, A rest) {
  if (count >= Vec<A>::lanes) return load_as<A>(from);
#if defined(__AVX512F__)
  if constexpr (sizeof(A) == 8 && sizeof(T) == 4) {
    const __mmask8 there = __mmask8((1u << count) - 1);
    return (typename Vec<A>::Raw)_mm512_mask_cvtps_pd(_mm512_set1_pd(rest), there, _mm256_maskz_loadu_ps(there, from));
  }
#endif
  A lanes[Vec<A>::lanes];
  for (A& lane : lanes) lane = rest;
  for (int64_t i = 0; i < count; ++i) lanes[i] = A(from[i]);
  return load(lanes);
}

#if defined(__AVX2__) && !defined(__AVX512F__)
// All bits set in the first `count` lanes.
template <class T>
EXTENSOR_INLINE __m256i first_lanes(int64_t count) {
  static constexpr typename integer_of<T>::type all = -1;
  static constexpr typename integer_of<T>::type lanes[16] = {all, all, all, all, all, all, all, all};
  return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(lanes + 8 - count));
}
#endif

template <class T>
EXTENSOR_INLINE Vec<T> load_first(const T* from, int64_t count, T rest = T(0)) {
#if defined(__AVX512F__)
  if (count >= Vec<T>::lanes) return load(from);
  if constexpr (sizeof(T) == 4)
    return (typename Vec<T>::Raw)_mm512_mask_loadu_ps(_mm512_set1_ps(rest), __mmask16((1u << count) - 1), from);
  else
    return (typename Vec<T>::Raw)_mm512_mask_loadu_pd(_mm512_set1_pd(rest), __mmask8((1u << count) - 1), from);
#elif defined(__AVX2__)
  if (count >= Vec<T>::lanes) return load(from);
  const __m256i mask = first_lanes<T>(count);
  Vec<T> value;
  if constexpr (sizeof(T) == 4) value.v = (typename Vec<T>::Raw)_mm256_maskload_ps(from, mask);
  else value.v = (typename Vec<T>::Raw)_mm256_maskload_pd(from, mask);
  return rest == T(0) ? value : select(Mask<T>{(typename Vec<T>::RawInteger)mask}, value, Vec<T>(double(rest)));
#else
  return load_first_as<T>(from, count, rest);
#endif
}

// In halves: a masked store takes many times longer on some processors.
template <class T>
EXTENSOR_INLINE void store_first(T* to, Vec<T> value, int64_t count) {
  if (count >= Vec<T>::lanes) return store(to, value);
#if defined(__AVX512F__)
  if constexpr (sizeof(T) == 4) _mm512_mask_storeu_ps(to, __mmask16((1u << count) - 1), (__m512)value.v);
  else _mm512_mask_storeu_pd(to, __mmask8((1u << count) - 1), (__m512d)value.v);
#elif defined(__AVX2__)
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
#else
  T lanes[Vec<T>::lanes];
  store(lanes, value);
  for (int64_t i = 0; i < count; ++i) to[i] = lanes[i];
#endif
}

// Part `part` of a vector's lanes as float64: the vector of doubles that starts at lane part * lanes<double>.
template <class T>
EXTENSOR_INLINE Vec<double> widened_part(Vec<T> value, int part) {
  (void)part;
  if constexpr (sizeof(T) == 4) return part == 0 ? widen_low(value) : widen_high(value);
  else return value;
}

// sums[c] += value[c], in float64.
template <class T>
EXTENSOR_INLINE void add_to_sums(double* sums, Vec<T> value) {
  constexpr int wide = Vec<double>::lanes;
  for (int part = 0; part < Vec<T>::lanes / wide; ++part)
    store(sums + part * wide, load(sums + part * wide) + widened_part(value, part));
}

}  // namespace extensor::EXTENSOR_ISA
