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
  add_kernel(kernels, "concatenate", call_concatenate);
  add_kernel(kernels, "reshape", call_reshape);
  add_kernel(kernels, "copy", call_copy);
}

}  // namespace extensor
