// Processors that are neither x86 nor 64-bit ARM. The compiler turns loops over the lanes into the instructions there are.
#pragma once

#include "core/simd/plain.hpp"

namespace extensor::EXTENSOR_ISA {

constexpr bool has_fma = false;

// Any lane set?
template <class T> EXTENSOR_INLINE bool any(Mask<T> m) {
  int64_t lanes[vector_bytes / 8], together = 0;
  std::memcpy(lanes, &m.v, sizeof lanes);
  for (int64_t lane : lanes) together |= lane;
  return together != 0;
}

// Masks to bytes 0 or 1.
template <class T> EXTENSOR_INLINE void store_mask(uint8_t* to, Mask<T> m) {
  typedef int8_t Bytes __attribute__((vector_size(vector_bytes / sizeof(T))));
  const Bytes bytes = __builtin_convertvector(m.v, Bytes) & 1;
  std::memcpy(to, &bytes, vector_bytes / sizeof(T));
}

// The larger of a bound and x, the smaller of a bound and x; a nan in x passes through.
template <class T> EXTENSOR_INLINE Vec<T> at_least(Vec<T> b, Vec<T> x) { return select(b > x, b, x); }
template <class T> EXTENSOR_INLINE Vec<T> at_most(Vec<T> b, Vec<T> x) { return select(b < x, b, x); }

// a*b + c, rounded twice.
template <class T> EXTENSOR_INLINE Vec<T> fma(Vec<T> a, Vec<T> b, Vec<T> c) { return a * b + c; }
template <class T> EXTENSOR_INLINE Vec<T> sqrt(Vec<T> a) {
  Vec<T> result;
  for (int lane = 0; lane < Vec<T>::lanes; ++lane)
    result.v[lane] = sizeof(T) == 4 ? __builtin_sqrtf(a.v[lane]) : __builtin_sqrt(a.v[lane]);
  return result;
}

}  // namespace extensor::EXTENSOR_ISA
