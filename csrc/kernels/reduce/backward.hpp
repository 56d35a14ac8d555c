// Gradients of reductions: one number of every slice spread over the elements of the slice.
#pragma once

#include <cstdint>

#include "core/dtype.hpp"
#include "core/isa.hpp"
#include "kernels/reduce/reduce.hpp"

namespace extensor {

enum class ReduceGradient { max, min, variance, std, prod, logsumexp };

// g[outer, inner] is the gradient of the results, x[outer, length, inner] is dense, and so is out, of the same shape;
// one piece. `ddof` counts for variance and std only. What is known of a slice is known in float64.
// `spread` needs no x: out = g / divisor; a divisor of 1 leaves every number as it is. In one thread: it is for small out.
struct ReduceBackwardTable {
  void (*float32)(ReduceGradient, const ReduceLayout&, const float* g, const float* x, float* out, double ddof);
  void (*float64)(ReduceGradient, const ReduceLayout&, const double* g, const double* x, double* out, double ddof);
  void (*spread16)(const ReduceLayout&, const uint16_t* g, uint16_t* out);
  void (*spread32)(const ReduceLayout&, const float* g, float* out, double divisor);
  void (*spread64)(const ReduceLayout&, const double* g, double* out, double divisor);
};
EXTENSOR_PER_ISA(const ReduceBackwardTable& reduce_backward_table())

// Rough time of one element.
inline double reduce_backward_ns(ReduceGradient kind) {
  return kind == ReduceGradient::logsumexp || kind == ReduceGradient::prod ? 1.5 : 0.3;
}

}  // namespace extensor
