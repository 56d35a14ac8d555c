// Other views of the same elements, as Python functions: axes in another order or direction, and what stands between brackets.
#include <cstring>

#include "bindings/arguments.hpp"
#include "bindings/gather.hpp"
#include "bindings/half.hpp"

namespace extensor {
namespace {

PyObject* permuted(PyArrayObject* x, npy_intp* order) {
  PyArray_Dims axes{order, PyArray_NDIM(x)};
  return PyArray_Transpose(x, &axes);
}

// Whether the elements of x, in C order, are also those of a view of this shape: its axes are parts of stretches in which the
// axes of x follow each other. x has elements, and as many as the shape.
bool has_view(PyArrayObject* x, int ndim, const npy_intp* shape) {
  int axis = ndim - 1;
  for (int i = PyArray_NDIM(x) - 1; i >= 0;) {
    npy_intp stretch = PyArray_DIM(x, i), step = PyArray_STRIDE(x, i);  // from here on forward as far as it goes
    for (--i; i >= 0; --i) {
      if (PyArray_DIM(x, i) == 1) continue;
      if (stretch == 1) step = PyArray_STRIDE(x, i);
      else if (PyArray_STRIDE(x, i) != stretch * step) break;
      stretch *= PyArray_DIM(x, i);
    }
    while (stretch > 1 && axis >= 0) {
      if (stretch % shape[axis] != 0) return false;
      stretch /= shape[axis--];
    }
  }
  return true;
}

// x in another shape, of as many elements: a view where its layout allows one.
PyObject* reshaped(PyArrayObject* x, int ndim, npy_intp* shape) {
  PyArray_Dims dims{shape, ndim};
  if (PyArray_IS_C_CONTIGUOUS(x) || PyArray_SIZE(x) == 0 || !can_copy(x) || has_view(x, ndim, shape)) return PyArray_Newshape(x, &dims, NPY_CORDER);
  const Array copy = copy_of(x);
  return PyArray_Newshape(copy, &dims, NPY_CORDER);
}

// reshape(x, shape)
PyObject* call_reshape(PyObject*, PyObject* const* args, Py_ssize_t count) {
  npy_intp shape[NPY_MAXDIMS];
  int ndim;
  if (count != 2 || !PyArray_CheckExact(args[0]) || !read_shape(args[1], ndim, shape)) return not_covered();
  PyArrayObject* x = as_array(args[0]);
  return product_of(shape, ndim) == PyArray_SIZE(x) ? reshaped(x, ndim, shape) : not_covered();
}

// permute(x, axes), transpose(x, axes)
PyObject* call_permute(PyObject*, PyObject* const* args, Py_ssize_t count) {
  PyArrayObject* x = count == 2 ? as_array(args[0]) : nullptr;
  if (x == nullptr || !PyTuple_CheckExact(args[1]) || PyTuple_GET_SIZE(args[1]) != PyArray_NDIM(x)) return not_covered();
  npy_intp order[NPY_MAXDIMS];
  uint64_t seen = 0;
  for (int i = 0; i < PyArray_NDIM(x); ++i) {
    const int axis = read_axis(PyTuple_GET_ITEM(args[1], i), PyArray_NDIM(x));
    if (axis < 0 || seen >> axis & 1) return not_covered();
    seen |= uint64_t(1) << axis;
    order[i] = axis;
  }
  return permuted(x, order);
}

// swapaxes(x, axis1, axis2)
PyObject* call_swapaxes(PyObject*, PyObject* const* args, Py_ssize_t count) {
  PyArrayObject* x = count == 3 ? as_array(args[0]) : nullptr;
  if (x == nullptr) return not_covered();
  const int first = read_axis(args[1], PyArray_NDIM(x)), second = read_axis(args[2], PyArray_NDIM(x));
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
    const int axis = read_axis(PyTuple_GET_ITEM(args[1], i), PyArray_NDIM(x));
    if (axis < 0 || strides[axis] != PyArray_STRIDE(x, axis)) return not_covered();
    if (PyArray_DIM(x, axis) > 0) data += (PyArray_DIM(x, axis) - 1) * strides[axis];
    strides[axis] = -strides[axis];
  }
  return view_of(x, PyArray_NDIM(x), PyArray_DIMS(x), strides, data, PyArray_FLAGS(x) & NPY_ARRAY_WRITEABLE).release();
}

bool has_arrays(PyObject* key) {
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(key); ++i)
    if (PyArray_Check(PyTuple_GET_ITEM(key, i))) return true;
  return false;
}

// x[key] if that is an array. What is wrong with a key is for the reference to say: then there is none, unless memory ran out.
Array item_of(PyArrayObject* x, PyObject* key) {
  PyObject* item = PyObject_GetItem(reinterpret_cast<PyObject*>(x), key);
  if (item == nullptr && PyErr_ExceptionMatches(PyExc_MemoryError)) throw PythonError();
  if (item == nullptr) {
    PyErr_Clear();
    return Array();
  }
  Ref<> found = owned(item);
  return PyArray_Check(item) ? owned(reinterpret_cast<PyArrayObject*>(found.release())) : Array();
}

// index(x, key); the key has an Ellipsis, so that the result is an array.
PyObject* call_index(PyObject*, PyObject* const* args, Py_ssize_t count) {
  if (count != 2 || !PyArray_CheckExact(args[0]) || !PyTuple_CheckExact(args[1])) return not_covered();
  PyArrayObject* x = as_array(args[0]);
  if (PyObject* positions = only_positions(args[1]); positions != nullptr) return take_rows(x, positions);
  Array found = item_of(x, args[1]);
  return found != nullptr ? found.release() : not_covered();
}

// index_backward(g, shape, key), for one tensor of positions and for keys that give views.
PyObject* call_index_backward(PyObject* self, PyObject* const* args, Py_ssize_t count) {
  npy_intp shape[NPY_MAXDIMS];
  int ndim;
  PyArrayObject* g = count == 3 ? as_array(args[0]) : nullptr;
  if (g == nullptr || !read_shape(args[1], ndim, shape) || !PyTuple_CheckExact(args[2])) return not_covered();
  const DType dtype = dtype_of(g);
  if (!is_float(dtype) && !is_half(dtype)) return not_covered();
  if (PyObject* positions = only_positions(args[2]); positions != nullptr)
    return is_float(dtype) ? take_rows_backward(g, ndim, shape, positions) : call_widened(call_index_backward, self, args, count);
  if (has_arrays(args[2])) return not_covered();
  Array out = make_array(dtype, ndim, shape);
  std::memset(PyArray_DATA(out), 0, size_t(PyArray_NBYTES(out)));
  const Array place = item_of(out, args[2]);
  if (place == nullptr || !PyArray_SAMESHAPE(place.get(), g)) return not_covered();
  if (PyArray_CopyInto(place, g) < 0) throw PythonError();
  return out.release();
}

}  // namespace

void bind_views(PyObject* kernels) {
  add_kernel(kernels, "reshape", call_reshape);
  add_kernel(kernels, "permute", call_permute);
  add_kernel(kernels, "transpose", call_permute);
  add_kernel(kernels, "swapaxes", call_swapaxes);
  add_kernel(kernels, "flip", call_flip);
  add_kernel(kernels, "index", call_index);
  add_kernel(kernels, "index_backward", call_index_backward);
}

}  // namespace extensor
