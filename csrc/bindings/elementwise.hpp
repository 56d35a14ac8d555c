// Elementwise kernels on Python objects, for bindings that are made of them.
#pragma once

#include "bindings/arrays.hpp"
#include "kernels/elementwise/elementwise.hpp"

namespace extensor {

// Runs a kernel on arrays (and Python numbers) of any layout that broadcast: a new array, a tuple of them if there are several
// outputs, or NotImplemented for what is not covered.
Ref<> elementwise(const ElementwiseKernel& kernel, PyObject* const* inputs, const double* scalars);

// Whether a kernel may write its outputs over its inputs, but for the second, which is only read: contiguous arrays of one shape
// and dtype, float32 or float64, and so small that the interpreter lock may be kept.
bool fits_in_place(const ElementwiseKernel& kernel, PyArrayObject* const* arrays);

// Does that, for arrays that fit.
void elementwise_in_place(const ElementwiseKernel& kernel, PyArrayObject* const* arrays, const double* scalars);

}  // namespace extensor
