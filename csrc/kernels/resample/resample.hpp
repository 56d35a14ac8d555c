// An axis of another length: every new element is a weighted sum of old ones; and the gradient.
#pragma once

#include <cstdint>

#include "core/isa.hpp"

namespace extensor {

// x: (outer, before, inner), y: (outer, after, inner). positions: (taps, after), inside; weights: likewise, or nullptr for one tap as it is.
struct Taps {
  int64_t outer, before, after, inner;
  int64_t taps;
  const int64_t* positions;
  const double* weights;
};

// Sums in the type of the elements, tap after tap; those of the gradient in double.
struct ResampleTable {
  void (*forward32)(const Taps&, const float* x, float* y);
  void (*forward64)(const Taps&, const double* x, double* y);
  void (*backward32)(const Taps&, const float* g, float* grad);
  void (*backward64)(const Taps&, const double* g, double* grad);
};
EXTENSOR_PER_ISA(const ResampleTable& resample_table())

inline double resample_ns(const Taps& t) { return double(t.after * t.inner * t.taps) * (t.inner > 1 ? 0.3 : 0.8) + double(t.before * t.inner) * 0.1; }

}  // namespace extensor
