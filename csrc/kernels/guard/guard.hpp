// Questions about elements whose answer decides how a call goes on: is one outside of bounds?
#pragma once

#include <cstdint>

#include "core/dtype.hpp"

namespace extensor {

// Elements below `low` or above `high` are outside, but for `allowed` where `allows` says so. A nan is not outside.
struct Bounds {
  bool has_low, has_high, allows;
  double low, high, allowed;
};

// Whether guards can read a dtype.
bool guards_cover(DType dtype);

// The place of the first of n elements that is outside, or -1.
int64_t first_outside(DType dtype, const void* x, int64_t n, const Bounds& bounds);

// The place of the first of n elements that is neither a nor b, or -1.
int64_t first_unlike(DType dtype, const void* x, int64_t n, double a, double b);

}  // namespace extensor
