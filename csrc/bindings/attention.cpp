// Attention as Python functions.
#include "kernels/attention/attention.hpp"

#include "bindings/arguments.hpp"

namespace extensor {
namespace {

// What both directions share: dense q, k and v with the same leading axes, and the mask by its strides.
struct Operands {
  PyArrayObject* arrays[4] = {};  // q, k, v, g
  int64_t* offsets = nullptr;
  DType dtype = DType::other;
  int ndim = 0;

  ~Operands() {
    for (PyArrayObject* array : arrays) Py_XDECREF(array);
    delete[] offsets;
  }
  template <class T>
  const T* data(int i) const {
    return static_cast<const T*>(PyArray_DATA(arrays[i]));
  }
  int64_t length(int i, int from_end) const { return PyArray_DIM(arrays[i], ndim - from_end); }
};

bool same_leading_axes(PyArrayObject* a, PyArrayObject* b) {
  if (PyArray_NDIM(a) != PyArray_NDIM(b)) return false;
  for (int axis = 0; axis < PyArray_NDIM(a) - 2; ++axis)
    if (PyArray_DIM(a, axis) != PyArray_DIM(b, axis)) return false;
  return true;
}

bool take(Operands& operands, int index, PyObject* argument) {
  PyArrayObject* array = as_array(argument);
  if (array == nullptr || PyArray_SIZE(array) == 0 || !is_readable(array)) return false;
  if (index == 0) operands.dtype = dtype_of(array), operands.ndim = PyArray_NDIM(array);
  if (!is_float(operands.dtype) || dtype_of(array) != operands.dtype || operands.ndim < 2) return false;
  if (index > 0 && !same_leading_axes(array, operands.arrays[0])) return false;
  operands.arrays[index] = dense(argument);
  if (operands.arrays[index] == nullptr) {
    PyErr_Clear();
    return false;
  }
  // What is hidden must not count even if it is inf or nan: the reference sees to that.
  const int64_t count = PyArray_SIZE(array);
  if (operands.dtype == DType::float32) return attention_functions<float>().is_finite(operands.data<float>(index), count);
  return attention_functions<double>().is_finite(operands.data<double>(index), count);
}

// Where the rows of the mask of each batch element begin, and the strides inside. False for masks of another kind.
template <class T>
bool read_mask(PyObject* argument, Operands& operands, Attention<T>& attention) {
  if (argument == Py_None) return true;
  PyArrayObject* mask = as_array(argument);
  if (mask == nullptr || !is_readable(mask) || PyArray_NDIM(mask) > operands.ndim) return false;
  const bool boolean = PyArray_TYPE(mask) == NPY_BOOL;
  if (!boolean && dtype_of(mask) != operands.dtype) return false;
  const npy_intp size = PyArray_ITEMSIZE(mask);
  npy_intp strides[NPY_MAXDIMS] = {};
  const int missing = operands.ndim - PyArray_NDIM(mask);
  for (int axis = missing; axis < operands.ndim; ++axis) {
    const npy_intp stride = PyArray_STRIDE(mask, axis - missing);
    if (stride % size != 0) return false;
    strides[axis] = PyArray_DIM(mask, axis - missing) == 1 ? 0 : stride / size;
  }
  operands.offsets = new int64_t[size_t(attention.batch)];
  for (int64_t b = 0; b < attention.batch; ++b) {
    int64_t offset = 0, rest = b;
    for (int axis = operands.ndim - 3; axis >= 0; --axis) {
      const npy_intp length = PyArray_DIM(operands.arrays[0], axis);
      offset += rest % length * strides[axis], rest /= length;
    }
    operands.offsets[b] = offset;
  }
  attention.mask_offsets = operands.offsets;
  attention.mask_row = strides[operands.ndim - 2], attention.mask_column = strides[operands.ndim - 1];
  if (boolean) attention.allowed = static_cast<const uint8_t*>(PyArray_DATA(mask));
  else attention.added = static_cast<const T*>(PyArray_DATA(mask));
  return true;
}

template <class T>
bool read_attention(Operands& operands, PyObject* mask, PyObject* causal, PyObject* scale, Attention<T>& attention) {
  const double factor = PyFloat_AsDouble(scale);
  if (PyErr_Occurred()) {
    PyErr_Clear();
    return false;
  }
  attention = {product_of(PyArray_DIMS(operands.arrays[0]), operands.ndim - 2), operands.length(0, 2), operands.length(1, 2),
               operands.length(0, 1), operands.length(2, 1), operands.data<T>(0), operands.data<T>(1), operands.data<T>(2),
               nullptr, nullptr, nullptr, 0, 0, causal == Py_True, factor};
  return read_mask(mask, operands, attention);
}

template <class T>
PyObject* run_forward(Operands& operands, PyObject* const* args) {
  Attention<T> attention;
  if (!read_attention(operands, args[3], args[4], args[5], attention)) return not_covered();
  npy_intp shape[NPY_MAXDIMS];
  for (int axis = 0; axis < operands.ndim; ++axis) shape[axis] = PyArray_DIM(operands.arrays[0], axis);
  shape[operands.ndim - 1] = attention.values;
  PyArrayObject* out = new_array(operands.dtype, operands.ndim, shape);
  if (out == nullptr) return nullptr;
  MaybeReleaseGil unlocked(attention_ns(attention));
  attention_functions<T>().forward(attention, static_cast<T*>(PyArray_DATA(out)));
  return reinterpret_cast<PyObject*>(out);
}

// q, k, v, mask, causal, scale
PyObject* call_attention(PyObject*, PyObject* const* args, Py_ssize_t count) {
  Operands operands;
  if (count != 6) return not_covered();
  for (int i = 0; i < 3; ++i)
    if (!take(operands, i, args[i])) return not_covered();
  return operands.dtype == DType::float32 ? run_forward<float>(operands, args) : run_forward<double>(operands, args);
}

template <class T>
PyObject* run_backward(Operands& operands, PyObject* const* args) {
  Attention<T> attention;
  if (!read_attention(operands, args[4], args[5], args[6], attention)) return not_covered();
  PyObject* result = PyTuple_New(4);
  if (result == nullptr) return nullptr;
  T* grads[3] = {};
  for (int i = 0; i < 4; ++i) {
    const bool needed = i < 3 && PyTuple_GET_ITEM(args[7], i) == Py_True;
    PyArrayObject* grad = needed ? new_array(operands.dtype, operands.ndim, PyArray_DIMS(operands.arrays[i])) : nullptr;
    if (needed && grad == nullptr) {
      Py_DECREF(result);
      return nullptr;
    }
    if (needed) grads[i] = static_cast<T*>(PyArray_DATA(grad));
    PyTuple_SET_ITEM(result, i, needed ? reinterpret_cast<PyObject*>(grad) : Py_NewRef(Py_None));
  }
  MaybeReleaseGil unlocked(3 * attention_ns(attention));
  attention_functions<T>().backward(attention, operands.data<T>(3), grads[0], grads[1], grads[2]);
  return result;
}

// g, q, k, v, mask, causal, scale, needs; the gradient of the mask is left to the reference
PyObject* call_attention_backward(PyObject*, PyObject* const* args, Py_ssize_t count) {
  Operands operands;
  if (count != 8 || !PyTuple_Check(args[7]) || PyTuple_GET_SIZE(args[7]) != 4 || PyTuple_GET_ITEM(args[7], 3) == Py_True)
    return not_covered();
  for (int i = 0; i < 4; ++i)
    if (!take(operands, i, args[i == 3 ? 0 : i + 1])) return not_covered();
  return operands.dtype == DType::float32 ? run_backward<float>(operands, args) : run_backward<double>(operands, args);
}

}  // namespace

void bind_attention(PyObject* kernels) {
  add_kernel(kernels, "scaled_dot_product_attention", call_attention);
  add_kernel(kernels, "scaled_dot_product_attention_backward", call_attention_backward);
}

}  // namespace extensor
