// Running sums and products along one axis.
#pragma once

#include <cstdint>

#include "core/dtype.hpp"

namespace extensor {

// Dense tensors seen as [outer, length, inner], along `length`; `reversed` runs from the end. Float32 is added up in
// float64, each element rounded once.
void cumsum(DType dtype, bool reversed, int64_t outer, int64_t length, int64_t inner, const void* x, void* out);

// The same of products, from the start.
void cumprod(DType dtype, int64_t outer, int64_t length, int64_t inner, const void* x, void* out);

}  // namespace extensor
