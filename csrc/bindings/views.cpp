// Views of the same elements, as Python functions: NumPy makes them, without a step through Python. A flattened one is a copy
// where the layout does not allow a view.
#include "bindings/arguments.hpp"

namespace extensor {
namespace {

PyObject* transposed(PyArrayObject* x, const npy_intp* order) {
  PyArray_Dims axes = {const_cast<npy_intp*>(order), PyArray_NDIM(x)};
  return PyArray_Transpose(x, &axes);
}

// transpose(x, axes) and permute(x, axes): each axis once, counted from either end; None reverses them.
PyObject* call_transpose(PyObject*, PyObject* const* args, Py_ssize_t count) {
  PyArrayObject* x = count == 2 ? as_array(args[0]) : nullptr;
  if (x == nullptr) return not_covered();
  const int ndim = PyArray_NDIM(x);
  npy_intp order[NPY_MAXDIMS];
  bool seen[NPY_MAXDIMS] = {};
  if (args[1] != Py_None && (!PyTuple_CheckExact(args[1]) || PyTuple_GET_SIZE(args[1]) != ndim)) return not_covered();
  for (int i = 0; i < ndim; ++i) {
    if (args[1] == Py_None) {
      order[i] = ndim - 1 - i;
      continue;
    }
    const long axis = read_axis_from_either_end(PyTuple_GET_ITEM(args[1], i), ndim);
    if (axis < 0 || seen[axis]) return not_covered();
    seen[axis] = true;
    order[i] = axis;
  }
  return transposed(x, order);
}

// swapaxes(x, axis1, axis2)
PyObject* call_swapaxes(PyObject*, PyObject* const* args, Py_ssize_t count) {
  PyArrayObject* x = count == 3 ? as_array(args[0]) : nullptr;
  if (x == nullptr) return not_covered();
  const int ndim = PyArray_NDIM(x);
  const long first = read_axis_from_either_end(args[1], ndim), second = read_axis_from_either_end(args[2], ndim);
  if (first < 0 || second < 0) return not_covered();
  npy_intp order[NPY_MAXDIMS];
  for (int i = 0; i < ndim; ++i) order[i] = i == first ? second : i == second ? first : i;
  return transposed(x, order);
}

PyObject* reshaped(PyArrayObject* x, int ndim, npy_intp* shape) {
  PyArray_Dims dims{shape, ndim};
  return PyArray_Newshape(x, &dims, NPY_CORDER);
}

// unsqueeze(x, axis), expand_dims(x, axis): one axis of length 1 more.
PyObject* call_unsqueeze(PyObject*, PyObject* const* args, Py_ssize_t count) {
  PyArrayObject* x = count == 2 && PyArray_CheckExact(args[0]) ? as_array(args[0]) : nullptr;
  if (x == nullptr || PyArray_NDIM(x) == NPY_MAXDIMS) return not_covered();
  const int ndim = PyArray_NDIM(x) + 1, place = int(read_axis_from_either_end(args[1], ndim));
  if (place < 0) return not_covered();
  npy_intp shape[NPY_MAXDIMS];
  for (int axis = 0; axis < ndim; ++axis) shape[axis] = axis == place ? 1 : PyArray_DIM(x, axis - (axis > place));
  return reshaped(x, ndim, shape);
}

// squeeze(x, axis): without that axis, which has the length 1; None is all that have it.
PyObject* call_squeeze(PyObject*, PyObject* const* args, Py_ssize_t count) {
  PyArrayObject* x = count == 2 && PyArray_CheckExact(args[0]) ? as_array(args[0]) : nullptr;
  if (x == nullptr) return not_covered();
  const int ndim = PyArray_NDIM(x), place = args[1] == Py_None ? -1 : int(read_axis_from_either_end(args[1], ndim));
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
  const int ndim = PyArray_NDIM(x), start = int(read_axis_from_either_end(args[1], ndim)), end = int(read_axis_from_either_end(args[2], ndim));
  if (start < 0 || end < start) return not_covered();
  npy_intp shape[NPY_MAXDIMS];
  for (int axis = 0; axis < start; ++axis) shape[axis] = PyArray_DIM(x, axis);
  shape[start] = product_of(PyArray_DIMS(x) + start, end - start + 1);
  for (int axis = end + 1; axis < ndim; ++axis) shape[axis - (end - start)] = PyArray_DIM(x, axis);
  return reshaped(x, ndim - (end - start), shape);
}

// index(x, key): a view; what picks elements one by one, or is wrong, is left to the reference.
PyObject* call_index(PyObject*, PyObject* const* args, Py_ssize_t count) {
  if (count != 2 || as_array(args[0]) == nullptr || !is_view_key(args[1])) return not_covered();
  // With an Ellipsis NumPy never gives a scalar.
  const bool single = !PyTuple_CheckExact(args[1]);
  const Py_ssize_t parts = single ? 1 : PyTuple_GET_SIZE(args[1]);
  PyObject* key = PyTuple_New(parts + 1);
  if (key == nullptr) return nullptr;
  bool has_ellipsis = false;
  for (Py_ssize_t i = 0; i < parts; ++i) {
    PyObject* part = single ? args[1] : PyTuple_GET_ITEM(args[1], i);
    has_ellipsis |= part == Py_Ellipsis;
    PyTuple_SET_ITEM(key, i, Py_NewRef(part));
  }
  PyTuple_SET_ITEM(key, parts, Py_NewRef(Py_Ellipsis));
  if (has_ellipsis && !single) Py_SETREF(key, Py_NewRef(args[1]));
  else if (has_ellipsis) Py_SETREF(key, Py_NewRef(Py_Ellipsis));
  PyObject* view = PyObject_GetItem(args[0], key);
  Py_DECREF(key);
  if (view != nullptr || PyErr_ExceptionMatches(PyExc_MemoryError)) return view;
  PyErr_Clear();
  return not_covered();
}

}  // namespace

void bind_views(PyObject* kernels) {
  add_kernel(kernels, "transpose", call_transpose);
  add_kernel(kernels, "permute", call_transpose);
  add_kernel(kernels, "swapaxes", call_swapaxes);
  add_kernel(kernels, "unsqueeze", call_unsqueeze);
  add_kernel(kernels, "expand_dims", call_unsqueeze);
  add_kernel(kernels, "squeeze", call_squeeze);
  add_kernel(kernels, "flatten", call_flatten);
  add_kernel(kernels, "index", call_index);
}

}  // namespace extensor
