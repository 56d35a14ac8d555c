// float16 and bfloat16 at the border: computed in float32, rounded once.
#pragma once

#include "bindings/arrays.hpp"

namespace extensor {

// A new float32 array with the values of an array of a half type; one of another type as it is.
Array widened(PyArrayObject* array);

// The same numbers as a new array of the half type `dtype`; where it is none, the array as it is.
Array narrowed(Array wide, DType dtype);

// Calls `function` again with its half precision arrays widened to float32 and rounds the arrays it returns.
// NotImplemented if there is no half precision array among the arguments, or floats of another kind beside it.
PyObject* call_widened(KernelFunction function, PyObject* self, PyObject* const* args, Py_ssize_t count);

}  // namespace extensor
