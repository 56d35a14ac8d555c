// Adding up slices of a tensor.
#pragma once

#include <cstdint>

#include "core/isa.hpp"

namespace extensor {

// out[c] = the sum of g[members[m] * inner + c] over m = 0 .. count - 1, in this order and in float64; there is one at least.
struct SliceTable {
  void (*add32)(const int64_t* members, int64_t count, int64_t inner, const float* g, float* out);
  void (*add64)(const int64_t* members, int64_t count, int64_t inner, const double* g, double* out);
};
EXTENSOR_PER_ISA(const SliceTable& slice_table())

}  // namespace extensor
