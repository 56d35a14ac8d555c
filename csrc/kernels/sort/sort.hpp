// Stable sorting of rows, and the largest elements of them. nan is larger than every number, all nan are equal, and so are the zeros.
#pragma once

#include <cstdint>

#include "core/dtype.hpp"

namespace extensor {

// float32, float64, int32, int64.
bool sort_covers(DType dtype);

// order: (rows, k), where the first k elements of each row of length n are, smallest first (or largest first); of equal ones the first
// comes first.
void order_rows(DType dtype, const void* x, int64_t* order, int64_t rows, int64_t n, int64_t k, bool largest_first);

}  // namespace extensor
