// Taking elements or slices by position along one axis, and adding them back where they came from.
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

// The same added to x: out[t, :] = x[t, :] + all g[i, :] with indices[i] == t, in the order of i.
void add_at_positions(DType dtype, int64_t length, int64_t count, int64_t inner, const int64_t* indices, const void* x, const void* g,
                      void* out);

// x is [outer, length, inner]; indices, g and what is taken are [outer, count, inner].
struct AlongAxis {
  int64_t outer, length, count, inner;
};

// out[o, i, c] = x[o, indices[o, i, c], c], for items of 1, 2, 4 or 8 bytes. Negative indices count from the end. False,
// and nothing to rely on in `out`, if one is outside.
bool take_along_axis(const AlongAxis& shape, size_t item, const int64_t* indices, const void* x, void* out);

// out[o, t, c] = sum of g[o, i, c] over all i with indices[o, i, c] == t, in the order of i, else as above. Float32 is added
// up in float64.
bool take_along_axis_backward(DType dtype, const AlongAxis& shape, const int64_t* indices, const void* g, void* out);

// Whether all indices are within 0 .. length - 1.
bool are_positions(int64_t length, int64_t count, const int64_t* indices);

}  // namespace extensor
