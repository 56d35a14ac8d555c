// Gradients of a scaled loss without the scale, and whether they overflowed, in one pass.
#pragma once

#include <cstdint>

#include "core/dtype.hpp"

namespace extensor {

// to[i] = from[i] / scale for n elements one behind the other; true if all results are finite. Half types become float32,
// float32 and float64 stay.
bool unscale(DType from_dtype, const void* from, void* to, int64_t n, double scale);

}  // namespace extensor
