// Reading the arguments of a kernel call.
#pragma once

#include "bindings/arrays.hpp"

namespace extensor {

// nullptr for anything but an array.
inline PyArrayObject* as_array(PyObject* object) {
  return PyArray_Check(object) ? reinterpret_cast<PyArrayObject*>(object) : nullptr;
}

// The dtypes these kernels compute in.
inline bool is_float(DType dtype) { return dtype == DType::float32 || dtype == DType::float64; }

inline int64_t product_of(const npy_intp* lengths, int count) {
  int64_t product = 1;
  for (int i = 0; i < count; ++i) product *= lengths[i];
  return product;
}

// The array itself or a C-contiguous copy, as a new reference. The copy is ours if it can be: NumPy's would take its memory
// from the system, page by page.
inline PyArrayObject* dense(PyObject* object) {
  PyArrayObject* array = reinterpret_cast<PyArrayObject*>(object);
  if (!PyArray_IS_C_CONTIGUOUS(array) && can_copy_densely(array)) return dense_copy(array);
  return reinterpret_cast<PyArrayObject*>(PyArray_FromArray(array, nullptr, NPY_ARRAY_C_CONTIGUOUS | NPY_ARRAY_ALIGNED));
}

// A whole number between 0 and `end` - 1; -1 for anything else.
inline long read_axis(PyObject* object, int end) {
  const long axis = PyLong_Check(object) ? PyLong_AsLong(object) : -1;
  if (axis == -1 && PyErr_Occurred()) PyErr_Clear();
  return axis >= 0 && axis < end ? axis : -1;
}

// An axis of `ndim`, counted from the front; -1 for anything else.
inline long read_axis_from_either_end(PyObject* object, int ndim) {
  if (!PyLong_CheckExact(object)) return -1;
  int overflow;
  const long axis = PyLong_AsLongAndOverflow(object, &overflow);
  if (overflow != 0 || axis < -ndim || axis >= ndim) return -1;
  return axis < 0 ? axis + ndim : axis;
}

// The lengths of a tuple of whole numbers. False for anything else.
inline bool read_shape(PyObject* tuple, int& ndim, npy_intp* shape) {
  if (!PyTuple_Check(tuple) || PyTuple_GET_SIZE(tuple) > NPY_MAXDIMS) return false;
  ndim = int(PyTuple_GET_SIZE(tuple));
  for (int axis = 0; axis < ndim; ++axis) {
    shape[axis] = PyLong_AsSsize_t(PyTuple_GET_ITEM(tuple, axis));
    if (shape[axis] < 0) {
      PyErr_Clear();
      return false;
    }
  }
  return true;
}

// Whether two shapes are stretched to that of `whole`, by the rules of broadcasting.
inline bool stretch_to(int ndim_a, const npy_intp* a, int ndim_b, const npy_intp* b, PyArrayObject* whole) {
  const int ndim = PyArray_NDIM(whole);
  if (ndim_a > ndim || ndim_b > ndim || (ndim_a < ndim && ndim_b < ndim)) return false;
  for (int axis = 0; axis < ndim; ++axis) {
    const npy_intp length_a = axis < ndim - ndim_a ? 1 : a[axis - (ndim - ndim_a)];
    const npy_intp length_b = axis < ndim - ndim_b ? 1 : b[axis - (ndim - ndim_b)];
    if (length_a != length_b && length_a != 1 && length_b != 1) return false;
    if (PyArray_DIM(whole, axis) != (length_a == 1 ? length_b : length_a)) return false;
  }
  return true;
}

// One whole number for both directions, or one for each.
inline bool read_pair(PyObject* object, int64_t* pair) {
  if (PyLong_CheckExact(object)) {
    pair[0] = pair[1] = PyLong_AsSsize_t(object);
    if (pair[0] < 0) PyErr_Clear();
    return pair[0] >= 0;
  }
  int count;
  npy_intp found[NPY_MAXDIMS];
  if (!read_shape(object, count, found) || count != 2) return false;
  pair[0] = found[0], pair[1] = found[1];
  return true;
}

// A tuple of `count` bools, such as which gradients are wanted. False for anything else.
inline bool read_flags(PyObject* tuple, bool* flags, Py_ssize_t count) {
  if (!PyTuple_Check(tuple) || PyTuple_GET_SIZE(tuple) != count) return false;
  for (Py_ssize_t i = 0; i < count; ++i) {
    if (!PyBool_Check(PyTuple_GET_ITEM(tuple, i))) return false;
    flags[i] = PyTuple_GET_ITEM(tuple, i) == Py_True;
  }
  return true;
}

// The tuple of gradient(0) and gradient(1), which are new references; nullptr or NotImplemented as soon as one of them is.
template <class Gradient>
PyObject* pair_of_gradients(const Gradient& gradient) {
  PyObject* grads[2] = {nullptr, nullptr};
  for (int i = 0; i < 2; ++i) {
    grads[i] = gradient(i);
    if (grads[i] != nullptr && grads[i] != Py_NotImplemented) continue;
    if (i == 1) Py_DECREF(grads[0]);
    return grads[i];
  }
  PyObject* pair = PyTuple_Pack(2, grads[0], grads[1]);
  Py_DECREF(grads[0]);
  Py_DECREF(grads[1]);
  return pair;
}

enum class LossReduction { mean, sum, none, other };

inline LossReduction read_reduction(PyObject* text) {
  if (!PyUnicode_Check(text)) return LossReduction::other;
  if (PyUnicode_CompareWithASCIIString(text, "mean") == 0) return LossReduction::mean;
  if (PyUnicode_CompareWithASCIIString(text, "sum") == 0) return LossReduction::sum;
  return PyUnicode_CompareWithASCIIString(text, "none") == 0 ? LossReduction::none : LossReduction::other;
}

}  // namespace extensor
