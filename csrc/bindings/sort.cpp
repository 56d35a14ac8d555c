// Sorting along the last axis as Python functions.
#include "kernels/sort/sort.hpp"

#include <cstring>

#include "bindings/arguments.hpp"
#include "bindings/operands.hpp"

namespace extensor {
namespace {

// Rows along the last axis, or the one row of all elements.
struct Rows {
  Array x;
  DType dtype;
  int ndim;
  npy_intp shape[NPY_MAXDIMS];  // of what has k elements in each row
  int64_t rows, n, k;
};

// `axis` may be None. False for what is not covered.
bool read_rows(PyObject* object, PyObject* axis, Rows& found) {
  PyArrayObject* x = as_array(object);
  if (x == nullptr || !sort_covers(dtype_of(x)) || !is_readable(x) || PyArray_NDIM(x) == 0) return false;
  found.ndim = PyArray_NDIM(x);
  if (axis != Py_None && read_axis(axis, found.ndim) != found.ndim - 1) return false;
  if (axis == Py_None) {
    found.ndim = 1;
    found.shape[0] = PyArray_SIZE(x);
  } else {
    for (int i = 0; i < found.ndim; ++i) found.shape[i] = PyArray_DIM(x, i);
  }
  found.n = found.k = found.shape[found.ndim - 1];
  found.rows = found.n == 0 ? 0 : PyArray_SIZE(x) / found.n;
  if (found.n == 0 || found.n > UINT32_MAX / 2) return false;
  found.dtype = dtype_of(x);
  found.x = dense(x);
  return true;
}

Array ordered(Rows& rows, bool largest_first) {
  rows.shape[rows.ndim - 1] = npy_intp(rows.k);
  Array order = make_array(DType::int64, rows.ndim, rows.shape);
  MaybeReleaseGil unlocked(double(rows.rows * rows.n) * 5);
  order_rows(rows.dtype, PyArray_DATA(rows.x), data_of<int64_t>(order), rows.rows, rows.n, rows.k, largest_first);
  return order;
}

// to[i] = from[order[i]] within each row, or with `back` to[order[i]] = from[i].
template <class T>
void move_elements(const Rows& rows, const int64_t* order, const T* from, T* to, bool back) {
  for (int64_t r = 0; r < rows.rows; ++r, order += rows.k) {
    const T* source = from + r * (back ? rows.k : rows.n);
    T* target = to + r * (back ? rows.n : rows.k);
    for (int64_t i = 0; i < rows.k; ++i) {
      if (back) target[order[i]] = source[i];
      else target[i] = source[order[i]];
    }
  }
}

void move_elements(const Rows& rows, PyArrayObject* order, const void* from, void* to, bool back) {
  const int64_t* places = data_of<int64_t>(order);
  if (item_size(rows.dtype) == 4) move_elements(rows, places, static_cast<const uint32_t*>(from), static_cast<uint32_t*>(to), back);
  else move_elements(rows, places, static_cast<const uint64_t*>(from), static_cast<uint64_t*>(to), back);
}

// sort(x, axis)
PyObject* call_sort(PyObject*, PyObject* const* args, Py_ssize_t count) {
  Rows rows;
  if (count != 2 || !read_rows(args[0], args[1], rows)) return not_covered();
  const Array order = ordered(rows, false);
  Array out = make_array(rows.dtype, rows.ndim, rows.shape);
  move_elements(rows, order, PyArray_DATA(rows.x), PyArray_DATA(out), false);
  return reinterpret_cast<PyObject*>(out.release());
}

// argsort(x, axis)
PyObject* call_argsort(PyObject*, PyObject* const* args, Py_ssize_t count) {
  Rows rows;
  if (count != 2 || !read_rows(args[0], args[1], rows)) return not_covered();
  return reinterpret_cast<PyObject*>(ordered(rows, false).release());
}

// top_k(x, k, axis)
PyObject* call_top_k(PyObject*, PyObject* const* args, Py_ssize_t count) {
  Rows rows;
  if (count != 3 || args[2] == Py_None || !read_rows(args[0], args[2], rows)) return not_covered();
  rows.k = read_below(args[1], rows.n + 1);
  if (rows.k < 1) return not_covered();
  Array found[2];
  found[1] = ordered(rows, true);
  found[0] = make_array(rows.dtype, rows.ndim, rows.shape);
  move_elements(rows, found[1], PyArray_DATA(rows.x), PyArray_DATA(found[0]), false);
  return tuple_of(found, 2);
}

// The gradient of what was taken in `order`: everything else is 0.
PyObject* put_back(PyObject* g, Rows& rows, PyArrayObject* x, bool largest_first) {
  PyArrayObject* upstream = as_array(g);
  rows.shape[rows.ndim - 1] = npy_intp(rows.k);
  if (upstream == nullptr || dtype_of(upstream) != rows.dtype || !is_readable(upstream) || !has_shape(upstream, rows.ndim, rows.shape)) return not_covered();
  const Array order = ordered(rows, largest_first), given = dense(upstream);
  Array out = make_array(rows.dtype, PyArray_NDIM(x), PyArray_DIMS(x));
  if (rows.k < rows.n) std::memset(PyArray_DATA(out), 0, size_t(PyArray_NBYTES(out)));
  move_elements(rows, order, PyArray_DATA(given), PyArray_DATA(out), true);
  return reinterpret_cast<PyObject*>(out.release());
}

// sort_backward(g, x, axis)
PyObject* call_sort_backward(PyObject*, PyObject* const* args, Py_ssize_t count) {
  Rows rows;
  if (count != 3 || !read_rows(args[1], args[2], rows)) return not_covered();
  return put_back(args[0], rows, as_array(args[1]), false);
}

// top_k_backward(g, x, k, axis)
PyObject* call_top_k_backward(PyObject*, PyObject* const* args, Py_ssize_t count) {
  Rows rows;
  if (count != 4 || args[3] == Py_None || !read_rows(args[1], args[3], rows)) return not_covered();
  rows.k = read_below(args[2], rows.n + 1);
  if (rows.k < 1) return not_covered();
  return put_back(args[0], rows, as_array(args[1]), true);
}

}  // namespace

void bind_sort(PyObject* kernels) {
  add_kernel(kernels, "sort", call_sort);
  add_kernel(kernels, "argsort", call_argsort);
  add_kernel(kernels, "top_k", call_top_k);
  add_kernel(kernels, "sort_backward", call_sort_backward);
  add_kernel(kernels, "top_k_backward", call_top_k_backward);
}

}  // namespace extensor
