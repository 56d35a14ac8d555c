// Kernels that move elements, and running sums and products, as Python functions.
#include <cmath>
#include <cstring>
#include <vector>

#include "bindings/arguments.hpp"
#include "bindings/half.hpp"
#include "kernels/copy/copy.hpp"
#include "kernels/scan/cumsum.hpp"

namespace extensor {
namespace {

// cumsum(x, axis); axis None runs over the flattened tensor.
PyObject* call_cumsum(PyObject* self, PyObject* const* args, Py_ssize_t count) {
  PyArrayObject* x = count == 2 ? as_array(args[0]) : nullptr;
  if (x == nullptr) return not_covered();
  const DType dtype = dtype_of(x);
  if (!is_float(dtype)) return call_widened(call_cumsum, self, args, count);
  const bool all = args[1] == Py_None;
  const int axis = all ? 0 : read_axis(args[1], PyArray_NDIM(x));
  if (axis < 0 || !PyArray_IS_C_CONTIGUOUS(x) || !is_readable(x)) return not_covered();
  const npy_intp size = PyArray_SIZE(x);
  const npy_intp* shape = all ? &size : PyArray_DIMS(x);
  const int ndim = all ? 1 : PyArray_NDIM(x);
  Array out = make_array(dtype, ndim, shape);
  if (size > 0) {
    MaybeReleaseGil unlocked(1.0 * double(size));
    cumsum(dtype, false, product_of(shape, axis), shape[axis], product_of(shape + axis + 1, ndim - axis - 1), PyArray_DATA(x),
           PyArray_DATA(out));
  }
  return out.release();
}

// cumsum_backward(g, shape, axis): the running sum from the other end.
PyObject* call_cumsum_backward(PyObject* self, PyObject* const* args, Py_ssize_t count) {
  PyArrayObject* g = count == 3 ? as_array(args[0]) : nullptr;
  if (g == nullptr) return not_covered();
  const DType dtype = dtype_of(g);
  if (!is_float(dtype)) return call_widened(call_cumsum_backward, self, args, count);
  npy_intp shape[NPY_MAXDIMS];
  int ndim;
  if (!read_shape(args[1], ndim, shape) || product_of(shape, ndim) != PyArray_SIZE(g)) return not_covered();
  const int axis = args[2] == Py_None ? 0 : read_axis(args[2], PyArray_NDIM(g));
  if (axis < 0 || PyArray_NDIM(g) == 0 || !PyArray_IS_C_CONTIGUOUS(g) || !is_readable(g)) return not_covered();
  Array out = make_array(dtype, ndim, shape);
  if (PyArray_SIZE(g) > 0) {
    const npy_intp* lengths = PyArray_DIMS(g);
    MaybeReleaseGil unlocked(double(PyArray_SIZE(g)));
    cumsum(dtype, true, product_of(lengths, axis), lengths[axis], product_of(lengths + axis + 1, PyArray_NDIM(g) - axis - 1),
           PyArray_DATA(g), PyArray_DATA(out));
  }
  return out.release();
}

// cumprod(x, axis)
PyObject* call_cumprod(PyObject* self, PyObject* const* args, Py_ssize_t count) {
  PyArrayObject* x = count == 2 ? as_array(args[0]) : nullptr;
  if (x == nullptr) return not_covered();
  const DType dtype = dtype_of(x);
  if (!is_float(dtype)) return call_widened(call_cumprod, self, args, count);
  const int ndim = PyArray_NDIM(x), axis = read_axis(args[1], ndim);
  if (axis < 0 || !PyArray_IS_C_CONTIGUOUS(x) || !is_readable(x)) return not_covered();
  const npy_intp* shape = PyArray_DIMS(x);
  Array out = make_array(dtype, ndim, shape);
  if (PyArray_SIZE(x) > 0) {
    MaybeReleaseGil unlocked(double(PyArray_SIZE(x)));
    cumprod(dtype, product_of(shape, axis), shape[axis], product_of(shape + axis + 1, ndim - axis - 1), PyArray_DATA(x),
            PyArray_DATA(out));
  }
  return out.release();
}

// Whether `object` is the dtype of an array.
bool is_dtype_of(PyArrayObject* array, PyObject* object) {
  auto* dtype = reinterpret_cast<PyArray_Descr*>(object);
  return dtype == PyArray_DESCR(array) || (PyArray_DescrCheck(object) && PyArray_EquivTypes(dtype, PyArray_DESCR(array)));  // the last is slow
}

// concatenate(tensors, axis, dtype) and stack, for dense tensors that have that dtype already.
PyObject* joined(PyObject* const* args, Py_ssize_t count, bool along_new_axis) {
  if (count != 3 || !PyList_Check(args[0]) || PyList_GET_SIZE(args[0]) == 0) return not_covered();
  const Py_ssize_t tensors = PyList_GET_SIZE(args[0]);
  PyArrayObject* first = as_array(PyList_GET_ITEM(args[0], 0));
  if (first == nullptr || dtype_of(first) == DType::other || !is_dtype_of(first, args[2])) return not_covered();
  const DType dtype = dtype_of(first);
  const int ndim = PyArray_NDIM(first), out_ndim = ndim + along_new_axis, axis = read_axis(args[1], out_ndim);
  if (axis < 0 || out_ndim > NPY_MAXDIMS) return not_covered();
  npy_intp shape[NPY_MAXDIMS];
  for (int i = 0; i < out_ndim; ++i) shape[i] = i == axis ? 0 : PyArray_DIM(first, along_new_axis && i > axis ? i - 1 : i);
  Part few[8];  // most joins need no more, and no memory for them
  std::vector<Part> many(size_t(tensors > 8 ? tensors : 0));
  Part* parts = many.empty() ? few : many.data();
  const size_t inner = size_t(product_of(shape + axis + 1, out_ndim - axis - 1)) * item_size(dtype);
  for (Py_ssize_t i = 0; i < tensors; ++i) {
    PyArrayObject* tensor = as_array(PyList_GET_ITEM(args[0], i));
    if (tensor == nullptr || dtype_of(tensor) != dtype || PyArray_NDIM(tensor) != ndim || !PyArray_IS_C_CONTIGUOUS(tensor) ||
        !is_readable(tensor))
      return not_covered();
    for (int j = 0; j < ndim; ++j)
      if ((along_new_axis || j != axis) && PyArray_DIM(tensor, j) != PyArray_DIM(first, j)) return not_covered();
    const npy_intp length = along_new_axis ? 1 : PyArray_DIM(tensor, axis);
    shape[axis] += length;
    parts[i] = {PyArray_DATA(tensor), size_t(length) * inner};
  }
  Array out = make_array(dtype, out_ndim, shape);
  if (PyArray_SIZE(out) > 0) {
    MaybeReleaseGil unlocked(double(PyArray_NBYTES(out)) * 0.1);
    join(product_of(shape, axis), tensors, parts, PyArray_DATA(out));
  }
  return out.release();
}

PyObject* call_concatenate(PyObject*, PyObject* const* args, Py_ssize_t count) { return joined(args, count, false); }
PyObject* call_stack(PyObject*, PyObject* const* args, Py_ssize_t count) { return joined(args, count, true); }

// (before, after) for each axis.
bool read_widths(PyObject* tuple, int ndim, int64_t (*widths)[2]) {
  if (!PyTuple_CheckExact(tuple) || PyTuple_GET_SIZE(tuple) != ndim) return false;
  for (int i = 0; i < ndim; ++i)
    if (!read_pair(PyTuple_GET_ITEM(tuple, i), widths[i])) return false;
  return true;
}

uint64_t bits_of(double number) {
  uint64_t bits;
  std::memcpy(&bits, &number, sizeof bits);
  return bits;
}

// The bytes of the number that fills the margin: values are (before, after) for each axis, here all the same. Dtypes other
// than float32 and float64 take 0 alone, which all of them write alike.
bool read_filling(PyObject* values, int ndim, DType dtype, unsigned char* bytes) {
  if (!PyTuple_CheckExact(values) || PyTuple_GET_SIZE(values) != ndim) return false;
  double filling = 0, number;
  for (int i = 0; i < ndim; ++i) {
    PyObject* pair = PyTuple_GET_ITEM(values, i);
    if (!PyTuple_CheckExact(pair) || PyTuple_GET_SIZE(pair) != 2) return false;
    for (int side = 0; side < 2; ++side) {
      if (!read_number(PyTuple_GET_ITEM(pair, side), number)) return false;
      if (i + side == 0) filling = number;
      if (bits_of(number) != bits_of(filling)) return false;
    }
  }
  const float single = float(filling);
  std::memset(bytes, 0, 8);
  if (dtype == DType::float32) std::memcpy(bytes, &single, 4);
  else if (dtype == DType::float64) std::memcpy(bytes, &filling, 8);
  else return filling == 0 && !std::signbit(filling);
  return true;
}

// pad(x, widths, mode, values)
PyObject* call_pad(PyObject*, PyObject* const* args, Py_ssize_t count) {
  PyArrayObject* given = count == 4 ? as_array(args[0]) : nullptr;
  if (given == nullptr || dtype_of(given) == DType::other || !is_readable(given)) return not_covered();
  const int ndim = PyArray_NDIM(given);
  int64_t widths[NPY_MAXDIMS][2];
  unsigned char value[8];
  if (ndim == 0 || ndim > 32 || !is_text(args[2], "constant") ||
      !read_widths(args[1], ndim, widths) || !read_filling(args[3], ndim, dtype_of(given), value))
    return not_covered();
  npy_intp shape[NPY_MAXDIMS];
  double size = 1;
  for (int i = 0; i < ndim; ++i) {
    const double length = double(PyArray_DIM(given, i)) + double(widths[i][0]) + double(widths[i][1]);
    size *= length;
    if (length > 1e15 || size > 1e15) return not_covered();  // more than any machine has: the reference says it
    shape[i] = PyArray_DIM(given, i) + widths[i][0] + widths[i][1];
  }
  const Array x = dense(given);
  Array out = make_array(dtype_of(given), ndim, shape);
  if (PyArray_SIZE(out) > 0) {
    int64_t lengths[32];
    for (int i = 0; i < ndim; ++i) lengths[i] = PyArray_DIM(x, i);
    MaybeReleaseGil unlocked(double(PyArray_NBYTES(out)) * 0.1);
    pad(ndim, lengths, widths, item_size(dtype_of(given)), value, PyArray_DATA(x), PyArray_DATA(out));
  }
  return out.release();
}

// roll(x, shifts, axes), along one axis.
PyObject* call_roll(PyObject*, PyObject* const* args, Py_ssize_t count) {
  PyArrayObject* given = count == 3 ? as_array(args[0]) : nullptr;
  if (given == nullptr || dtype_of(given) == DType::other || !is_readable(given)) return not_covered();
  if (!PyTuple_CheckExact(args[1]) || PyTuple_GET_SIZE(args[1]) != 1 || !PyTuple_CheckExact(args[2]) || PyTuple_GET_SIZE(args[2]) != 1)
    return not_covered();
  PyObject* const by = PyTuple_GET_ITEM(args[1], 0);
  int overflow = 1;
  const int64_t shift = PyLong_CheckExact(by) ? PyLong_AsLongLongAndOverflow(by, &overflow) : 0;
  const int ndim = PyArray_NDIM(given), axis = read_axis(PyTuple_GET_ITEM(args[2], 0), ndim);
  if (overflow != 0 || axis < 0) return not_covered();
  const npy_intp* shape = PyArray_DIMS(given);
  const Array x = dense(given);
  Array out = make_array(dtype_of(given), ndim, shape);
  if (PyArray_SIZE(out) > 0) {
    const int64_t outer = product_of(shape, axis), length = shape[axis];
    const size_t bytes = size_t(PyArray_NBYTES(x)) / size_t(outer * length);
    MaybeReleaseGil unlocked(double(PyArray_NBYTES(out)) * 0.1);
    roll(outer, size_t(length) * bytes, size_t((shift % length + length) % length) * bytes, PyArray_DATA(x), PyArray_DATA(out));
  }
  return out.release();
}

// copy(x): the same elements, dense.
PyObject* call_copy(PyObject*, PyObject* const* args, Py_ssize_t count) {
  PyArrayObject* x = count == 1 ? as_array(args[0]) : nullptr;
  return x == nullptr || !can_copy(x) ? not_covered() : copy_of(x).release();
}

}  // namespace

void bind_moving(PyObject* kernels) {
  add_kernel(kernels, "cumsum", call_cumsum);
  add_kernel(kernels, "cumsum_backward", call_cumsum_backward);
  add_kernel(kernels, "cumprod", call_cumprod);
  add_kernel(kernels, "concatenate", call_concatenate);
  add_kernel(kernels, "stack", call_stack);
  add_kernel(kernels, "pad", call_pad);
  add_kernel(kernels, "roll", call_roll);
  add_kernel(kernels, "copy", call_copy);
}

}  // namespace extensor
