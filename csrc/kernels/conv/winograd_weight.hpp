// The other half of winograd.hpp's table, and when the method pays.
#pragma once

#include "kernels/conv/winograd_tiles.hpp"

namespace extensor::EXTENSOR_ISA {

bool winograd_weight_gradient(const ConvWeightMap<float>& m);

// Rough time of one tile: 36 multiplications for every pair of channels, and the transforms and copies of each channel.
inline double winograd_ns(int64_t inputs, int64_t outputs) {
  return (36 * double(inputs) * double(outputs) + 400 * double(whole_vectors(inputs) + whole_vectors(outputs))) / 50 ;
}

// The direct method takes 9 multiplications per pixel and pair of channels.
inline bool pays(int64_t inputs, int64_t outputs, int64_t rows, int64_t columns) {
  const int64_t tiles = ceil_div(rows, winograd_outputs) * ceil_div(columns, winograd_outputs);
  return winograd_ns(inputs, outputs) * double(tiles) < 9 * double(inputs * outputs) * double(rows * columns) / 40;
}

}  // namespace extensor::EXTENSOR_ISA
