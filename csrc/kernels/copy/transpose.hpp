// Matrices with rows and columns exchanged.
#pragma once

#include <cstddef>
#include <cstdint>

#include "core/isa.hpp"

namespace extensor {

// out[r * to + c] = x[r + c * from] for items of 4 or of 8 bytes; `to` and `from` in items.
EXTENSOR_PER_ISA(void transpose(size_t item, int64_t rows, int64_t columns, const void* x, int64_t from, void* out, int64_t to))

}  // namespace extensor
