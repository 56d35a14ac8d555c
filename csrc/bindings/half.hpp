// float16 and bfloat16 at the border: computed in float32, rounded once.
#pragma once

#include "bindings/arrays.hpp"

namespace extensor {

// Calls `function` again with its half precision arrays widened to float32 and rounds the arrays it returns.
// NotImplemented if there is no half precision array among the arguments, or floats of another kind beside it.
PyObject* call_widened(KernelFunction function, PyObject* self, PyObject* const* args, Py_ssize_t count);

}  // namespace extensor
