// Linear algebra of small matrices, as Python functions; larger ones, and those that cannot be handled, are LAPACK's.
#include "bindings/arguments.hpp"
#include "kernels/linalg/small.hpp"

namespace extensor {
namespace {

// A batch of matrices in float32 or float64 that lie one after the other.
struct Matrices {
  PyArrayObject* array = nullptr;
  int ndim = 0;
  int64_t count = 1, rows = 0, columns = 0;
};

bool read_matrices(PyObject* object, Matrices& found) {
  found.array = as_array(object);
  if (found.array == nullptr || !is_float(dtype_of(found.array)) || !PyArray_IS_C_CONTIGUOUS(found.array) || !is_readable(found.array)) return false;
  found.ndim = PyArray_NDIM(found.array);
  if (found.ndim < 2) return false;
  for (int i = 0; i < found.ndim - 2; ++i) found.count *= PyArray_DIM(found.array, i);
  found.rows = PyArray_DIM(found.array, found.ndim - 2);
  found.columns = PyArray_DIM(found.array, found.ndim - 1);
  return found.count > 0 && found.columns > 0 && found.rows > 0;
}

bool read_small_squares(PyObject* object, Matrices& found) {
  return read_matrices(object, found) && found.rows == found.columns && found.rows <= small_matrix;
}

// Right-hand sides of the same batch and dtype.
bool read_sides(PyObject* object, const Matrices& a, Matrices& found) {
  if (!read_matrices(object, found) || found.ndim != a.ndim || found.rows != a.rows || dtype_of(found.array) != dtype_of(a.array)) return false;
  for (int i = 0; i < a.ndim - 2; ++i)
    if (PyArray_DIM(found.array, i) != PyArray_DIM(a.array, i)) return false;
  return true;
}

template <class Run>
PyObject* computed(PyArrayObject* like, int ndim, double cost_ns, Run&& run) {
  Array out = make_array(dtype_of(like), ndim, PyArray_DIMS(like));
  bool fine;
  {
    MaybeReleaseGil unlocked(cost_ns);
    fine = run(PyArray_DATA(out));
  }
  return fine ? reinterpret_cast<PyObject*>(out.release()) : not_covered();
}

double work(const Matrices& x) { return double(x.count) * (30 + double(x.rows) * double(x.rows) * double(x.rows)); }

// inv(x)
PyObject* call_inv(PyObject*, PyObject* const* args, Py_ssize_t count) {
  Matrices x;
  if (count != 1 || !read_small_squares(args[0], x)) return not_covered();
  return computed(x.array, x.ndim, work(x), [&](void* out) {
    return small_inverse(dtype_of(x.array), PyArray_DATA(x.array), out, x.count, x.rows);
  });
}

// det(x)
PyObject* call_det(PyObject*, PyObject* const* args, Py_ssize_t count) {
  Matrices x;
  if (count != 1 || !read_small_squares(args[0], x)) return not_covered();
  return computed(x.array, x.ndim - 2, work(x), [&](void* out) {
    return small_determinant(dtype_of(x.array), PyArray_DATA(x.array), out, x.count, x.rows);
  });
}

// solve(a, b)
PyObject* call_solve(PyObject*, PyObject* const* args, Py_ssize_t count) {
  Matrices a, b;
  if (count != 2 || !read_small_squares(args[0], a) || !read_sides(args[1], a, b)) return not_covered();
  return computed(b.array, b.ndim, work(a), [&](void* out) {
    return small_solve(dtype_of(a.array), PyArray_DATA(a.array), PyArray_DATA(b.array), out, a.count, a.rows, b.columns);
  });
}

// triangular_solve(a, b, upper, unit_diagonal)
PyObject* call_triangular_solve(PyObject*, PyObject* const* args, Py_ssize_t count) {
  Matrices a, b;
  bool upper, unit_diagonal;
  if (count != 4 || !read_small_squares(args[0], a) || !read_sides(args[1], a, b) || !read_flag(args[2], upper) || !read_flag(args[3], unit_diagonal))
    return not_covered();
  return computed(b.array, b.ndim, work(a), [&](void* out) {
    return small_triangular_solve(dtype_of(a.array), PyArray_DATA(a.array), PyArray_DATA(b.array), out, a.count, a.rows, b.columns, upper, unit_diagonal);
  });
}

// cholesky(x, upper)
PyObject* call_cholesky(PyObject*, PyObject* const* args, Py_ssize_t count) {
  Matrices x;
  bool upper;
  if (count != 2 || !read_small_squares(args[0], x) || !read_flag(args[1], upper)) return not_covered();
  return computed(x.array, x.ndim, work(x), [&](void* out) {
    return small_cholesky(dtype_of(x.array), PyArray_DATA(x.array), out, x.count, x.rows, upper);
  });
}

}  // namespace

void bind_linalg(PyObject* kernels) {
  add_kernel(kernels, "inv", call_inv);
  add_kernel(kernels, "det", call_det);
  add_kernel(kernels, "solve", call_solve);
  add_kernel(kernels, "triangular_solve", call_triangular_solve);
  add_kernel(kernels, "cholesky", call_cholesky);
}

}  // namespace extensor
