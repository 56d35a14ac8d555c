// Kernels that move elements, and running sums, as Python functions.
#include <cstring>
#include <vector>

#include "bindings/arguments.hpp"
#include "bindings/half.hpp"
#include "kernels/copy/copy.hpp"
#include "kernels/gather/gather.hpp"
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
  const long axis = all ? 0 : read_axis(args[1], PyArray_NDIM(x));
  if (axis < 0 || !PyArray_IS_C_CONTIGUOUS(x) || !is_readable(x)) return not_covered();
  const npy_intp size = PyArray_SIZE(x);
  const npy_intp* shape = all ? &size : PyArray_DIMS(x);
  const int ndim = all ? 1 : PyArray_NDIM(x);
  PyArrayObject* out = new_array(dtype, ndim, shape);
  if (out != nullptr && size > 0) {
    MaybeReleaseGil unlocked(1.0 * double(size));
    cumsum(dtype, false, product_of(shape, int(axis)), shape[axis], product_of(shape + axis + 1, ndim - int(axis) - 1),
           PyArray_DATA(x), PyArray_DATA(out));
  }
  return reinterpret_cast<PyObject*>(out);
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
  const long axis = args[2] == Py_None ? 0 : read_axis(args[2], PyArray_NDIM(g));
  if (axis < 0 || PyArray_NDIM(g) == 0 || !PyArray_IS_C_CONTIGUOUS(g) || !is_readable(g)) return not_covered();
  PyArrayObject* out = new_array(dtype, ndim, shape);
  if (out != nullptr && PyArray_SIZE(g) > 0) {
    const npy_intp* lengths = PyArray_DIMS(g);
    MaybeReleaseGil unlocked(double(PyArray_SIZE(g)));
    cumsum(dtype, true, product_of(lengths, int(axis)), lengths[axis],
           product_of(lengths + axis + 1, PyArray_NDIM(g) - int(axis) - 1), PyArray_DATA(g), PyArray_DATA(out));
  }
  return reinterpret_cast<PyObject*>(out);
}

// int64, dense, and each within 0 .. length - 1.
bool are_positions(PyArrayObject* indices, int64_t length) {
  if (indices == nullptr || dtype_of(indices) != DType::int64 || !PyArray_IS_C_CONTIGUOUS(indices) || !is_readable(indices)) return false;
  const int64_t* values = static_cast<const int64_t*>(PyArray_DATA(indices));
  bool within = true;
  for (npy_intp i = 0; i < PyArray_SIZE(indices); ++i) within &= values[i] >= 0 && values[i] < length;
  return within;
}

// take(x, indices, axis)
PyObject* call_take(PyObject*, PyObject* const* args, Py_ssize_t count) {
  PyArrayObject* x = count == 3 ? as_array(args[0]) : nullptr;
  PyArrayObject* indices = count == 3 ? as_array(args[1]) : nullptr;
  if (x == nullptr || indices == nullptr || dtype_of(x) == DType::other || !PyArray_IS_C_CONTIGUOUS(x) || !is_readable(x))
    return not_covered();
  const int ndim = PyArray_NDIM(x), index_ndim = PyArray_NDIM(indices);
  const long axis = read_axis(args[2], ndim);
  if (axis < 0 || ndim - 1 + index_ndim > NPY_MAXDIMS || !are_positions(indices, PyArray_DIM(x, int(axis)))) return not_covered();
  npy_intp shape[NPY_MAXDIMS];
  int out_ndim = 0;
  for (int i = 0; i < axis; ++i) shape[out_ndim++] = PyArray_DIM(x, i);
  for (int i = 0; i < index_ndim; ++i) shape[out_ndim++] = PyArray_DIM(indices, i);
  for (int i = int(axis) + 1; i < ndim; ++i) shape[out_ndim++] = PyArray_DIM(x, i);
  PyArrayObject* out = new_array(dtype_of(x), out_ndim, shape);
  if (out != nullptr && PyArray_SIZE(out) > 0) {
    const npy_intp* lengths = PyArray_DIMS(x);
    const size_t bytes = size_t(product_of(lengths + axis + 1, ndim - int(axis) - 1)) * size_t(PyArray_ITEMSIZE(x));
    MaybeReleaseGil unlocked(double(PyArray_NBYTES(out)) * 0.1);
    take(product_of(lengths, int(axis)), lengths[axis], PyArray_SIZE(indices), bytes, static_cast<const int64_t*>(PyArray_DATA(indices)),
         PyArray_DATA(x), PyArray_DATA(out));
  }
  return reinterpret_cast<PyObject*>(out);
}

// take_backward(g, indices, shape, axis)
PyObject* call_take_backward(PyObject* self, PyObject* const* args, Py_ssize_t count) {
  PyArrayObject* g = count == 4 ? as_array(args[0]) : nullptr;
  PyArrayObject* indices = count == 4 ? as_array(args[1]) : nullptr;
  if (g == nullptr || indices == nullptr) return not_covered();
  const DType dtype = dtype_of(g);
  if (!is_float(dtype)) return call_widened(call_take_backward, self, args, count);
  npy_intp shape[NPY_MAXDIMS];
  int ndim;
  if (!read_shape(args[2], ndim, shape) || !PyArray_IS_C_CONTIGUOUS(g) || !is_readable(g)) return not_covered();
  const long axis = read_axis(args[3], ndim);
  if (axis < 0 || !are_positions(indices, shape[axis])) return not_covered();
  const int64_t outer = product_of(shape, int(axis)), inner = product_of(shape + axis + 1, ndim - int(axis) - 1);
  if (PyArray_SIZE(g) != outer * PyArray_SIZE(indices) * inner) return not_covered();
  PyArrayObject* out = new_array(dtype, ndim, shape);
  if (out != nullptr && PyArray_SIZE(out) > 0) {
    MaybeReleaseGil unlocked(double(PyArray_NBYTES(out) + PyArray_NBYTES(g)) * 0.1);
    take_backward(dtype, outer, shape[axis], PyArray_SIZE(indices), inner, static_cast<const int64_t*>(PyArray_DATA(indices)),
                  PyArray_DATA(g), PyArray_DATA(out));
  }
  return reinterpret_cast<PyObject*>(out);
}

// Calls `function` with the two arrays made dense, then `third` if there is one, and the first axis.
PyObject* call_on_rows(KernelFunction function, PyObject* self, PyObject* first, PyObject* second, PyObject* third) {
  if (as_array(first) == nullptr || as_array(second) == nullptr) return not_covered();
  PyObject* const zero = PyLong_FromLong(0);
  PyObject* args[] = {reinterpret_cast<PyObject*>(dense(first)), reinterpret_cast<PyObject*>(dense(second)), zero, zero};
  if (third != nullptr) args[2] = third;
  PyObject* result = args[0] == nullptr || args[1] == nullptr ? nullptr : function(self, args, third == nullptr ? 3 : 4);
  Py_XDECREF(args[0]);
  Py_XDECREF(args[1]);
  Py_XDECREF(zero);
  return result;
}

// embedding(indices, weight, padding_idx); the padding is the gradient's affair
PyObject* call_embedding(PyObject* self, PyObject* const* args, Py_ssize_t count) {
  PyArrayObject* weight = count == 3 ? as_array(args[1]) : nullptr;
  if (weight == nullptr || PyArray_NDIM(weight) != 2) return not_covered();
  if (dtype_of(weight) < DType::float16 || dtype_of(weight) > DType::float64) return not_covered();
  if (args[2] != Py_None && read_axis(args[2], int(PyArray_DIM(weight, 0))) < 0) return not_covered();
  return call_on_rows(call_take, self, args[1], args[0], nullptr);
}

// embedding_backward(g, indices, shape, padding_idx)
PyObject* call_embedding_backward(PyObject* self, PyObject* const* args, Py_ssize_t count) {
  PyArrayObject* g = count == 4 ? as_array(args[0]) : nullptr;
  PyArrayObject* indices = count == 4 ? as_array(args[1]) : nullptr;
  npy_intp shape[NPY_MAXDIMS];
  int ndim;
  if (g == nullptr || indices == nullptr || !read_shape(args[2], ndim, shape) || ndim != 2) return not_covered();
  const int axes = PyArray_NDIM(indices);
  if (PyArray_NDIM(g) != axes + 1 || PyArray_DIM(g, axes) != shape[1] || !PyArray_CompareLists(PyArray_DIMS(g), PyArray_DIMS(indices), axes))
    return not_covered();
  PyObject* result = call_on_rows(call_take_backward, self, args[0], args[1], args[2]);
  if (result == nullptr) {  // too large a table, of which the caller has more to say
    PyErr_Clear();
    return not_covered();
  }
  if (result == Py_NotImplemented || args[3] == Py_None) return result;
  PyArrayObject* out = reinterpret_cast<PyArrayObject*>(result);
  const long row = read_axis(args[3], int(PyArray_DIM(out, 0)));
  if (row < 0) {
    Py_DECREF(result);
    return not_covered();
  }
  std::memset(PyArray_GETPTR1(out, row), 0, size_t(PyArray_STRIDE(out, 0)));
  return result;
}

// concatenate(tensors, axis, dtype), for dense tensors that have that dtype already.
PyObject* call_concatenate(PyObject*, PyObject* const* args, Py_ssize_t count) {
  if (count != 3 || !PyList_Check(args[0]) || PyList_GET_SIZE(args[0]) == 0) return not_covered();
  const Py_ssize_t tensors = PyList_GET_SIZE(args[0]);
  PyArrayObject* first = as_array(PyList_GET_ITEM(args[0], 0));
  if (first == nullptr) return not_covered();
  const int ndim = PyArray_NDIM(first);
  const long axis = read_axis(args[1], ndim);
  const DType dtype = dtype_of(first);
  if (axis < 0 || dtype == DType::other) return not_covered();
  if (args[2] != Py_None) {
    PyArray_Descr* wanted = nullptr;
    if (PyArray_DescrConverter(args[2], &wanted) != NPY_SUCCEED) {
      PyErr_Clear();
      return not_covered();
    }
    const bool same = PyArray_EquivTypes(wanted, PyArray_DESCR(first));
    Py_DECREF(wanted);
    if (!same) return not_covered();
  }
  npy_intp shape[NPY_MAXDIMS];
  for (int i = 0; i < ndim; ++i) shape[i] = PyArray_DIM(first, i);
  shape[axis] = 0;
  std::vector<Part> parts;
  const size_t inner = size_t(product_of(PyArray_DIMS(first) + axis + 1, ndim - int(axis) - 1)) * item_size(dtype);
  for (Py_ssize_t i = 0; i < tensors; ++i) {
    PyArrayObject* tensor = as_array(PyList_GET_ITEM(args[0], i));
    if (tensor == nullptr || dtype_of(tensor) != dtype || PyArray_NDIM(tensor) != ndim || !PyArray_IS_C_CONTIGUOUS(tensor) ||
        !is_readable(tensor))
      return not_covered();
    for (int j = 0; j < ndim; ++j)
      if (j != axis && PyArray_DIM(tensor, j) != shape[j]) return not_covered();
    shape[axis] += PyArray_DIM(tensor, int(axis));
    parts.push_back({PyArray_DATA(tensor), size_t(PyArray_DIM(tensor, int(axis))) * inner});
  }
  PyArrayObject* out = new_array(dtype, ndim, shape);
  if (out != nullptr && PyArray_SIZE(out) > 0) {
    MaybeReleaseGil unlocked(double(PyArray_NBYTES(out)) * 0.1);
    join(product_of(shape, int(axis)), int64_t(parts.size()), parts.data(), PyArray_DATA(out));
  }
  return reinterpret_cast<PyObject*>(out);
}

// reshape(x, shape): a view where the layout allows one.
PyObject* call_reshape(PyObject*, PyObject* const* args, Py_ssize_t count) {
  npy_intp numbers[NPY_MAXDIMS];
  PyArray_Dims shape{numbers, 0};
  if (count != 2 || !PyArray_CheckExact(args[0]) || !read_shape(args[1], shape.len, numbers)) return not_covered();
  PyArrayObject* x = reinterpret_cast<PyArrayObject*>(args[0]);
  if (product_of(numbers, shape.len) != PyArray_SIZE(x)) return not_covered();
  return PyArray_Newshape(x, &shape, NPY_CORDER);
}

// copy(x): the same elements, dense.
PyObject* call_copy(PyObject*, PyObject* const* args, Py_ssize_t count) {
  PyArrayObject* x = count == 1 ? as_array(args[0]) : nullptr;
  return x == nullptr || !can_copy_densely(x) ? not_covered() : reinterpret_cast<PyObject*>(dense_copy(x));
}

}  // namespace

void bind_moving(PyObject* kernels) {
  add_kernel(kernels, "cumsum", call_cumsum);
  add_kernel(kernels, "cumsum_backward", call_cumsum_backward);
  add_kernel(kernels, "take", call_take);
  add_kernel(kernels, "take_backward", call_take_backward);
  add_kernel(kernels, "embedding", call_embedding);
  add_kernel(kernels, "embedding_backward", call_embedding_backward);
  add_kernel(kernels, "concatenate", call_concatenate);
  add_kernel(kernels, "reshape", call_reshape);
  add_kernel(kernels, "copy", call_copy);
}

}  // namespace extensor
