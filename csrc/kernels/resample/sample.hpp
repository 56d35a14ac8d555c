// Images at places of their own: every sample is a weighted sum of a few pixels; and the gradients.
#pragma once

#include <cstdint>

#include "core/isa.hpp"

namespace extensor {

// Elements at places of their own: images (batch, channels, pixels), results (batch, channels, points), and for each of the
// 1, 4 or 8 `taps` positions and weights (taps, batch, points). A position below 0 lies outside and counts for nothing.
struct Samples {
  int64_t batch, channels, pixels, points, taps;
  const int64_t* positions;
};

// Sums of samples in the type of the elements, tap after tap; those of the gradients in double.
template <class T>
struct SampleFunctions {
  void (*forward)(const Samples&, const T* image, const T* weights, T* y);
  void (*image_gradient)(const Samples&, const T* g, const T* weights, T* grad);
  void (*weights_gradient)(const Samples&, const T* g, const T* image, T* grad);
};
struct SampleTable {
  SampleFunctions<float> of32;
  SampleFunctions<double> of64;
};
EXTENSOR_PER_ISA(const SampleTable& sample_table())

inline double sample_ns(const Samples& s) { return double(s.points * s.taps) * 0.8 + double(s.pixels) * 0.2; }

}  // namespace extensor
