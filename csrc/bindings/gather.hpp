// Taking along an axis, for bindings that come to it in other words.
#pragma once

#include "bindings/arrays.hpp"

namespace extensor {

// take(x, indices, axis); axis None takes from the flattened tensor. Negative indices count from the end.
PyObject* call_take(PyObject* self, PyObject* const* args, Py_ssize_t count);

// take_backward(g, shape, indices, axis)
PyObject* call_take_backward(PyObject* self, PyObject* const* args, Py_ssize_t count);

}  // namespace extensor
