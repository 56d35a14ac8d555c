// Taking a mean away. It is subtracted in two parts, the nearest number of the format and what is left of it, so that a large
// mean does not swallow a small variance.
#pragma once

#include "kernels/reduce/row_sums.hpp"

namespace extensor::EXTENSOR_ISA {

// A mean as a number of the format and the rest.
template <class T>
struct Centre {
  Vec<T> high, low;
  explicit Centre(double mean) : high(double(T(mean))), low(mean - double(T(mean))) {}
  EXTENSOR_INLINE Vec<T> operator()(Vec<T> x) const { return (x - high) - low; }
};

}  // namespace extensor::EXTENSOR_ISA
