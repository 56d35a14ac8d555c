// Elementwise kernels on Python objects, for bindings that are made of them.
#pragma once

#include "bindings/arrays.hpp"
#include "kernels/elementwise/elementwise.hpp"

namespace extensor {

// Runs a kernel on arrays (and Python numbers) of any layout that broadcast: a new array, a tuple of them if there are several
// outputs, or NotImplemented for what is not covered.
Ref<> elementwise(const ElementwiseKernel& kernel, PyObject* const* inputs, const double* scalars);

}  // namespace extensor
