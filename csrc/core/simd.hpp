// Vectors of float and double, as wide as the instruction set of this compilation, on top of the vector
// extensions of GCC and Clang. Included only by sources that are compiled once per instruction set. A set says in a file of
// its own how it does what the others do; whatever needs no instruction of its own stands here and in simd/vectors.hpp.
#pragma once

#if defined(__AVX512F__)
#include "core/simd/avx512.hpp"
#elif defined(__AVX2__)
#include "core/simd/avx2.hpp"
#elif defined(__SSE2__)
#include "core/simd/sse2.hpp"
#elif defined(__aarch64__)
#include "core/simd/neon.hpp"
#else
#include "core/simd/generic.hpp"
#endif

namespace extensor::EXTENSOR_ISA {

#define EXTENSOR_VECTOR_COMPARISON(op)                                                                  \
  template <class T> EXTENSOR_INLINE Mask<T> operator op(Vec<T> a, double b) { return a op Vec<T>(b); } \
  template <class T> EXTENSOR_INLINE Mask<T> operator op(double a, Vec<T> b) { return Vec<T>(a) op b; }
EXTENSOR_VECTOR_COMPARISON(<)
EXTENSOR_VECTOR_COMPARISON(<=)
EXTENSOR_VECTOR_COMPARISON(>)
EXTENSOR_VECTOR_COMPARISON(>=)
EXTENSOR_VECTOR_COMPARISON(==)
EXTENSOR_VECTOR_COMPARISON(!=)
#undef EXTENSOR_VECTOR_COMPARISON

template <class T> EXTENSOR_INLINE Vec<T> select(Mask<T> m, Vec<T> a, double b) { return select(m, a, Vec<T>(b)); }
template <class T> EXTENSOR_INLINE Vec<T> select(Mask<T> m, double a, Vec<T> b) { return select(m, Vec<T>(a), b); }
template <class T> EXTENSOR_INLINE Vec<T> select(Mask<T> m, double a, double b) { return select(m, Vec<T>(a), Vec<T>(b)); }

// Where a set has its own way of these (has_masked_loads, folds_in_halves), it is defined there.
Doubles load_first_doubles(const float* from, int64_t count, double rest);
template <bool adds> double fold_widened(const float* x, int64_t n, float start);
template <class T> Vec<T> scaled(Vec<T> a, Vec<T> k);

template <class T> EXTENSOR_INLINE Mask<T> isnan(Vec<T> a) { return a != a; }

template <class T> EXTENSOR_INLINE Vec<T> at_least(double bound, Vec<T> x) { return at_least(Vec<T>(bound), x); }
template <class T> EXTENSOR_INLINE Vec<T> at_most(double bound, Vec<T> x) { return at_most(Vec<T>(bound), x); }

template <class T> EXTENSOR_INLINE Vec<T> fma(Vec<T> a, Vec<T> b, double c) { return fma(a, b, Vec<T>(c)); }
template <class T> EXTENSOR_INLINE Vec<T> fma(Vec<T> a, double b, Vec<T> c) { return fma(a, Vec<T>(b), c); }
template <class T> EXTENSOR_INLINE Vec<T> fma(Vec<T> a, double b, double c) { return fma(a, Vec<T>(b), Vec<T>(c)); }

}  // namespace extensor::EXTENSOR_ISA
