// Elements of one dtype as elements of another.
#pragma once

#include <cstdint>

#include "core/dtype.hpp"
#include "core/isa.hpp"

namespace extensor {

// to[i] = from[i], n of them one behind the other; rounded half to even where the target is a floating type.
using ConvertFunction = void (*)(const void* from, void* to, int64_t n);

// nullptr for a pair that is not covered: floating types to whole numbers that are unsigned or of less than 32 bits.
EXTENSOR_PER_ISA(ConvertFunction find_conversion(DType from, DType to))

}  // namespace extensor
