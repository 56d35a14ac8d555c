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

// The first `count` lanes, converted to A; the others are `rest`. Never touches memory behind them.
template <class A, class T>
EXTENSOR_INLINE Vec<A> load_first_as(const T* from, int64_t count, A rest) {
  if (count >= Vec<A>::lanes) return load_as<A>(from);
  A lanes[Vec<A>::lanes];
  for (A& lane : lanes) lane = rest;
  for (int64_t i = 0; i < count; ++i) lanes[i] = A(from[i]);
  return load(lanes);
}

template <class T>
EXTENSOR_INLINE Vec<T> load_first(const T* from, int64_t count, T rest = T(0)) {
  return load_first_as<T>(from, count, rest);
}

template <class T>
EXTENSOR_INLINE void store_first(T* to, Vec<T> value, int64_t count) {
  if (count >= Vec<T>::lanes) return store(to, value);
  T lanes[Vec<T>::lanes];
  store(lanes, value);
  for (int64_t i = 0; i < count; ++i) to[i] = lanes[i];
}

// Part `part` of a vector's lanes as float64: the vector of doubles that starts at lane part * lanes<double>.
template <class T>
EXTENSOR_INLINE Vec<double> widened_part(Vec<T> value, int part) {
#if defined(__AVX2__) && !defined(__AVX512F__)
  if constexpr (sizeof(T) == 4)
    return (Vec<double>::Raw)_mm256_cvtps_pd(part == 0 ? _mm256_castps256_ps128((__m256)value.v) : _mm256_extractf128_ps((__m256)value.v, 1));
#endif
  T lanes[Vec<T>::lanes];
  store(lanes, value);
  return load_as<double>(lanes + part * Vec<double>::lanes);
}

// sums[c] += value[c], in float64.
template <class T>
EXTENSOR_INLINE void add_to_sums(double* sums, Vec<T> value) {
  constexpr int wide = Vec<double>::lanes;
  for (int part = 0; part < Vec<T>::lanes / wide; ++part)
    store(sums + part * wide, load(sums + part * wide) + widened_part(value, part));
}

}  // namespace extensor::EXTENSOR_ISA
