// Vectors of float and double, as wide as the instruction set of this compilation, on top of the vector
// extensions of GCC and Clang. Included only by sources that are compiled once per instruction set.
#pragma once

#include <cstdint>
#include <cstring>
#include <type_traits>

#if defined(__SSE2__)
#include <immintrin.h>
#endif

#define EXTENSOR_INLINE inline __attribute__((always_inline))

namespace extensor::EXTENSOR_ISA {

#if defined(__AVX512F__)
constexpr int vector_bytes = 64;
#elif defined(__AVX2__)
constexpr int vector_bytes = 32;
#else
constexpr int vector_bytes = 16;
#endif

#if defined(__FMA__) || defined(__aarch64__)
constexpr bool has_fma = true;
#else
constexpr bool has_fma = false;
#endif

template <class T> struct integer_of;
template <> struct integer_of<float> { using type = int32_t; };
template <> struct integer_of<double> { using type = int64_t; };

template <class T> struct Mask;
template <class T> struct Integers;

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

#if defined(__AVX512F__)
// One bit per lane, in a register of its own kind.
template <class T>
struct Mask {
  using Element = T;
  using Raw = std::conditional_t<sizeof(T) == 4, __mmask16, __mmask8>;
  Raw v;
};
#else
// All bits set where true.
template <class T>
struct Mask {
  using Element = T;
  typename Vec<T>::RawInteger v;
};
#endif

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

#if defined(__AVX512F__)
#define EXTENSOR_COMPARE_VECTORS(op, floating, integer)                                                                  \
  template <class T> EXTENSOR_INLINE Mask<T> operator op(Vec<T> a, Vec<T> b) {                                           \
    if constexpr (sizeof(T) == 4) return {_mm512_cmp_ps_mask((__m512)a.v, (__m512)b.v, floating)};                       \
    else return {_mm512_cmp_pd_mask((__m512d)a.v, (__m512d)b.v, floating)};                                              \
  }                                                                                                                      \
  template <class T> EXTENSOR_INLINE Mask<T> operator op(Integers<T> a, Integers<T> b) {                                 \
    if constexpr (sizeof(T) == 4) return {_mm512_cmp_epi32_mask((__m512i)a.v, (__m512i)b.v, integer)};                   \
    else return {_mm512_cmp_epi64_mask((__m512i)a.v, (__m512i)b.v, integer)};                                            \
  }
#else
#define EXTENSOR_COMPARE_VECTORS(op, floating, integer)                                                         \
  template <class T> EXTENSOR_INLINE Mask<T> operator op(Vec<T> a, Vec<T> b) { return {a.v op b.v}; }           \
  template <class T> EXTENSOR_INLINE Mask<T> operator op(Integers<T> a, Integers<T> b) { return {a.v op b.v}; }
#endif
#define EXTENSOR_VECTOR_COMPARISON(op, floating, integer)                                                       \
  EXTENSOR_COMPARE_VECTORS(op, floating, integer)                                                               \
  template <class T> EXTENSOR_INLINE Mask<T> operator op(Vec<T> a, double b) { return a op Vec<T>(b); }         \
  template <class T> EXTENSOR_INLINE Mask<T> operator op(double a, Vec<T> b) { return Vec<T>(a) op b; }
EXTENSOR_VECTOR_COMPARISON(<, _CMP_LT_OQ, _MM_CMPINT_LT)
EXTENSOR_VECTOR_COMPARISON(<=, _CMP_LE_OQ, _MM_CMPINT_LE)
EXTENSOR_VECTOR_COMPARISON(>, _CMP_GT_OQ, _MM_CMPINT_NLE)
EXTENSOR_VECTOR_COMPARISON(>=, _CMP_GE_OQ, _MM_CMPINT_NLT)
EXTENSOR_VECTOR_COMPARISON(==, _CMP_EQ_OQ, _MM_CMPINT_EQ)
EXTENSOR_VECTOR_COMPARISON(!=, _CMP_NEQ_UQ, _MM_CMPINT_NE)
#undef EXTENSOR_VECTOR_COMPARISON
#undef EXTENSOR_COMPARE_VECTORS

#if defined(__AVX512F__)
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
#else
template <class T> EXTENSOR_INLINE Mask<T> operator&&(Mask<T> a, Mask<T> b) { return {a.v & b.v}; }
template <class T> EXTENSOR_INLINE Mask<T> operator||(Mask<T> a, Mask<T> b) { return {a.v | b.v}; }
template <class T> EXTENSOR_INLINE Mask<T> operator^(Mask<T> a, Mask<T> b) { return {a.v ^ b.v}; }
template <class T> EXTENSOR_INLINE Mask<T> operator!(Mask<T> a) { return {~a.v}; }
#endif

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

template <class T> EXTENSOR_INLINE Vec<T> select(Mask<T> m, Vec<T> a, Vec<T> b) {
#if defined(__AVX512F__)
  if constexpr (sizeof(T) == 4) return {(typename Vec<T>::Raw)_mm512_mask_blend_ps(m.v, (__m512)b.v, (__m512)a.v)};
  else return {(typename Vec<T>::Raw)_mm512_mask_blend_pd(m.v, (__m512d)b.v, (__m512d)a.v)};
#else
  return {m.v ? a.v : b.v};
#endif
}
template <class T> EXTENSOR_INLINE Vec<T> select(Mask<T> m, Vec<T> a, double b) { return select(m, a, Vec<T>(b)); }
template <class T> EXTENSOR_INLINE Vec<T> select(Mask<T> m, double a, Vec<T> b) { return select(m, Vec<T>(a), b); }
template <class T> EXTENSOR_INLINE Vec<T> select(Mask<T> m, double a, double b) { return select(m, Vec<T>(a), Vec<T>(b)); }
// a where m, else +0: one instruction where a blend takes several.
template <class T> EXTENSOR_INLINE Vec<T> keep(Mask<T> m, Vec<T> a) {
#if defined(__AVX512F__)
  if constexpr (sizeof(T) == 4) return {(typename Vec<T>::Raw)_mm512_maskz_mov_ps(m.v, (__m512)a.v)};
  else return {(typename Vec<T>::Raw)_mm512_maskz_mov_pd(m.v, (__m512d)a.v)};
#else
  return from_bits(Integers<T>(m.v & bits(a).v));
#endif
}
// -1 where m, else 0.
template <class T> EXTENSOR_INLINE Integers<T> minus_one_where(Mask<T> m) {
#if defined(__AVX512F__)
  if constexpr (sizeof(T) == 4) return {(typename Integers<T>::Raw)_mm512_movm_epi32(m.v)};
  else return {(typename Integers<T>::Raw)_mm512_movm_epi64(m.v)};
#else
  return {m.v};
#endif
}
// True in the first `count` lanes.
template <class T> EXTENSOR_INLINE Mask<T> lanes_below(int count) {
#if defined(__AVX512F__)
  return {static_cast<typename Mask<T>::Raw>((1u << count) - 1)};
#else
  Mask<T> result;
  for (int lane = 0; lane < Vec<T>::lanes; ++lane) result.v[lane] = lane < count ? -1 : 0;
  return result;
#endif
}

template <class T> EXTENSOR_INLINE Mask<T> isnan(Vec<T> a) { return a != a; }

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

// The larger of a bound and x, the smaller of a bound and x; a nan in x passes through.
#if defined(__AVX512F__)
#define EXTENSOR_BOUND(name) (sizeof(T) == 4 ? (Raw)_mm512_##name##_ps((__m512)b.v, (__m512)x.v) : (Raw)_mm512_##name##_pd((__m512d)b.v, (__m512d)x.v))
#elif defined(__AVX2__)
#define EXTENSOR_BOUND(name) (sizeof(T) == 4 ? (Raw)_mm256_##name##_ps((__m256)b.v, (__m256)x.v) : (Raw)_mm256_##name##_pd((__m256d)b.v, (__m256d)x.v))
#elif defined(__SSE2__)
#define EXTENSOR_BOUND(name) (sizeof(T) == 4 ? (Raw)_mm_##name##_ps((__m128)b.v, (__m128)x.v) : (Raw)_mm_##name##_pd((__m128d)b.v, (__m128d)x.v))
#endif
template <class T> EXTENSOR_INLINE Vec<T> at_least(Vec<T> b, Vec<T> x) {
#ifdef EXTENSOR_BOUND
  using Raw = typename Vec<T>::Raw;
  return {EXTENSOR_BOUND(max)};
#else
  return select(b > x, b, x);
#endif
}
template <class T> EXTENSOR_INLINE Vec<T> at_most(Vec<T> b, Vec<T> x) {
#ifdef EXTENSOR_BOUND
  using Raw = typename Vec<T>::Raw;
  return {EXTENSOR_BOUND(min)};
#else
  return select(b < x, b, x);
#endif
}
#undef EXTENSOR_BOUND
template <class T> EXTENSOR_INLINE Vec<T> at_least(double bound, Vec<T> x) { return at_least(Vec<T>(bound), x); }
template <class T> EXTENSOR_INLINE Vec<T> at_most(double bound, Vec<T> x) { return at_most(Vec<T>(bound), x); }

// The lower and the upper half of the lanes in double precision, and back.
#if defined(__AVX512F__)
EXTENSOR_INLINE Doubles widen_low(Floats a) { return {(Doubles::Raw)_mm512_cvtps_pd(_mm512_castps512_ps256((__m512)a.v))}; }
EXTENSOR_INLINE Doubles widen_high(Floats a) { return {(Doubles::Raw)_mm512_cvtps_pd(_mm512_extractf32x8_ps((__m512)a.v, 1))}; }
EXTENSOR_INLINE Floats narrow(Doubles low, Doubles high) {
  const __m512 lower = _mm512_castps256_ps512(_mm512_cvtpd_ps((__m512d)low.v));
  return {(Floats::Raw)_mm512_insertf32x8(lower, _mm512_cvtpd_ps((__m512d)high.v), 1)};
}
#elif defined(__AVX2__)
EXTENSOR_INLINE Doubles widen_low(Floats a) { return {(Doubles::Raw)_mm256_cvtps_pd(_mm256_castps256_ps128((__m256)a.v))}; }
EXTENSOR_INLINE Doubles widen_high(Floats a) { return {(Doubles::Raw)_mm256_cvtps_pd(_mm256_extractf128_ps((__m256)a.v, 1))}; }
EXTENSOR_INLINE Floats narrow(Doubles low, Doubles high) {
  return {(Floats::Raw)_mm256_set_m128(_mm256_cvtpd_ps((__m256d)high.v), _mm256_cvtpd_ps((__m256d)low.v))};
}
#else
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
#endif

// table[index mod 16] in each lane.
EXTENSOR_INLINE Floats lookup(const float (&table)[16], Integers<float> index) {
#if defined(__AVX512F__)
  return {(Floats::Raw)_mm512_permutexvar_ps((__m512i)index.v, _mm512_loadu_ps(table))};
#elif defined(__AVX2__)
  const __m256 low = _mm256_permutevar8x32_ps(_mm256_loadu_ps(table), (__m256i)index.v);
  const __m256 high = _mm256_permutevar8x32_ps(_mm256_loadu_ps(table + 8), (__m256i)index.v);
  return {(Floats::Raw)_mm256_blendv_ps(low, high, (__m256)(index << 28).v)};
#else
  Floats result;
  for (int lane = 0; lane < Floats::lanes; ++lane) result.v[lane] = table[index.v[lane] & 15];
  return result;
#endif
}

// Any lane set?
template <class T> EXTENSOR_INLINE bool any(Mask<T> m) {
#if defined(__AVX512F__)
  return m.v != 0;
#elif defined(__AVX2__)
  return !_mm256_testz_si256((__m256i)m.v, (__m256i)m.v);
#elif defined(__SSE2__)
  return _mm_movemask_epi8((__m128i)m.v) != 0;
#else
  int64_t lanes[vector_bytes / 8], together = 0;
  std::memcpy(lanes, &m.v, sizeof lanes);
  for (int64_t lane : lanes) together |= lane;
  return together != 0;
#endif
}

// Per lane, the value of a function of the C library; the compiler turns those that have an instruction into it.
#define EXTENSOR_LANEWISE(expression)                                     \
  Vec<T> result;                                                          \
  for (int lane = 0; lane < Vec<T>::lanes; ++lane) result.v[lane] = expression; \
  return result;

// a*b + c: rounded once where the instruction set can, else twice.
template <class T> EXTENSOR_INLINE Vec<T> fma(Vec<T> a, Vec<T> b, Vec<T> c) {
  constexpr bool single = sizeof(T) == 4;
  (void)single;
#if defined(__AVX512F__)
  if constexpr (single) return {(typename Vec<T>::Raw)_mm512_fmadd_ps((__m512)a.v, (__m512)b.v, (__m512)c.v)};
  else return {(typename Vec<T>::Raw)_mm512_fmadd_pd((__m512d)a.v, (__m512d)b.v, (__m512d)c.v)};
#elif defined(__FMA__)
  if constexpr (single) return {(typename Vec<T>::Raw)_mm256_fmadd_ps((__m256)a.v, (__m256)b.v, (__m256)c.v)};
  else return {(typename Vec<T>::Raw)_mm256_fmadd_pd((__m256d)a.v, (__m256d)b.v, (__m256d)c.v)};
#elif defined(__aarch64__)
  if constexpr (single) { EXTENSOR_LANEWISE(__builtin_fmaf(a.v[lane], b.v[lane], c.v[lane])) }
  else { EXTENSOR_LANEWISE(__builtin_fma(a.v[lane], b.v[lane], c.v[lane])) }
#else
  return a * b + c;
#endif
}
template <class T> EXTENSOR_INLINE Vec<T> fma(Vec<T> a, Vec<T> b, double c) { return fma(a, b, Vec<T>(c)); }
template <class T> EXTENSOR_INLINE Vec<T> fma(Vec<T> a, double b, Vec<T> c) { return fma(a, Vec<T>(b), c); }
template <class T> EXTENSOR_INLINE Vec<T> fma(Vec<T> a, double b, double c) { return fma(a, Vec<T>(b), Vec<T>(c)); }

template <class T> EXTENSOR_INLINE Vec<T> sqrt(Vec<T> a) {
  constexpr bool single = sizeof(T) == 4;
#if defined(__AVX512F__)
  if constexpr (single) return {(typename Vec<T>::Raw)_mm512_sqrt_ps((__m512)a.v)};
  else return {(typename Vec<T>::Raw)_mm512_sqrt_pd((__m512d)a.v)};
#elif defined(__AVX2__)
  if constexpr (single) return {(typename Vec<T>::Raw)_mm256_sqrt_ps((__m256)a.v)};
  else return {(typename Vec<T>::Raw)_mm256_sqrt_pd((__m256d)a.v)};
#elif defined(__SSE2__)
  if constexpr (single) return {(typename Vec<T>::Raw)_mm_sqrt_ps((__m128)a.v)};
  else return {(typename Vec<T>::Raw)_mm_sqrt_pd((__m128d)a.v)};
#else
  if constexpr (single) { EXTENSOR_LANEWISE(__builtin_sqrtf(a.v[lane])) }
  else { EXTENSOR_LANEWISE(__builtin_sqrt(a.v[lane])) }
#endif
}

// Whether there is an instruction for a 2^k, k a whole number, rounded once; its users know how to do without.
#if defined(__AVX512F__)
constexpr bool has_scaling = true;
template <class T> EXTENSOR_INLINE Vec<T> scaled(Vec<T> a, Vec<T> k) {
  if constexpr (sizeof(T) == 4) return {(typename Vec<T>::Raw)_mm512_scalef_ps((__m512)a.v, (__m512)k.v)};
  else return {(typename Vec<T>::Raw)_mm512_scalef_pd((__m512d)a.v, (__m512d)k.v)};
}
#else
constexpr bool has_scaling = false;
#endif

// Rounding to whole numbers; the sign of zero is kept.
#if defined(__AVX512F__)
#define EXTENSOR_ROUND(mode)                                                                                        \
  if constexpr (sizeof(T) == 4) return {(typename Vec<T>::Raw)_mm512_roundscale_ps((__m512)a.v, (mode) | _MM_FROUND_NO_EXC)}; \
  else return {(typename Vec<T>::Raw)_mm512_roundscale_pd((__m512d)a.v, (mode) | _MM_FROUND_NO_EXC)};
#elif defined(__AVX2__)
#define EXTENSOR_ROUND(mode)                                                                                        \
  if constexpr (sizeof(T) == 4) return {(typename Vec<T>::Raw)_mm256_round_ps((__m256)a.v, (mode) | _MM_FROUND_NO_EXC)}; \
  else return {(typename Vec<T>::Raw)_mm256_round_pd((__m256d)a.v, (mode) | _MM_FROUND_NO_EXC)};
#endif
#ifdef EXTENSOR_ROUND
template <class T> EXTENSOR_INLINE Vec<T> round(Vec<T> a) { EXTENSOR_ROUND(_MM_FROUND_TO_NEAREST_INT) }
template <class T> EXTENSOR_INLINE Vec<T> floor(Vec<T> a) { EXTENSOR_ROUND(_MM_FROUND_TO_NEG_INF) }
template <class T> EXTENSOR_INLINE Vec<T> ceil(Vec<T> a) { EXTENSOR_ROUND(_MM_FROUND_TO_POS_INF) }
template <class T> EXTENSOR_INLINE Vec<T> trunc(Vec<T> a) { EXTENSOR_ROUND(_MM_FROUND_TO_ZERO) }
#undef EXTENSOR_ROUND
#else
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
#endif

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

// Bytes 0 or not to masks, and masks to bytes 0 or 1.
template <class T> EXTENSOR_INLINE Mask<T> load_mask(const uint8_t* from) {
#if defined(__AVX512F__)
  __m128i bytes = _mm_setzero_si128();
  std::memcpy(&bytes, from, Vec<T>::lanes);
  return {static_cast<typename Mask<T>::Raw>(_mm_test_epi8_mask(bytes, bytes))};
#else
  typedef int8_t Bytes __attribute__((vector_size(vector_bytes / sizeof(T))));
  Bytes bytes;
  std::memcpy(&bytes, from, sizeof bytes);
  return {__builtin_convertvector(bytes, typename Vec<T>::RawInteger) != 0};
#endif
}
#if defined(__SSE2__) && !defined(__AVX512F__)
// The lanes of two halves of a mask as 16-bit words.
EXTENSOR_INLINE __m128i narrow_mask(__m128i low, __m128i high, float) { return _mm_packs_epi32(low, high); }
EXTENSOR_INLINE __m128i narrow_mask(__m128i low, __m128i high, double) {
  const __m128i lanes = _mm_castps_si128(_mm_shuffle_ps(_mm_castsi128_ps(low), _mm_castsi128_ps(high), 0x88));
  return _mm_packs_epi32(lanes, lanes);
}
#endif
template <class T> EXTENSOR_INLINE void store_mask(uint8_t* to, Mask<T> m) {
#if defined(__AVX512F__)
  const __m128i bytes = _mm_maskz_mov_epi8(m.v, _mm_set1_epi8(1));
#elif defined(__AVX2__)
  const __m128i words = narrow_mask(_mm256_castsi256_si128((__m256i)m.v), _mm256_extracti128_si256((__m256i)m.v, 1), T());
  const __m128i bytes = _mm_and_si128(_mm_packs_epi16(words, words), _mm_set1_epi8(1));
#elif defined(__SSE2__)
  const __m128i words = narrow_mask((__m128i)m.v, (__m128i)m.v, T());
  const __m128i bytes = _mm_and_si128(_mm_packs_epi16(words, words), _mm_set1_epi8(1));
#else
  typedef int8_t Bytes __attribute__((vector_size(vector_bytes / sizeof(T))));
  const Bytes bytes = __builtin_convertvector(m.v, Bytes) & 1;
#endif
  std::memcpy(to, &bytes, vector_bytes / sizeof(T));
}

#undef EXTENSOR_LANEWISE

}  // namespace extensor::EXTENSOR_ISA
