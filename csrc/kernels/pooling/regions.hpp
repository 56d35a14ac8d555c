// Pooling over regions of volumes: windows with gaps between their elements, cells of uneven sizes; and the gradients.
#pragma once

#include <cstdint>

#include "core/isa.hpp"

namespace extensor {

// Along axis d region i covers begin[d][i], begin[d][i] + step[d], ... below end[d][i], at least one position. Sequences and images
// are volumes whose first axes have one element.
struct Regions {
  int64_t planes;
  int64_t x[3], y[3];
  const int64_t* begin[3];
  const int64_t* end[3];
  int64_t step[3];
  const double* size[3];  // of means: their product over the axes divides the sum
};

// max: the largest element; a nan is larger. Its gradient goes to the first of a tie and is nan for a region with a nan; `places`
// counts positions of a volume row by row. mean: sums in float64.
struct RegionTable {
  void (*max32)(const Regions&, const float* x, float* y);
  void (*max64)(const Regions&, const double* x, double* y);
  void (*places32)(const Regions&, const float* x, int64_t* y);
  void (*places64)(const Regions&, const double* x, int64_t* y);
  void (*max_backward32)(const Regions&, const float* g, const float* x, float* grad);
  void (*max_backward64)(const Regions&, const double* g, const double* x, double* grad);
  void (*mean32)(const Regions&, const float* x, float* y);
  void (*mean64)(const Regions&, const double* x, double* y);
  void (*mean_backward32)(const Regions&, const float* g, float* grad);
  void (*mean_backward64)(const Regions&, const double* g, double* grad);
};
EXTENSOR_PER_ISA(const RegionTable& region_table())

// Rough time of each of them for one plane.
inline double region_ns(const Regions& s) {
  double seen = 1;
  for (int d = 0; d < 3; ++d) {
    int64_t along = 0;
    for (int64_t i = 0; i < s.y[d]; ++i) along += (s.end[d][i] - s.begin[d][i] + s.step[d] - 1) / s.step[d];
    seen *= double(along);
  }
  return 20 + double(s.x[0] * s.x[1] * s.x[2]) * 0.2 + seen * 0.7;
}

}  // namespace extensor
