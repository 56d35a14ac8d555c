// Sums for bindings that are made of them.
#pragma once

#include "bindings/arrays.hpp"

namespace extensor {

// The adjoint of broadcasting: x summed to a shape, or NotImplemented for what is not covered.
Ref<> sum_to_shape(PyArrayObject* x, int ndim, const npy_intp* shape);

}  // namespace extensor
