// Vectors that are only partly filled, and vectors of elements of another floating type.
#pragma once

#include "core/simd.hpp"

namespace extensor::EXTENSOR_ISA {

// As many elements of T as A has lanes, converted to A.
template <class A, class T>
EXTENSOR_INLINE Vec<A> load_as(const T* from) {
  if constexpr (sizeof(A) == sizeof(T)) return load(from);
  else return load_doubles(from);
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
  if constexpr (std::is_same_v<A, T>) {
    return load_some(from, count, rest);
  } else if constexpr (sizeof(A) == 8 && sizeof(T) == 4 && has_masked_loads) {
    return load_first_doubles(from, count, rest);
  } else {
    A lanes[Vec<A>::lanes];
    for (A& lane : lanes) lane = rest;
    for (int64_t i = 0; i < count; ++i) lanes[i] = A(from[i]);
    return load(lanes);
  }
}

template <class T>
EXTENSOR_INLINE Vec<T> load_first(const T* from, int64_t count, T rest = T(0)) {
  return count >= Vec<T>::lanes ? load(from) : load_some(from, count, rest);
}

template <class T>
EXTENSOR_INLINE void store_first(T* to, Vec<T> value, int64_t count) {
  if (count >= Vec<T>::lanes) store(to, value);
  else store_some(to, value, count);
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
