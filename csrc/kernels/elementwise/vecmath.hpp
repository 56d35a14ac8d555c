#pragma once

#include "core/simd.hpp"

namespace extensor::EXTENSOR_ISA {

template <class T> struct Pair { Vec<T> first, second; };

}  // namespace extensor::EXTENSOR_ISA
