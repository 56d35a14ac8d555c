// What any processor can do with vectors of 16 bytes, by the vector extensions of the compiler alone.
#pragma once

#include <cstdint>

namespace extensor::EXTENSOR_ISA {
constexpr int vector_bytes = 16;
constexpr bool has_scaling = false, has_masked_loads = false, converts_halves = false, folds_in_halves = false;
}  // namespace extensor::EXTENSOR_ISA

#include "core/simd/masks.hpp"

namespace extensor::EXTENSOR_ISA {

// The lower and the upper half of the lanes in double precision, and back.
typedef float HalfOfFloats __attribute__((vector_size(vector_bytes / 2)));
EXTENSOR_INLINE Doubles widen_low(Floats a) {
  HalfOfFloats half;
  std::memcpy(&half, &a.v, sizeof half);
  return {__builtin_convertvector(half, Doubles::Raw)};
}
EXTENSOR_INLINE Doubles widen_high(Floats a) {
  HalfOfFloats half;
  std::memcpy(&half, reinterpret_cast<const char*>(&a.v) + sizeof half, sizeof half);
  return {__builtin_convertvector(half, Doubles::Raw)};
}
EXTENSOR_INLINE Floats narrow(Doubles low, Doubles high) {
  const HalfOfFloats halves[] = {__builtin_convertvector(low.v, HalfOfFloats), __builtin_convertvector(high.v, HalfOfFloats)};
  Floats result;
  std::memcpy(&result.v, halves, sizeof result.v);
  return result;
}

// table[index mod 16] in each lane.
EXTENSOR_INLINE Floats lookup(const float (&table)[16], Integers<float> index) {
  Floats result;
  for (int lane = 0; lane < Floats::lanes; ++lane) result.v[lane] = table[index.v[lane] & 15];
  return result;
}

// Rounding to whole numbers; the sign of zero is kept.
// Adding and taking away the number from which on all numbers are whole rounds half to even.
template <class T> EXTENSOR_INLINE Vec<T> round(Vec<T> a) {
  const Vec<T> whole = sizeof(T) == 4 ? 8388608.0 : 4503599627370496.0;
  const Vec<T> rounded = copysign((abs(a) + whole) - whole, a);
  return select(abs(a) < whole, rounded, a);
}
template <class T> EXTENSOR_INLINE Vec<T> floor(Vec<T> a) {
  const Vec<T> r = round(a);
  return select(r > a, copysign(r - 1.0, a), r);
}
template <class T> EXTENSOR_INLINE Vec<T> ceil(Vec<T> a) { return -floor(-a); }
template <class T> EXTENSOR_INLINE Vec<T> trunc(Vec<T> a) { return copysign(floor(abs(a)), a); }

// As many floats as a vector has doubles.
EXTENSOR_INLINE Doubles load_doubles(const float* from) {
  HalfOfFloats narrow;
  std::memcpy(&narrow, from, sizeof narrow);
  return __builtin_convertvector(narrow, Doubles::Raw);
}

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

// Asked for under `if constexpr (converts_halves)` alone: see the sets that have them.
Floats load_float16(const void* from);
void store_float16(void* to, Floats value);
Floats load_upper_halves(const void* from);
void store_words(void* to, Integers<float> lanes);

// 16 bytes, a vector, at rows[first] + offset.
template <class T> EXTENSOR_INLINE Vec<T> load_parts(const T* const* rows, int first, int, int64_t offset) {
  typename Vec<T>::Raw all;
  std::memcpy(&all, rows[first] + offset, sizeof all);
  return all;
}

}  // namespace extensor::EXTENSOR_ISA
