// Sums for bindings that are made of them.
#pragma once

#include "bindings/arrays.hpp"

namespace extensor {

// The adjoint of broadcasting: a new array of `shape` (a tuple), or NotImplemented for what is not covered.
PyObject* sum_to_shape(PyArrayObject* x, PyObject* shape);

}  // namespace extensor
