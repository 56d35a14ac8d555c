// Arrays seen in another way, as Python functions: views, which copy nothing; a flattened one where the layout allows it.
#include "bindings/arguments.hpp"

namespace extensor {
namespace {

// An axis of `ndim`, counted from the front or the end; -1 if it is none.
int read_place(PyObject* object, int ndim) {
  int overflow = 0;
  const long place = PyLong_CheckExact(object) ? PyLong_AsLongAndOverflow(object, &overflow) : ndim;
  if (overflow != 0 || place < -ndim || place >= ndim) return -1;
  return int(place < 0 ? place + ndim : place);
}

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
    order[i] = read_place(PyTuple_GET_ITEM(args[1], i), ndim);
    if (order[i] < 0 || seen >> order[i] & 1) return not_covered();
    seen |= uint64_t(1) << order[i];
  }
  PyArray_Dims dims{order, ndim};
  return PyArray_Transpose(x, &dims);
}

PyObject* reshaped(PyArrayObject* x, int ndim, npy_intp* shape) {
  PyArray_Dims dims{shape, ndim};
  return PyArray_Newshape(x, &dims, NPY_CORDER);
}

// unsqueeze(x, axis), expand_dims(x, axis): one axis of length 1 more.
PyObject* call_unsqueeze(PyObject*, PyObject* const* args, Py_ssize_t count) {
  PyArrayObject* x = count == 2 && PyArray_CheckExact(args[0]) ? as_array(args[0]) : nullptr;
  if (x == nullptr || PyArray_NDIM(x) == NPY_MAXDIMS) return not_covered();
  const int ndim = PyArray_NDIM(x) + 1, place = read_place(args[1], ndim);
  if (place < 0) return not_covered();
  npy_intp shape[NPY_MAXDIMS];
  for (int axis = 0; axis < ndim; ++axis) shape[axis] = axis == place ? 1 : PyArray_DIM(x, axis - (axis > place));
  return reshaped(x, ndim, shape);
}

// squeeze(x, axis): without that axis, which has the length 1; None is all that have it.
PyObject* call_squeeze(PyObject*, PyObject* const* args, Py_ssize_t count) {
  PyArrayObject* x = count == 2 && PyArray_CheckExact(args[0]) ? as_array(args[0]) : nullptr;
  if (x == nullptr) return not_covered();
  const int ndim = PyArray_NDIM(x), place = args[1] == Py_None ? -1 : read_place(args[1], ndim);
  if (args[1] != Py_None && (place < 0 || PyArray_DIM(x, place) != 1)) return not_covered();
  npy_intp shape[NPY_MAXDIMS];
  int left = 0;
  for (int axis = 0; axis < ndim; ++axis)
    if (place < 0 ? PyArray_DIM(x, axis) != 1 : axis != place) shape[left++] = PyArray_DIM(x, axis);
  return reshaped(x, left, shape);
}

// flatten(x, start, end): the axes from start to end in one.
PyObject* call_flatten(PyObject*, PyObject* const* args, Py_ssize_t count) {
  PyArrayObject* x = count == 3 && PyArray_CheckExact(args[0]) ? as_array(args[0]) : nullptr;
  if (x == nullptr || PyArray_NDIM(x) == 0) return not_covered();
  const int ndim = PyArray_NDIM(x), start = read_place(args[1], ndim), end = read_place(args[2], ndim);
  if (start < 0 || end < start) return not_covered();
  npy_intp shape[NPY_MAXDIMS];
  for (int axis = 0; axis < start; ++axis) shape[axis] = PyArray_DIM(x, axis);
  shape[start] = product_of(PyArray_DIMS(x) + start, end - start + 1);
  for (int axis = end + 1; axis < ndim; ++axis) shape[axis - (end - start)] = PyArray_DIM(x, axis);
  return reshaped(x, ndim - (end - start), shape);
}

}  // namespace

void bind_views(PyObject* kernels) {
  add_kernel(kernels, "transpose", call_transpose);
  add_kernel(kernels, "permute", call_transpose);
  add_kernel(kernels, "unsqueeze", call_unsqueeze);
  add_kernel(kernels, "expand_dims", call_unsqueeze);
  add_kernel(kernels, "squeeze", call_squeeze);
  add_kernel(kernels, "flatten", call_flatten);
}

}  // namespace extensor
