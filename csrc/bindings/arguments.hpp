// Reading the arguments of a kernel call. A reader answers false, nullptr or -1 to what the reference kernel does not document,
// and leaves no Python error behind.
#pragma once

#include "bindings/arrays.hpp"

namespace extensor {

// nullptr for anything but an array.
inline PyArrayObject* as_array(PyObject* object) {
  return PyArray_Check(object) ? reinterpret_cast<PyArrayObject*>(object) : nullptr;
}

// The dtypes these kernels compute in.
inline bool is_float(DType dtype) { return dtype == DType::float32 || dtype == DType::float64; }

// run(T()) for the T of float32 or float64.
template <class Run>
auto with_type(DType dtype, const Run& run) {
  return dtype == DType::float32 ? run(float()) : run(double());
}

inline int64_t product_of(const npy_intp* lengths, int count) {
  int64_t product = 1;
  for (int i = 0; i < count; ++i) product *= lengths[i];
  return product;
}

inline bool has_shape(PyArrayObject* array, int ndim, const npy_intp* shape) {
  return PyArray_NDIM(array) == ndim && PyArray_CompareLists(PyArray_DIMS(array), shape, ndim);
}

// The elements of an array; nullptr if there is none.
template <class T>
T* data_of(PyArrayObject* array) {
  return array == nullptr ? nullptr : static_cast<T*>(PyArray_DATA(array));
}

// The array itself or a C-contiguous copy. The copy is ours if it can be: NumPy's would take its memory from the system, page
// by page.
inline Array dense(PyArrayObject* array) {
  if (PyArray_IS_C_CONTIGUOUS(array) && PyArray_ISALIGNED(array)) return shared(array);
  if (can_copy(array)) return copy_of(array);
  return owned(reinterpret_cast<PyArrayObject*>(PyArray_FromArray(array, nullptr, NPY_ARRAY_C_CONTIGUOUS | NPY_ARRAY_ALIGNED)));
}

// A Python number, neither a bool nor one of NumPy's.
inline bool read_number(PyObject* object, double& number) {
  if (PyFloat_CheckExact(object)) {
    number = PyFloat_AS_DOUBLE(object);
    return true;
  }
  if (!PyLong_CheckExact(object)) return false;
  number = PyLong_AsDouble(object);
  if (number != -1.0 || !PyErr_Occurred()) return true;
  PyErr_Clear();
  return false;
}

inline bool read_flag(PyObject* object, bool& flag) {
  flag = object == Py_True;
  return PyBool_Check(object);
}

// Whether it is this text.
inline bool is_text(PyObject* object, const char* text) {
  return PyUnicode_Check(object) && PyUnicode_CompareWithASCIIString(object, text) == 0;
}

// A whole number between 0 and `end` - 1; -1 for anything else.
inline int64_t read_below(PyObject* object, int64_t end) {
  if (!PyLong_CheckExact(object)) return -1;
  int overflow;
  const long long number = PyLong_AsLongLongAndOverflow(object, &overflow);
  return overflow == 0 && number >= 0 && number < end ? number : -1;
}

// An axis of `ndim`, counted from the front; -1 for anything else.
inline int read_axis(PyObject* object, int ndim) { return int(read_below(object, ndim)); }

// The lengths of a tuple of whole numbers. False also if no array has so many elements.
inline bool read_shape(PyObject* tuple, int& ndim, npy_intp* shape) {
  if (!PyTuple_Check(tuple) || PyTuple_GET_SIZE(tuple) > NPY_MAXDIMS) return false;
  ndim = int(PyTuple_GET_SIZE(tuple));
  for (int axis = 0; axis < ndim; ++axis) {
    shape[axis] = npy_intp(read_below(PyTuple_GET_ITEM(tuple, axis), NPY_MAX_INTP));
    if (shape[axis] < 0) return false;
  }
  return PyArray_OverflowMultiplyList(shape, ndim) >= 0;
}

// Whether two shapes broadcast to that of `whole`.
inline bool broadcast_to(int ndim_a, const npy_intp* a, int ndim_b, const npy_intp* b, PyArrayObject* whole) {
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

// A tuple of `count` whole numbers, such as one for each direction of an image.
inline bool read_wholes(PyObject* tuple, int64_t* wholes, Py_ssize_t count) {
  if (!PyTuple_Check(tuple) || PyTuple_GET_SIZE(tuple) != count) return false;
  for (Py_ssize_t i = 0; i < count; ++i) {
    wholes[i] = read_below(PyTuple_GET_ITEM(tuple, i), NPY_MAX_INTP);
    if (wholes[i] < 0) return false;
  }
  return true;
}
inline bool read_pair(PyObject* tuple, int64_t* pair) { return read_wholes(tuple, pair, 2); }

// A tuple of `count` bools, such as which gradients are wanted.
inline bool read_flags(PyObject* tuple, bool* flags, Py_ssize_t count) {
  if (!PyTuple_Check(tuple) || PyTuple_GET_SIZE(tuple) != count) return false;
  for (Py_ssize_t i = 0; i < count; ++i)
    if (!read_flag(PyTuple_GET_ITEM(tuple, i), flags[i])) return false;
  return true;
}

enum class LossReduction { mean, sum, none, other };

inline LossReduction read_reduction(PyObject* text) {
  if (is_text(text, "mean")) return LossReduction::mean;
  if (is_text(text, "sum")) return LossReduction::sum;
  return is_text(text, "none") ? LossReduction::none : LossReduction::other;
}

}  // namespace extensor
