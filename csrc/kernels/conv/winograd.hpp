// Convolutions with kernels of 3 x 3 and stride 1 by Winograd's method: a quarter of the multiplications.
//
// Each function says whether it did the work. It does not when the shape does not suit it. Where a result is not finite,
// because of a value that is not or of an overflow on the way, or where one value dwarfs the others, the direct
// convolution gives what IEEE arithmetic gives.
#pragma once

#include "kernels/conv/maps.hpp"

namespace extensor {

struct WinogradTable {
  bool (*pays)(const ConvMap<float>&, double direct_ns);  // by sizes alone, where the nine products of a direct sum take this long
  bool (*map)(const ConvMap<float>&);
  bool (*weight_map)(const ConvWeightMap<float>&);
};
EXTENSOR_PER_ISA(const WinogradTable& winograd_table())

}  // namespace extensor
