// Convolutions with kernels of 3 x 3 and stride 1 by Winograd's method: a quarter of the multiplications.
//
// Each function says whether it did the work. It does not when the shape does not suit it, or when a value is not finite
// or so large that the transforms could overflow; the direct convolution then gives what IEEE arithmetic gives.
#pragma once

#include "kernels/conv/maps.hpp"

namespace extensor {

struct WinogradTable {
  bool (*map)(const ConvMap<float>&);
  bool (*weight_map)(const ConvWeightMap<float>&);
};
EXTENSOR_PER_ISA(const WinogradTable& winograd_table())

}  // namespace extensor
