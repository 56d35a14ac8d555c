// Kernels that move elements, and running sums, as Python functions.
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

// Whether `object` is None, or the dtype of an array.
bool is_dtype_of(PyArrayObject* array, PyObject* object) {
  if (object == Py_None) return true;
  return PyArray_DescrCheck(object) && PyArray_EquivTypes(reinterpret_cast<PyArray_Descr*>(object), PyArray_DESCR(array));
}

// concatenate(tensors, axis, dtype) and stack, for dense tensors that have that dtype already; without one, for those that
// have the same.
PyObject* joined(PyObject* const* args, Py_ssize_t count, bool along_new_axis) {
  if (count < 2 || count > 3 || !PyList_Check(args[0]) || PyList_GET_SIZE(args[0]) == 0) return not_covered();
  const Py_ssize_t tensors = PyList_GET_SIZE(args[0]);
  PyArrayObject* first = as_array(PyList_GET_ITEM(args[0], 0));
  if (first == nullptr || dtype_of(first) == DType::other || (count == 3 && !is_dtype_of(first, args[2]))) return not_covered();
  const DType dtype = dtype_of(first);
  const int ndim = PyArray_NDIM(first), out_ndim = ndim + along_new_axis, axis = read_axis_from_either_end(args[1], out_ndim);
  if (axis < 0 || out_ndim > NPY_MAXDIMS) return not_covered();
  npy_intp shape[NPY_MAXDIMS];
  for (int i = 0; i < out_ndim; ++i) shape[i] = i == axis ? 0 : PyArray_DIM(first, along_new_axis && i > axis ? i - 1 : i);
  std::vector<Part> parts;
  parts.reserve(size_t(tensors));
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
    parts.push_back({PyArray_DATA(tensor), size_t(length) * inner});
  }
  Array out = make_array(dtype, out_ndim, shape);
  if (PyArray_SIZE(out) > 0) {
    MaybeReleaseGil unlocked(double(PyArray_NBYTES(out)) * 0.1);
    join(product_of(shape, axis), int64_t(parts.size()), parts.data(), PyArray_DATA(out));
  }
  return out.release();
}

PyObject* call_concatenate(PyObject*, PyObject* const* args, Py_ssize_t count) { return joined(args, count, false); }
PyObject* call_stack(PyObject*, PyObject* const* args, Py_ssize_t count) { return joined(args, count, true); }

// The widths before and after each axis: one for all, a pair for all, or a pair for each.
bool read_widths(PyObject* object, int ndim, int64_t (*widths)[2]) {
  int64_t pair[2];
  if (PyTuple_CheckExact(object) && PyTuple_GET_SIZE(object) == ndim && PyTuple_CheckExact(PyTuple_GET_ITEM(object, 0))) {
    for (int i = 0; i < ndim; ++i)
      if (!PyTuple_CheckExact(PyTuple_GET_ITEM(object, i)) || !read_pair(PyTuple_GET_ITEM(object, i), widths[i])) return false;
    return true;
  }
  if (!read_pair(object, pair)) return false;
  for (int i = 0; i < ndim; ++i) widths[i][0] = pair[0], widths[i][1] = pair[1];
  return true;
}

// The bytes of one number in a dtype; None is 0, which goes into all of them.
bool read_filling(PyObject* object, DType dtype, unsigned char* bytes) {
  std::memset(bytes, 0, 8);
  if (object == Py_None) return true;
  double number;
  if (!read_number(object, number)) return false;
  const float small = float(number);
  if (dtype == DType::float32) std::memcpy(bytes, &small, 4);
  else if (dtype == DType::float64) std::memcpy(bytes, &number, 8);
  else return PyLong_CheckExact(object) && number == 0;
  return true;
}

// pad(x, widths, mode, value): mode "constant" with one value.
PyObject* call_pad(PyObject*, PyObject* const* args, Py_ssize_t count) {
  PyArrayObject* given = count == 4 ? as_array(args[0]) : nullptr;
  if (given == nullptr || dtype_of(given) == DType::other || !is_readable(given)) return not_covered();
  const int ndim = PyArray_NDIM(given);
  int64_t widths[NPY_MAXDIMS][2];
  unsigned char value[8];
  if (ndim == 0 || ndim > 32 || !is_text(args[2], "constant") ||
      !read_widths(args[1], ndim, widths) || !read_filling(args[3], dtype_of(given), value))
    return not_covered();
  npy_intp shape[NPY_MAXDIMS];
  double size = 1;
  for (int i = 0; i < ndim; ++i) {
    size *= double(PyArray_DIM(given, i)) + double(widths[i][0]) + double(widths[i][1]);
    if (size > 1e15) return not_covered();  // more than any machine has: the reference says it
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

// The number, or the only one of a tuple. False for anything else.
bool read_single(PyObject* object, int64_t& number) {
  if (PyTuple_CheckExact(object) && PyTuple_GET_SIZE(object) == 1) object = PyTuple_GET_ITEM(object, 0);
  if (!PyLong_CheckExact(object)) return false;
  int overflow;
  number = PyLong_AsLongLongAndOverflow(object, &overflow);
  return overflow == 0;
}

// roll(x, shift, axis): by one shift along one axis, or along all in a row.
PyObject* call_roll(PyObject*, PyObject* const* args, Py_ssize_t count) {
  PyArrayObject* given = count == 3 ? as_array(args[0]) : nullptr;
  if (given == nullptr || dtype_of(given) == DType::other || !is_readable(given)) return not_covered();
  const int ndim = PyArray_NDIM(given);
  const npy_intp* shape = PyArray_DIMS(given);
  const bool flat = args[2] == Py_None;
  int64_t shift, axis = 0;
  if (!read_single(args[1], shift) || (!flat && !read_single(args[2], axis)) || ndim == 0 || axis < -ndim || axis >= ndim) return not_covered();
  if (axis < 0) axis += ndim;
  const Array x = dense(given);
  Array out = make_array(dtype_of(given), ndim, shape);
  if (PyArray_SIZE(out) > 0) {
    const int64_t outer = flat ? 1 : product_of(shape, int(axis)), length = flat ? PyArray_SIZE(x) : shape[axis];
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
  add_kernel(kernels, "concatenate", call_concatenate);
  add_kernel(kernels, "stack", call_stack);
  add_kernel(kernels, "pad", call_pad);
  add_kernel(kernels, "roll", call_roll);
  add_kernel(kernels, "copy", call_copy);
}

}  // namespace extensor
