// Other views of the same elements, as Python functions: axes in another order or direction, and what stands between
// brackets. They take arguments as callers of the library give them, negative axes included.
#include <cstring>

#include "bindings/arguments.hpp"
#include "bindings/gather.hpp"

namespace extensor {
namespace {

PyObject* permuted(PyArrayObject* x, npy_intp* order) {
  PyArray_Dims axes{order, PyArray_NDIM(x)};
  return PyArray_Transpose(x, &axes);
}

// permute(x, axes)
PyObject* call_permute(PyObject*, PyObject* const* args, Py_ssize_t count) {
  PyArrayObject* x = count == 2 ? as_array(args[0]) : nullptr;
  if (x == nullptr || !PyTuple_CheckExact(args[1]) || PyTuple_GET_SIZE(args[1]) != PyArray_NDIM(x)) return not_covered();
  npy_intp order[NPY_MAXDIMS];
  uint64_t seen = 0;
  for (int i = 0; i < PyArray_NDIM(x); ++i) {
    const int axis = int(read_axis_from_either_end(PyTuple_GET_ITEM(args[1], i), PyArray_NDIM(x)));
    if (axis < 0 || seen >> axis & 1) return not_covered();
    seen |= uint64_t(1) << axis;
    order[i] = axis;
  }
  return permuted(x, order);
}

// transpose(x, axes); None reverses them.
PyObject* call_transpose(PyObject* self, PyObject* const* args, Py_ssize_t count) {
  if (count != 2 || args[1] != Py_None) return call_permute(self, args, count);
  PyArrayObject* x = as_array(args[0]);
  return x == nullptr ? not_covered() : PyArray_Transpose(x, nullptr);
}

// swapaxes(x, axis1, axis2)
PyObject* call_swapaxes(PyObject*, PyObject* const* args, Py_ssize_t count) {
  PyArrayObject* x = count == 3 ? as_array(args[0]) : nullptr;
  if (x == nullptr) return not_covered();
  const int first = int(read_axis_from_either_end(args[1], PyArray_NDIM(x))), second = int(read_axis_from_either_end(args[2], PyArray_NDIM(x)));
  if (first < 0 || second < 0) return not_covered();
  npy_intp order[NPY_MAXDIMS];
  for (int i = 0; i < PyArray_NDIM(x); ++i) order[i] = i == first ? second : i == second ? first : i;
  return permuted(x, order);
}

// flip(x, axes)
PyObject* call_flip(PyObject*, PyObject* const* args, Py_ssize_t count) {
  if (count != 2 || !PyArray_CheckExact(args[0]) || !PyTuple_CheckExact(args[1])) return not_covered();
  PyArrayObject* x = reinterpret_cast<PyArrayObject*>(args[0]);
  npy_intp strides[NPY_MAXDIMS];
  for (int i = 0; i < PyArray_NDIM(x); ++i) strides[i] = PyArray_STRIDE(x, i);
  char* data = PyArray_BYTES(x);
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(args[1]); ++i) {
    const int axis = int(read_axis_from_either_end(PyTuple_GET_ITEM(args[1], i), PyArray_NDIM(x)));
    if (axis < 0 || strides[axis] != PyArray_STRIDE(x, axis)) return not_covered();
    if (PyArray_DIM(x, axis) > 0) data += (PyArray_DIM(x, axis) - 1) * strides[axis];
    strides[axis] = -strides[axis];
  }
  PyArray_Descr* descriptor = PyArray_DESCR(x);
  Py_INCREF(descriptor);  // which the new array takes over
  PyObject* view = PyArray_NewFromDescr(&PyArray_Type, descriptor, PyArray_NDIM(x), PyArray_DIMS(x), strides, data,
                                        PyArray_FLAGS(x) & NPY_ARRAY_WRITEABLE, nullptr);
  if (view != nullptr && PyArray_SetBaseObject(reinterpret_cast<PyArrayObject*>(view), Py_NewRef(args[0])) < 0) Py_CLEAR(view);
  return view;
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

// The one tensor of int64 that is the whole of a key, or nullptr.
PyObject* only_positions(PyObject* key) {
  if (PyTuple_GET_SIZE(key) != 2 || PyTuple_GET_ITEM(key, 1) != Py_Ellipsis) return nullptr;
  PyArrayObject* array = as_array(PyTuple_GET_ITEM(key, 0));
  return array != nullptr && dtype_of(array) == DType::int64 ? PyTuple_GET_ITEM(key, 0) : nullptr;
}

bool has_arrays(PyObject* key) {
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(key); ++i)
    if (PyArray_Check(PyTuple_GET_ITEM(key, i))) return true;
  return false;
}

// What is wrong with a key is told by the caller.
PyObject* or_not_covered(PyObject* result) {
  if (result != nullptr) return result;
  PyErr_Clear();
  return not_covered();
}

// index(x, key); the key has an Ellipsis, so that the result is an array.
PyObject* call_index(PyObject* self, PyObject* const* args, Py_ssize_t count) {
  if (count != 2 || !PyArray_CheckExact(args[0]) || !PyTuple_CheckExact(args[1])) return not_covered();
  if (PyObject* positions = only_positions(args[1]); positions != nullptr && PyArray_NDIM(reinterpret_cast<PyArrayObject*>(args[0])) > 0) {
    PyObject* const zero = PyLong_FromLong(0);
    PyObject* const taken[] = {args[0], positions, zero};
    PyObject* result = call_take(self, taken, 3);
    Py_DECREF(zero);
    return result;
  }
  return or_not_covered(PyObject_GetItem(args[0], args[1]));
}

// index_backward(g, shape, key), for one tensor of positions and for keys that give views.
PyObject* call_index_backward(PyObject* self, PyObject* const* args, Py_ssize_t count) {
  npy_intp shape[NPY_MAXDIMS];
  int ndim;
  PyArrayObject* g = count == 3 ? as_array(args[0]) : nullptr;
  if (g == nullptr || !read_shape(args[1], ndim, shape) || !PyTuple_CheckExact(args[2])) return not_covered();
  const DType dtype = dtype_of(g);
  if (dtype < DType::float16 || dtype > DType::float64) return not_covered();
  if (PyObject* positions = only_positions(args[2]); positions != nullptr && ndim > 0) {
    PyObject* const zero = PyLong_FromLong(0);
    PyObject* const taken[] = {args[0], args[1], positions, zero};
    PyObject* result = call_take_backward(self, taken, 4);
    Py_DECREF(zero);
    return result;
  }
  if (has_arrays(args[2])) return not_covered();
  PyArrayObject* out = new_array(dtype, ndim, shape);
  if (out == nullptr) return or_not_covered(nullptr);
  std::memset(PyArray_DATA(out), 0, size_t(PyArray_NBYTES(out)));
  PyObject* part = PyObject_GetItem(reinterpret_cast<PyObject*>(out), args[2]);
  bool done = part != nullptr && PyArray_Check(part);
  if (done) {
    PyArrayObject* place = reinterpret_cast<PyArrayObject*>(part);
    done = PyArray_SAMESHAPE(place, g) && PyArray_CopyInto(place, g) == 0;
  }
  Py_XDECREF(part);
  if (done) return reinterpret_cast<PyObject*>(out);
  Py_DECREF(out);
  return or_not_covered(nullptr);
}

}  // namespace

void bind_views(PyObject* kernels) {
  add_kernel(kernels, "permute", call_permute);
  add_kernel(kernels, "transpose", call_transpose);
  add_kernel(kernels, "swapaxes", call_swapaxes);
  add_kernel(kernels, "flip", call_flip);
  add_kernel(kernels, "unsqueeze", call_unsqueeze);
  add_kernel(kernels, "expand_dims", call_unsqueeze);
  add_kernel(kernels, "squeeze", call_squeeze);
  add_kernel(kernels, "flatten", call_flatten);
  add_kernel(kernels, "index", call_index);
  add_kernel(kernels, "index_backward", call_index_backward);
}

}  // namespace extensor
