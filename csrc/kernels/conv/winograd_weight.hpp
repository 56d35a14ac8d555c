// The other half of winograd.hpp's table, and when the method pays.
#pragma once

#include "kernels/conv/winograd_tiles.hpp"

namespace extensor::EXTENSOR_ISA {

bool winograd_weight_gradient(const ConvWeightMap<float>& m);

// Rough time of one tile: 36 multiplications for every pair of channels, and the transforms and copies of each channel.
inline double winograd_ns(int64_t inputs, int64_t outputs) {
  return 0.72 * double(inputs * outputs) + 8 * double(whole_vectors(inputs) + whole_vectors(outputs));
}

// The direct method takes 9 multiplications per pixel and pair of channels; this one transforms a kernel for each pair.
inline bool pays(int64_t images, int64_t inputs, int64_t outputs, int64_t rows, int64_t columns) {
  const int64_t tiles = images * ceil_div(rows, winograd_outputs) * ceil_div(columns, winograd_outputs);
  const double pairs = double(inputs * outputs), direct_ns = 0.22 * pairs * double(images * rows * columns);
  return winograd_ns(inputs, outputs) * double(tiles) + 6 * pairs < direct_ns;
}

}  // namespace extensor::EXTENSOR_ISA
