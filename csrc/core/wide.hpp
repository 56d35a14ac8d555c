// Wide vectors: 64 bytes whatever the registers are, so that sums over lanes have one order on every instruction set. One
// register of AVX-512, two of AVX2, four of NEON. What is not summed up over lanes needs none of this.
#pragma once

#include "core/partial.hpp"

namespace extensor::EXTENSOR_ISA {

// A set that rounds products before it adds them gives other bits anyway, and keeps the width of its registers.
constexpr int wide_bytes = has_fma ? 64 : vector_bytes, wide_parts = wide_bytes / vector_bytes;
template <class T> constexpr int wide_lanes = wide_bytes / int(sizeof(T));

// Lane i of the wide vector is lane i % lanes of part i / lanes.
template <class T>
struct Group {
  using Element = T;
  Vec<T> part[wide_parts];

  Group() = default;
  EXTENSOR_INLINE explicit Group(Vec<T> same) {
#pragma GCC unroll 4
    for (Vec<T>& value : part) value = same;
  }
  EXTENSOR_INLINE explicit Group(double value) : Group(Vec<T>(value)) {}
};

template <class T> using Wide = std::conditional_t<wide_parts == 1, Vec<T>, Group<T>>;

template <class T> EXTENSOR_INLINE Vec<T>& part_of(Vec<T>& value, int) { return value; }
template <class T> EXTENSOR_INLINE Vec<T>& part_of(Group<T>& value, int p) { return value.part[p]; }
template <class T> EXTENSOR_INLINE const Vec<T>& part_of(const Vec<T>& value, int) { return value; }
template <class T> EXTENSOR_INLINE const Vec<T>& part_of(const Group<T>& value, int p) { return value.part[p]; }

// A group of what f(p) gives for each part.
template <class T, class Function>
EXTENSOR_INLINE Group<T> by_parts(const Function& f) {
  Group<T> result;
#pragma GCC unroll 4
  for (int p = 0; p < wide_parts; ++p) result.part[p] = f(p);
  return result;
}
#define EXTENSOR_BY_PARTS(...) by_parts<T>([&](int p) EXTENSOR_INLINE_LAMBDA { return __VA_ARGS__; })

#define EXTENSOR_GROUP_OPERATOR(op)                                                                                                      \
  template <class T> EXTENSOR_INLINE Group<T> operator op(const Group<T>& a, const Group<T>& b) { return EXTENSOR_BY_PARTS(a.part[p] op b.part[p]); } \
  template <class T> EXTENSOR_INLINE Group<T> operator op(const Group<T>& a, Vec<T> b) { return EXTENSOR_BY_PARTS(a.part[p] op b); }      \
  template <class T> EXTENSOR_INLINE Group<T> operator op(Vec<T> a, const Group<T>& b) { return EXTENSOR_BY_PARTS(a op b.part[p]); }
EXTENSOR_GROUP_OPERATOR(+)
EXTENSOR_GROUP_OPERATOR(-)
EXTENSOR_GROUP_OPERATOR(*)
EXTENSOR_GROUP_OPERATOR(/)
#undef EXTENSOR_GROUP_OPERATOR

template <class T> EXTENSOR_INLINE Group<T> fma(const Group<T>& a, const Group<T>& b, const Group<T>& c) {
  return EXTENSOR_BY_PARTS(fma(a.part[p], b.part[p], c.part[p]));
}
template <class T> EXTENSOR_INLINE Group<T> fma(const Group<T>& a, Vec<T> b, Vec<T> c) { return EXTENSOR_BY_PARTS(fma(a.part[p], b, c)); }

template <class T> EXTENSOR_INLINE Group<T> at_least(const Group<T>& b, const Group<T>& x) { return EXTENSOR_BY_PARTS(at_least(b.part[p], x.part[p])); }

// From and to memory; the first `count` lanes alone, where the others are `rest`. Never touches memory behind them.
template <class A, class T>
EXTENSOR_INLINE Wide<A> load_wide_as(const T* from) {
  if constexpr (wide_parts == 1) return load_as<A>(from);
  else return by_parts<A>([&](int p) EXTENSOR_INLINE_LAMBDA { return load_as<A>(from + p * Vec<A>::lanes); });
}
template <class A, class T>
EXTENSOR_INLINE Wide<A> load_wide_as(const T* from, int64_t count, A rest) {
  if constexpr (wide_parts == 1) return load_first_as<A>(from, count, rest);
  else
    return by_parts<A>([&](int p) EXTENSOR_INLINE_LAMBDA {
      const int64_t left = count - p * Vec<A>::lanes;
      return left <= 0 ? broadcast(rest) : load_first_as<A>(from + p * Vec<A>::lanes, left, rest);
    });
}
template <class T> EXTENSOR_INLINE Wide<T> load_wide(const T* from) { return load_wide_as<T>(from); }
template <class T>
EXTENSOR_INLINE Wide<T> load_wide(const T* from, int64_t count, T rest = T(0)) {
  if constexpr (wide_parts == 1) return load_first(from, count, rest);
  else
    return by_parts<T>([&](int p) EXTENSOR_INLINE_LAMBDA {
      const int64_t left = count - p * Vec<T>::lanes;
      return left <= 0 ? broadcast(rest) : load_first(from + p * Vec<T>::lanes, left, rest);
    });
}
template <class T> EXTENSOR_INLINE void store_wide(T* to, Vec<T> value, int64_t count) { store_first(to, value, count); }
template <class T>
EXTENSOR_INLINE void store_wide(T* to, const Group<T>& value, int64_t count) {
#pragma GCC unroll 4
  for (int p = 0; p < wide_parts; ++p) {
    const int64_t left = count - p * Vec<T>::lanes;
    if (left > 0) store_first(to + p * Vec<T>::lanes, value.part[p], left);
  }
}
template <class T, class A> EXTENSOR_INLINE void store_wide_as(T* to, Vec<A> value) { store_as<T>(to, value); }
template <class T, class A>
EXTENSOR_INLINE void store_wide_as(T* to, const Group<A>& value) {
#pragma GCC unroll 4
  for (int p = 0; p < wide_parts; ++p) store_as<T>(to + p * Vec<A>::lanes, value.part[p]);
}

// Part `part` of a wide vector's lanes as float64: the wide vector of doubles that starts at lane part * wide_lanes<double>.
template <class T>
EXTENSOR_INLINE Group<double> widened_part(const Group<T>& value, int part) {
  (void)part;
  if constexpr (sizeof(T) == 8) {
    return value;
  } else {
    return by_parts<double>([&](int p) EXTENSOR_INLINE_LAMBDA {
      const int half = part * wide_parts + p;
      return half % 2 == 0 ? widen_low(value.part[half / 2]) : widen_high(value.part[half / 2]);
    });
  }
}

}  // namespace extensor::EXTENSOR_ISA
