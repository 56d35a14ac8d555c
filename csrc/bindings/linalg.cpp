// Linear algebra of small matrices, as Python functions; larger ones, and those that cannot be handled, are LAPACK's.
#include "bindings/arguments.hpp"
#include "bindings/operands.hpp"
#include "kernels/linalg/decompositions.hpp"
#include "kernels/linalg/small.hpp"
#include "kernels/linalg/triangular.hpp"

namespace extensor {
namespace {

// A batch of matrices in float32 or float64 that lie one after the other.
struct Matrices {
  Array copy;  // of one that lies otherwise
  PyArrayObject* array = nullptr;
  int ndim = 0;
  int64_t count = 1, rows = 0, columns = 0;
};

bool read_matrices(PyObject* object, Matrices& found) {
  found.array = as_array(object);
  if (found.array == nullptr || !is_float(dtype_of(found.array)) || !is_readable(found.array)) return false;
  found.ndim = PyArray_NDIM(found.array);
  if (found.ndim < 2) return false;
  if (!PyArray_IS_C_CONTIGUOUS(found.array)) {  // the same bits as those of a contiguous one
    found.copy = owned(reinterpret_cast<PyArrayObject*>(PyArray_NewCopy(found.array, NPY_CORDER)));
    found.array = found.copy.get();
  }
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
  if (count != 4 || !read_matrices(args[0], a) || a.rows != a.columns || !read_sides(args[1], a, b) || !read_flag(args[2], upper) ||
      !read_flag(args[3], unit_diagonal))
    return not_covered();
  if (a.rows > small_matrix) {
    if (b.columns > few_sides) return not_covered();
    return computed(b.array, b.ndim, double(a.count * a.rows * a.rows * b.columns) * 0.2, [&](void* out) {
      const TriangularTable& table = EXTENSOR_SELECT(triangular_table)();
      return dtype_of(a.array) == DType::float32
                 ? table.solve32(data_of<float>(a.array), data_of<float>(b.array), static_cast<float*>(out), a.count, a.rows, b.columns, upper, unit_diagonal)
                 : table.solve64(data_of<double>(a.array), data_of<double>(b.array), static_cast<double*>(out), a.count, a.rows, b.columns, upper, unit_diagonal);
    });
  }
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

// Several results of one batch of matrices, each with its own last axes.
template <int results>
struct Results {
  // `lengths`: the last axes of each, 0 for none.
  Results(const Matrices& x, const int64_t (&lengths)[results][2]) {
    for (int i = 0; i < results; ++i) {
      npy_intp shape[NPY_MAXDIMS];
      int ndim = x.ndim - 2;
      for (int axis = 0; axis < ndim; ++axis) shape[axis] = PyArray_DIM(x.array, axis);
      for (const int64_t length : lengths[i])
        if (length > 0) shape[ndim++] = npy_intp(length);
      arrays[i] = make_array(dtype_of(x.array), ndim, shape);
    }
  }
  void* operator[](int i) { return PyArray_DATA(arrays[i]); }
  // The results, or NotImplemented.
  PyObject* given(bool fine) {
    if (!fine) return not_covered();
    return results == 1 ? reinterpret_cast<PyObject*>(arrays[0].release()) : reinterpret_cast<PyObject*>(tuple_of(arrays, results));
  }
  Array arrays[results];
};

template <int results, class Run>
PyObject* decomposed(const Matrices& x, const int64_t (&lengths)[results][2], const Run& run) {
  Results<results> found(x, lengths);
  bool fine;
  {
    MaybeReleaseGil unlocked(10 * work(x));
    fine = run(found);
  }
  return found.given(fine);
}

// eigvalsh(x)
PyObject* call_eigvalsh(PyObject*, PyObject* const* args, Py_ssize_t count) {
  Matrices x;
  if (count != 1 || !read_small_squares(args[0], x) || x.rows > small_spectrum) return not_covered();
  return decomposed<1>(x, {{x.rows, 0}}, [&](auto& found) { return small_eigvalsh(dtype_of(x.array), PyArray_DATA(x.array), found[0], x.count, x.rows); });
}

bool read_small(PyObject* object, Matrices& x) { return read_matrices(object, x) && x.rows <= small_factor && x.columns <= small_factor; }

int64_t shorter(const Matrices& x) { return x.rows < x.columns ? x.rows : x.columns; }

// svdvals(x)
PyObject* call_svdvals(PyObject*, PyObject* const* args, Py_ssize_t count) {
  Matrices x;
  if (count != 1 || !read_small(args[0], x) || shorter(x) > small_spectrum) return not_covered();
  return decomposed<1>(x, {{shorter(x), 0}}, [&](auto& found) {
    return small_svdvals(dtype_of(x.array), PyArray_DATA(x.array), found[0], x.count, x.rows, x.columns);
  });
}

// qr(x, mode)
PyObject* call_qr(PyObject*, PyObject* const* args, Py_ssize_t count) {
  Matrices x;
  if (count != 2 || !read_small(args[0], x) || !(is_text(args[1], "reduced") || (is_text(args[1], "complete") && x.rows <= x.columns)))
    return not_covered();
  const int64_t k = shorter(x);
  return decomposed<2>(x, {{x.rows, k}, {k, x.columns}}, [&](auto& found) {
    return small_qr(dtype_of(x.array), PyArray_DATA(x.array), found[0], found[1], x.count, x.rows, x.columns);
  });
}

// slogdet(x)
PyObject* call_slogdet(PyObject*, PyObject* const* args, Py_ssize_t count) {
  Matrices x;
  if (count != 1 || !read_small_squares(args[0], x)) return not_covered();
  return decomposed<2>(x, {{0, 0}, {0, 0}}, [&](auto& found) {
    return small_slogdet(dtype_of(x.array), PyArray_DATA(x.array), found[0], found[1], x.count, x.rows);
  });
}

}  // namespace

void bind_linalg(PyObject* kernels) {
  add_kernel(kernels, "inv", call_inv);
  add_kernel(kernels, "det", call_det);
  add_kernel(kernels, "solve", call_solve);
  add_kernel(kernels, "triangular_solve", call_triangular_solve);
  add_kernel(kernels, "cholesky", call_cholesky);
  add_kernel(kernels, "eigvalsh", call_eigvalsh);
  add_kernel(kernels, "svdvals", call_svdvals);
  add_kernel(kernels, "qr", call_qr);
  add_kernel(kernels, "slogdet", call_slogdet);
}

}  // namespace extensor
