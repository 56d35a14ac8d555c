// The length of a parameter or of a gradient.
#pragma once

#include <cstdint>

#include "core/dtype.hpp"

namespace extensor {

// The sum of the squares of n elements of float32 or float64, added up in float64 in an order that depends on n alone.
double sum_of_squares(DType dtype, const void* x, int64_t n);

}  // namespace extensor
