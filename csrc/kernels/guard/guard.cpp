#include "kernels/guard/guard.hpp"

#include <atomic>
#include <limits>
#include <type_traits>

#include "core/threads.hpp"

namespace extensor {
namespace {

constexpr int64_t block = 2048;
constexpr double guard_ns = 0.1;

// The first place of a block, or -1. It is tested without a branch, so that the compiler makes vectors of it; a block that holds
// the answer is read again.
template <class T, class Test>
int64_t first_of_block(const T* x, int64_t begin, int64_t end, const Test& test) {
  unsigned char found = 0;
  for (int64_t i = begin; i < end; ++i) found |= test(x[i]);
  if (!found) return -1;
  while (!test(x[begin])) ++begin;
  return begin;
}

template <class T, class Test>
int64_t first_where(const T* x, int64_t n, const Test& test) {
  if (n <= block) return first_of_block(x, 0, n, test);
  std::atomic<int64_t> first{n};
  parallel_for(n, guard_ns, [&](int64_t begin, int64_t end) {
    for (int64_t at = begin; at < end && at < first.load(std::memory_order_relaxed); at += block) {
      const int64_t place = first_of_block(x, at, at + block < end ? at + block : end, test);
      if (place < 0) continue;
      int64_t known = first.load(std::memory_order_relaxed);
      while (place < known && !first.compare_exchange_weak(known, place)) {
      }
      return;
    }
  });
  return first < n ? first.load() : -1;
}

// Bounds in the type that compares: every int of up to 32 bits and all bounds below 2^53 are exact as doubles, and labels
// beyond that are not. Floats are compared as they are where the bounds are floats too. A bound that is not there is the
// last number.
template <class T, class Wide>
int64_t outside(const T* x, int64_t n, const Bounds& b) {
  using Limits = std::numeric_limits<Wide>;
  const Wide low = b.has_low ? Wide(b.low) : Limits::has_infinity ? -Limits::infinity() : Limits::min();
  const Wide high = b.has_high ? Wide(b.high) : Limits::has_infinity ? Limits::infinity() : Limits::max();
  const Wide allowed = Wide(b.allowed);
  if (!b.allows) return first_where(x, n, [=](T value) -> unsigned char { return (Wide(value) < low) | (Wide(value) > high); });
  return first_where(x, n, [=](T value) -> unsigned char { return ((Wide(value) < low) | (Wide(value) > high)) & (Wide(value) != allowed); });
}

template <class T>
int64_t outside(const void* data, int64_t n, const Bounds& b) {
  const T* x = static_cast<const T*>(data);
  if constexpr (std::is_integral_v<T>) return outside<T, int64_t>(x, n, b);
  else if (T(b.low) == b.low && T(b.high) == b.high && T(b.allowed) == b.allowed) return outside<T, T>(x, n, b);
  else return outside<T, double>(x, n, b);
}

template <class T>
int64_t unlike(const void* data, int64_t n, double a, double b) {
  const T* x = static_cast<const T*>(data);
  using Wide = std::conditional_t<std::is_floating_point_v<T>, T, double>;  // floats are compared as they are, like NumPy's
  const Wide own_a = Wide(a), own_b = Wide(b);
  return first_where(x, n, [=](T value) -> unsigned char { return (Wide(value) != own_a) & (Wide(value) != own_b); });
}

template <class Call>
int64_t with_type(DType dtype, const Call& call) {
  switch (dtype) {
    case DType::int8: return call(int8_t());
    case DType::int16: return call(int16_t());
    case DType::int32: return call(int32_t());
    case DType::int64: return call(int64_t());
    case DType::uint8: return call(uint8_t());
    case DType::uint16: return call(uint16_t());
    case DType::uint32: return call(uint32_t());
    case DType::float32: return call(float());
    default: return call(double());
  }
}

}  // namespace

bool guards_cover(DType dtype) {
  return (dtype >= DType::int8 && dtype <= DType::uint32) || dtype == DType::float32 || dtype == DType::float64;
}

int64_t first_outside(DType dtype, const void* x, int64_t n, const Bounds& bounds) {
  return with_type(dtype, [&](auto kind) { return outside<decltype(kind)>(x, n, bounds); });
}

int64_t first_unlike(DType dtype, const void* x, int64_t n, double a, double b) {
  return with_type(dtype, [&](auto kind) { return unlike<decltype(kind)>(x, n, a, b); });
}

}  // namespace extensor
