// Reductions: many numbers to one, along one stretch of a tensor's memory.
#pragma once

#include <cstdint>

#include "core/dtype.hpp"
#include "core/isa.hpp"

namespace extensor {

enum class Reduction { sum, mean, prod, max, min, variance, std, logsumexp };

// What is reduced, seen as x[piece, outer, length, inner]: over piece and length. `inner` elements are neighbours;
// either inner or length_stride is 1. The result is dense: out[outer, inner]. Strides count elements.
struct ReduceLayout {
  int64_t outer = 1, outer_stride = 0;
  int64_t length = 1, length_stride = 1;
  int64_t inner = 1;
  int64_t pieces = 1, piece_stride = 0;  // more than one piece only if inner is 1
};

// `ddof` counts for variance and std only. Float32 is accumulated in float64 and rounded once.
struct ReduceTable {
  void (*float32)(Reduction, const ReduceLayout&, const float* x, float* out, double ddof);
  void (*float64)(Reduction, const ReduceLayout&, const double* x, double* out, double ddof);
  // False where the elements have to be widened first.
  bool (*half)(DType, Reduction, const ReduceLayout&, const void* x, void* out);
};
EXTENSOR_PER_ISA(const ReduceTable& reduce_table())

inline void reduce(DType dtype, Reduction kind, const ReduceLayout& layout, const void* x, void* out, double ddof = 0) {
  const ReduceTable& table = EXTENSOR_SELECT(reduce_table)();
  if (dtype == DType::float32) table.float32(kind, layout, static_cast<const float*>(x), static_cast<float*>(out), ddof);
  else table.float64(kind, layout, static_cast<const double*>(x), static_cast<double*>(out), ddof);
}

// Rough time of a reduction over `count` elements.
inline double reduce_ns(Reduction kind, double count) { return count * (kind == Reduction::logsumexp ? 1.0 : 0.15); }

}  // namespace extensor
