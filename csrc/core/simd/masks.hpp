// Masks for sets whose comparisons give vectors: all bits set where true.
#pragma once

#include "core/simd/vectors.hpp"

namespace extensor::EXTENSOR_ISA {

template <class T>
struct Mask {
  using Element = T;
  typename Vec<T>::RawInteger v;
};

#define EXTENSOR_COMPARE_VECTORS(op)                                                                            \
  template <class T> EXTENSOR_INLINE Mask<T> operator op(Vec<T> a, Vec<T> b) { return {a.v op b.v}; }           \
  template <class T> EXTENSOR_INLINE Mask<T> operator op(Integers<T> a, Integers<T> b) { return {a.v op b.v}; }
EXTENSOR_COMPARE_VECTORS(<)
EXTENSOR_COMPARE_VECTORS(<=)
EXTENSOR_COMPARE_VECTORS(>)
EXTENSOR_COMPARE_VECTORS(>=)
EXTENSOR_COMPARE_VECTORS(==)
EXTENSOR_COMPARE_VECTORS(!=)
#undef EXTENSOR_COMPARE_VECTORS

template <class T> EXTENSOR_INLINE Mask<T> operator&&(Mask<T> a, Mask<T> b) { return {a.v & b.v}; }
template <class T> EXTENSOR_INLINE Mask<T> operator||(Mask<T> a, Mask<T> b) { return {a.v | b.v}; }
template <class T> EXTENSOR_INLINE Mask<T> operator^(Mask<T> a, Mask<T> b) { return {a.v ^ b.v}; }
template <class T> EXTENSOR_INLINE Mask<T> operator!(Mask<T> a) { return {~a.v}; }

template <class T> EXTENSOR_INLINE Vec<T> select(Mask<T> m, Vec<T> a, Vec<T> b) { return {m.v ? a.v : b.v}; }
// a where m, else +0: one instruction where a blend takes several.
template <class T> EXTENSOR_INLINE Vec<T> keep(Mask<T> m, Vec<T> a) { return from_bits(Integers<T>(m.v & bits(a).v)); }
// -1 where m, else 0.
template <class T> EXTENSOR_INLINE Integers<T> minus_one_where(Mask<T> m) { return {m.v}; }
// True in the first `count` lanes.
template <class T> EXTENSOR_INLINE Mask<T> lanes_below(int count) {
  Mask<T> result;
  for (int lane = 0; lane < Vec<T>::lanes; ++lane) result.v[lane] = lane < count ? -1 : 0;
  return result;
}

// Bytes 0 or not to masks.
template <class T> EXTENSOR_INLINE Mask<T> load_mask(const uint8_t* from) {
  typedef int8_t Bytes __attribute__((vector_size(vector_bytes / sizeof(T))));
  Bytes bytes;
  std::memcpy(&bytes, from, sizeof bytes);
  return {__builtin_convertvector(bytes, typename Vec<T>::RawInteger) != 0};
}

}  // namespace extensor::EXTENSOR_ISA
