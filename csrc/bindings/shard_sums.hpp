// Sums of the gradients of several shards.
#pragma once

#include "bindings/ref.hpp"

namespace extensor {

// add_gradients(out, terms) -> whether it was done. `out` is a vector; each term is such a vector, or a list of arrays whose
// elements lie in it one behind the other. out = terms[n] + (... + (terms[1] + terms[0])), and a lone term is copied. Only
// contiguous arrays of the dtype of `out` are covered; nothing is written for others.
PyObject* add_gradients(PyObject*, PyObject* const* args, Py_ssize_t count);

}  // namespace extensor
