// Vectors of numbers and of their bits, for any width: the set that includes this has said how many bytes they have.
#pragma once

#include <cstdint>
#include <cstring>
#include <type_traits>

#define EXTENSOR_INLINE inline __attribute__((always_inline))
// A lambda that is part of the loop it is called from.
#define EXTENSOR_INLINE_LAMBDA __attribute__((always_inline))

namespace extensor::EXTENSOR_ISA {

template <class T> struct integer_of;
template <> struct integer_of<float> { using type = int32_t; };
template <> struct integer_of<double> { using type = int64_t; };

template <class T>
struct Vec {
  using Element = T;
  using Integer = typename integer_of<T>::type;
  typedef T Raw __attribute__((vector_size(vector_bytes)));
  typedef Integer RawInteger __attribute__((vector_size(vector_bytes)));
  static constexpr int lanes = vector_bytes / static_cast<int>(sizeof(T));

  Raw v;

  Vec() = default;
  EXTENSOR_INLINE Vec(Raw raw) : v(raw) {}
  EXTENSOR_INLINE Vec(double value) : v(static_cast<T>(value) - Raw{}) {}  // minus zero keeps a negative zero
};

// The bits of a vector as signed integers of the same width.
template <class T>
struct Integers {
  using Raw = typename Vec<T>::RawInteger;
  using Integer = typename integer_of<T>::type;
  typedef std::make_unsigned_t<Integer> RawUnsigned __attribute__((vector_size(vector_bytes)));
  Raw v;
  Integers() = default;
  EXTENSOR_INLINE Integers(Raw raw) : v(raw) {}
  EXTENSOR_INLINE Integers(Integer value) : v(Raw{} + value) {}
};

using Floats = Vec<float>;
using Doubles = Vec<double>;

#define EXTENSOR_VECTOR_OPERATOR(op)                                                                    \
  template <class T> EXTENSOR_INLINE Vec<T> operator op(Vec<T> a, Vec<T> b) { return Vec<T>(a.v op b.v); }     \
  template <class T> EXTENSOR_INLINE Vec<T> operator op(Vec<T> a, double b) { return a op Vec<T>(b); }         \
  template <class T> EXTENSOR_INLINE Vec<T> operator op(double a, Vec<T> b) { return Vec<T>(a) op b; }
EXTENSOR_VECTOR_OPERATOR(+)
EXTENSOR_VECTOR_OPERATOR(-)
EXTENSOR_VECTOR_OPERATOR(*)
EXTENSOR_VECTOR_OPERATOR(/)
#undef EXTENSOR_VECTOR_OPERATOR
template <class T> EXTENSOR_INLINE Vec<T> operator-(Vec<T> a) { return Vec<T>(-a.v); }

// Arithmetic wraps around: bits of a nan take part in it before another lane's result is chosen. So it is that of the
// unsigned integers.
#define EXTENSOR_INTEGER_OPERATOR(op)                                                                      \
  template <class T> EXTENSOR_INLINE Integers<T> operator op(Integers<T> a, Integers<T> b) {               \
    using Wrapping = typename Integers<T>::RawUnsigned;                                                    \
    return {(typename Integers<T>::Raw)((Wrapping)a.v op (Wrapping)b.v)};                                  \
  }                                                                                                        \
  template <class T> EXTENSOR_INLINE Integers<T> operator op(Integers<T> a, typename Integers<T>::Integer b) { return a op Integers<T>(b); }
EXTENSOR_INTEGER_OPERATOR(+)
EXTENSOR_INTEGER_OPERATOR(-)
EXTENSOR_INTEGER_OPERATOR(&)
EXTENSOR_INTEGER_OPERATOR(|)
EXTENSOR_INTEGER_OPERATOR(^)
#undef EXTENSOR_INTEGER_OPERATOR
template <class T> EXTENSOR_INLINE Integers<T> operator<<(Integers<T> a, int count) {
  return {(typename Integers<T>::Raw)((typename Integers<T>::RawUnsigned)a.v << count)};
}
template <class T> EXTENSOR_INLINE Integers<T> operator>>(Integers<T> a, int count) { return {a.v >> count}; }

template <class T> EXTENSOR_INLINE Integers<T> bits(Vec<T> a) { return {(typename Integers<T>::Raw)a.v}; }
template <class T> EXTENSOR_INLINE Vec<T> from_bits(Integers<T> a) { return {(typename Vec<T>::Raw)a.v}; }

// The integers as floating numbers.
EXTENSOR_INLINE Vec<float> number_of(Integers<float> a) { return {__builtin_convertvector(a.v, Vec<float>::Raw)}; }

template <class T> EXTENSOR_INLINE Integers<T> sign_bit(Vec<T> a) { return bits(a) & bits(Vec<T>(-0.0)); }
template <class T> EXTENSOR_INLINE Vec<T> abs(Vec<T> a) { return from_bits(Integers<T>(bits(a).v & ~bits(Vec<T>(-0.0)).v)); }
template <class T> EXTENSOR_INLINE Vec<T> copysign(Vec<T> magnitude, Vec<T> sign) {
  return from_bits(bits(abs(magnitude)) | sign_bit(sign));
}
// a with its sign flipped where b is negative.
template <class T> EXTENSOR_INLINE Vec<T> flip_sign(Vec<T> a, Vec<T> b) { return from_bits(bits(a) ^ sign_bit(b)); }

template <class T> EXTENSOR_INLINE Integers<T> shift_right_logical(Integers<T> a, int count) {
  return {(typename Integers<T>::Raw)((typename Integers<T>::RawUnsigned)a.v >> count)};
}

template <class T> EXTENSOR_INLINE Vec<T> load(const T* from) {
  Vec<T> result;
  std::memcpy(&result.v, from, sizeof result.v);
  return result;
}
template <class T> EXTENSOR_INLINE Vec<T> broadcast(T value) { return value - typename Vec<T>::Raw{}; }  // minus zero keeps a negative zero
template <class T> EXTENSOR_INLINE void store(T* to, Vec<T> a) { std::memcpy(to, &a.v, sizeof a.v); }

// The lanes of two vectors behind each other, sorted into those at even and at odd places, and back.
#if defined(__clang__)
#define EXTENSOR_LANES(...) __builtin_shufflevector(a.v, b.v, __VA_ARGS__)
#else
#define EXTENSOR_LANES(...) __builtin_shuffle(a.v, b.v, typename Vec<T>::RawInteger{__VA_ARGS__})
#endif
template <class T> EXTENSOR_INLINE void split_pairs(Vec<T> a, Vec<T> b, Vec<T>& even, Vec<T>& odd) {
  if constexpr (Vec<T>::lanes == 2) {
    even = {EXTENSOR_LANES(0, 2)};
    odd = {EXTENSOR_LANES(1, 3)};
  } else if constexpr (Vec<T>::lanes == 4) {
    even = {EXTENSOR_LANES(0, 2, 4, 6)};
    odd = {EXTENSOR_LANES(1, 3, 5, 7)};
  } else if constexpr (Vec<T>::lanes == 8) {
    even = {EXTENSOR_LANES(0, 2, 4, 6, 8, 10, 12, 14)};
    odd = {EXTENSOR_LANES(1, 3, 5, 7, 9, 11, 13, 15)};
  } else {
    even = {EXTENSOR_LANES(0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30)};
    odd = {EXTENSOR_LANES(1, 3, 5, 7, 9, 11, 13, 15, 17, 19, 21, 23, 25, 27, 29, 31)};
  }
}
template <class T> EXTENSOR_INLINE void join_pairs(Vec<T> a, Vec<T> b, Vec<T>& first, Vec<T>& second) {
  if constexpr (Vec<T>::lanes == 2) {
    first = {EXTENSOR_LANES(0, 2)};
    second = {EXTENSOR_LANES(1, 3)};
  } else if constexpr (Vec<T>::lanes == 4) {
    first = {EXTENSOR_LANES(0, 4, 1, 5)};
    second = {EXTENSOR_LANES(2, 6, 3, 7)};
  } else if constexpr (Vec<T>::lanes == 8) {
    first = {EXTENSOR_LANES(0, 8, 1, 9, 2, 10, 3, 11)};
    second = {EXTENSOR_LANES(4, 12, 5, 13, 6, 14, 7, 15)};
  } else {
    first = {EXTENSOR_LANES(0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23)};
    second = {EXTENSOR_LANES(8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31)};
  }
}
#undef EXTENSOR_LANES

}  // namespace extensor::EXTENSOR_ISA
