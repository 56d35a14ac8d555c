// Taking slices by position along one axis, and adding slices back where they came from.
#pragma once

#include <cstddef>
#include <cstdint>

#include "core/dtype.hpp"

namespace extensor {

// out[o, i, :] = x[o, indices[i], :]; a slice has `bytes` bytes. The indices are within 0 .. length - 1.
void take(int64_t outer, int64_t length, int64_t count, size_t bytes, const int64_t* indices, const void* x, void* out);

// out[o, t, :] = sum of g[o, i, :] over all i with indices[i] == t, in the order of i; 0 if there are none. Float32 is
// added up in float64.
void take_backward(DType dtype, int64_t outer, int64_t length, int64_t count, int64_t inner, const int64_t* indices, const void* g,
                   void* out);

}  // namespace extensor
