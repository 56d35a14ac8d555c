// The register tiles of all heights, compiled once (tiles.cpp) for whoever multiplies.
#pragma once

#include "kernels/matmul/microkernel.hpp"

namespace extensor::EXTENSOR_ISA {

template <class T>
using TileFunction = void (*)(const Tile<T>&);

// For each height from 1 to max_rows the tile for this many columns of a panel: one that fills a vector or less is not computed as two.
// A is read as it lies, or packed in a panel of that height.
template <class T>
const TileFunction<T>* tiles_for(int columns, bool packed_a = false);

}  // namespace extensor::EXTENSOR_ISA
