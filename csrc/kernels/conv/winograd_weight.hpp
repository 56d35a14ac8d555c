// The half of winograd.hpp's table that winograd_weight.cpp computes.
#pragma once

#include "kernels/conv/maps.hpp"

namespace extensor::EXTENSOR_ISA {

bool winograd_weight_gradient(const ConvWeightMap<float>& m);

}  // namespace extensor::EXTENSOR_ISA
