// How many elements are true: not zero. A nan is true.
#pragma once

#include <cstdint>

#include "core/isa.hpp"
#include "kernels/reduce/reduce.hpp"

namespace extensor {

enum class Truth { any, all, count };

// x dense, in one piece. out[outer, inner] is int64_t for a count, a byte 0 or 1 for the others.
struct TruthTable {
  void (*bytes)(Truth, const ReduceLayout&, const uint8_t* x, void* out);
  void (*float32)(Truth, const ReduceLayout&, const float* x, void* out);
  void (*float64)(Truth, const ReduceLayout&, const double* x, void* out);
};
EXTENSOR_PER_ISA(const TruthTable& truth_table())

// Rough time of one element.
constexpr double truth_ns = 0.1;

}  // namespace extensor
