// Pooling of images: one number for each window of each channel, and the gradients.
#pragma once

#include <cstdint>

#include "core/isa.hpp"

namespace extensor {

// Planes of height x width; windows of `size`, `stride` apart, the first one `padding` before the first pixel.
// Index 0 is the height, 1 the width. What a window covers beyond the plane does not exist.
struct PoolShape {
  int64_t planes;
  int64_t x[2], y[2];
  int64_t size[2], stride[2], padding[2];
};

// max: the largest element; a nan is larger. Its gradient goes to the first of a tie and is nan for a window with a nan.
// sum: sums are divided by `divisors`, one for each window of a plane.
struct PoolTable {
  void (*max32)(const PoolShape&, const float* x, float* y);
  void (*max64)(const PoolShape&, const double* x, double* y);
  void (*max_backward32)(const PoolShape&, const float* g, const float* x, float* grad);
  void (*max_backward64)(const PoolShape&, const double* g, const double* x, double* grad);
  void (*mean32)(const PoolShape&, const double* divisors, const float* x, float* y);
  void (*mean64)(const PoolShape&, const double* divisors, const double* x, double* y);
  void (*mean_backward32)(const PoolShape&, const double* divisors, const float* g, float* grad);
  void (*mean_backward64)(const PoolShape&, const double* divisors, const double* g, double* grad);
};
EXTENSOR_PER_ISA(const PoolTable& pool_table())

// Rough time of each of them.
inline double pool_ns(const PoolShape& s) {
  return 50 + double(s.planes) * double(s.x[0] * s.x[1] + 3 * s.y[0] * s.y[1] * s.size[0] * s.size[1]) * 0.4;
}

}  // namespace extensor
