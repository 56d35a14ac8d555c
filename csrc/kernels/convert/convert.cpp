// Compiled once per instruction set.
#include "kernels/convert/convert.hpp"

#include "kernels/elementwise/convert.hpp"

namespace extensor::EXTENSOR_ISA {
namespace {

// Half precision takes the way through float32, a stretch of elements at a time that stays in the cache.
constexpr int64_t stretch = 512;

template <class From, class To>
void convert(const void* from, void* to, int64_t n) {
  const From* x = static_cast<const From*>(from);
  To* out = static_cast<To*>(to);
  for (int64_t i = 0; i < n; ++i) {
    if constexpr (std::is_same_v<To, bool>) out[i] = x[i] != From(0);
    else out[i] = To(x[i]);
  }
}

// float64 with 13 digits, rounded to odd: towards zero, and with the last digit set if anything was lost. That goes into
// float32 as it is, and rounding it to the 11 digits of float16 gives what rounding the float64 itself would give; a float32
// rounded to the nearest might be a tie that was none.
void narrow_to_odd(const void* from, void* to, int64_t n) {
  const double* x = static_cast<const double*>(from);
  float* out = static_cast<float*>(to);
  constexpr uint64_t last = uint64_t(1) << 40, below = last - 1;
  for (int64_t i = 0; i < n; ++i) {
    uint64_t bits;
    std::memcpy(&bits, x + i, sizeof bits);
    bits = (bits | (((bits & below) + below) & last)) & ~below;
    double rounded;
    std::memcpy(&rounded, &bits, sizeof rounded);
    out[i] = float(rounded);
  }
}

using Widen = void (*)(const void*, float*, int64_t);
using Narrow = void (*)(const float*, void*, int64_t);

template <Widen widen>
void half_to_float32(const void* from, void* to, int64_t n) { widen(from, static_cast<float*>(to), n); }

template <Narrow narrow>
void float32_to_half(const void* from, void* to, int64_t n) { narrow(static_cast<const float*>(from), to, n); }

template <class Part>
void in_stretches(int64_t n, const Part& part) {
  for (int64_t i = 0; i < n; i += stretch) part(i, n - i < stretch ? n - i : stretch);
}

template <Widen widen>
void half_to_float64(const void* from, void* to, int64_t n) {
  in_stretches(n, [&](int64_t i, int64_t count) {
    float wide[stretch];
    widen(static_cast<const uint16_t*>(from) + i, wide, count);
    convert<float, double>(wide, static_cast<double*>(to) + i, count);
  });
}

template <ConvertFunction to_float32, Narrow narrow>
void float64_to_half(const void* from, void* to, int64_t n) {
  in_stretches(n, [&](int64_t i, int64_t count) {
    float wide[stretch];
    to_float32(static_cast<const double*>(from) + i, wide, count);
    narrow(wide, static_cast<uint16_t*>(to) + i, count);
  });
}

template <Widen widen, Narrow narrow>
void half_to_half(const void* from, void* to, int64_t n) {
  in_stretches(n, [&](int64_t i, int64_t count) {
    float wide[stretch];
    widen(static_cast<const uint16_t*>(from) + i, wide, count);
    narrow(wide, static_cast<uint16_t*>(to) + i, count);
  });
}

// Whole numbers and half precision meet in float32: what is too large for its digits is infinite in float16.
template <class From, Narrow narrow>
void whole_to_half(const void* from, void* to, int64_t n) {
  in_stretches(n, [&](int64_t i, int64_t count) {
    float wide[stretch];
    convert<From, float>(static_cast<const From*>(from) + i, wide, count);
    narrow(wide, static_cast<uint16_t*>(to) + i, count);
  });
}

template <Widen widen, class To>
void half_to_whole(const void* from, void* to, int64_t n) {
  in_stretches(n, [&](int64_t i, int64_t count) {
    float wide[stretch];
    widen(static_cast<const uint16_t*>(from) + i, wide, count);
    convert<float, To>(wide, static_cast<To*>(to) + i, count);
  });
}

// To floating types, from what is not one of 16 bits.
template <class From>
ConvertFunction to_floating(DType to) {
  constexpr bool whole = std::is_integral_v<From>;
  if (to == DType::float32) return convert<From, float>;
  if (to == DType::float64) return convert<From, double>;
  if constexpr (whole) return to == DType::float16 ? whole_to_half<From, narrow_float16> : whole_to_half<From, narrow_bfloat16>;
  else if constexpr (sizeof(From) == 4) return to == DType::float16 ? float32_to_half<narrow_float16> : float32_to_half<narrow_bfloat16>;
  else if (to == DType::float16) return float64_to_half<narrow_to_odd, narrow_float16>;
  else return float64_to_half<convert<double, float>, narrow_bfloat16>;  // rounded twice, as ml_dtypes does it
}

// To bool and to whole numbers. Of those the bits count, signed or not.
template <class From>
ConvertFunction from_whole(DType to) {
  switch (to) {
    case DType::boolean: return convert<From, bool>;
    case DType::int8: case DType::uint8: return convert<From, uint8_t>;
    case DType::int16: case DType::uint16: return convert<From, uint16_t>;
    case DType::int32: case DType::uint32: return convert<From, uint32_t>;
    case DType::int64: case DType::uint64: return convert<From, uint64_t>;
    default: return to_floating<From>(to);
  }
}

// What becomes of a number too large for a smaller or an unsigned type is up to the compiler, and NumPy's may have decided
// otherwise: those are left to it.
template <class From>
ConvertFunction from_floating(DType to) {
  switch (to) {
    case DType::boolean: return convert<From, bool>;
    case DType::int32: return convert<From, int32_t>;
    case DType::int64: return convert<From, int64_t>;
    case DType::float16: case DType::bfloat16: case DType::float32: case DType::float64: return to_floating<From>(to);
    default: return nullptr;
  }
}

template <Widen widen>
ConvertFunction from_half(DType to) {
  switch (to) {
    case DType::boolean: return half_to_whole<widen, bool>;
    case DType::int32: return half_to_whole<widen, int32_t>;
    case DType::int64: return half_to_whole<widen, int64_t>;
    case DType::float16: return half_to_half<widen, narrow_float16>;
    case DType::bfloat16: return half_to_half<widen, narrow_bfloat16>;
    case DType::float32: return half_to_float32<widen>;
    case DType::float64: return half_to_float64<widen>;
    default: return nullptr;
  }
}

}  // namespace

ConvertFunction find_conversion(DType from, DType to) {
  switch (from) {
    case DType::boolean: case DType::uint8: return from_whole<uint8_t>(to);
    case DType::int8: return from_whole<int8_t>(to);
    case DType::int16: return from_whole<int16_t>(to);
    case DType::int32: return from_whole<int32_t>(to);
    case DType::int64: return from_whole<int64_t>(to);
    case DType::uint16: return from_whole<uint16_t>(to);
    case DType::uint32: return from_whole<uint32_t>(to);
    case DType::uint64: return from_whole<uint64_t>(to);
    case DType::float16: return from_half<widen_float16>(to);
    case DType::bfloat16: return from_half<widen_bfloat16>(to);
    case DType::float32: return from_floating<float>(to);
    case DType::float64: return from_floating<double>(to);
    default: return nullptr;
  }
}

}  // namespace extensor::EXTENSOR_ISA
