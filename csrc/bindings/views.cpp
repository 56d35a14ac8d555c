// Views of arrays as Python functions: nothing is copied.
#include "bindings/arguments.hpp"

namespace extensor {
namespace {

// transpose(x, axes), permute(x, axes): the axes in another order, counted from the front or the end; None reverses them.
PyObject* call_transpose(PyObject*, PyObject* const* args, Py_ssize_t count) {
  PyArrayObject* x = count == 2 && PyArray_CheckExact(args[0]) ? as_array(args[0]) : nullptr;
  if (x == nullptr) return not_covered();
  if (args[1] == Py_None) return PyArray_Transpose(x, nullptr);
  const int ndim = PyArray_NDIM(x);
  if (!PyTuple_CheckExact(args[1]) || PyTuple_GET_SIZE(args[1]) != ndim) return not_covered();
  npy_intp order[NPY_MAXDIMS];
  uint64_t seen = 0;
  for (int i = 0; i < ndim; ++i) {
    PyObject* axis = PyTuple_GET_ITEM(args[1], i);
    int overflow = 0;
    const long place = PyLong_CheckExact(axis) ? PyLong_AsLongAndOverflow(axis, &overflow) : NPY_MAXDIMS;
    if (overflow != 0 || place < -ndim || place >= ndim) return not_covered();
    order[i] = place < 0 ? place + ndim : place;
    if (seen >> order[i] & 1) return not_covered();
    seen |= uint64_t(1) << order[i];
  }
  PyArray_Dims dims{order, ndim};
  return PyArray_Transpose(x, &dims);
}

}  // namespace

void bind_views(PyObject* kernels) {
  add_kernel(kernels, "transpose", call_transpose);
  add_kernel(kernels, "permute", call_transpose);
}

}  // namespace extensor
