// The length of a parameter or of a gradient, and another length for it.
#pragma once

#include <cstdint>

#include "core/dtype.hpp"

namespace extensor {

// The sum of the squares of n elements of float32 or float64, added up in float64 in an order that depends on n alone.
double sum_of_squares(DType dtype, const void* x, int64_t n);

// to[i] = from[i] * factor, which is rounded to float32 first where these are.
void scale_by(DType dtype, const void* from, void* to, int64_t n, double factor);

}  // namespace extensor
