// Taking along the first axis, for bindings that come to it in other words.
#pragma once

#include "bindings/arrays.hpp"

namespace extensor {

// The one tensor of int64 that is the whole of a key, its Ellipsis aside; nullptr for any other key.
PyObject* only_positions(PyObject* key);

// The elements of x at positions along its first axis, or NotImplemented. Negative ones count from the end.
PyObject* take_rows(PyArrayObject* x, PyObject* positions);

// Zeros of a shape with g, of float32 or float64, added at positions along the first axis, or NotImplemented.
PyObject* take_rows_backward(PyArrayObject* g, int ndim, const npy_intp* shape, PyObject* positions);

}  // namespace extensor
