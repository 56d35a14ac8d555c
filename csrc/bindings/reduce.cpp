// Reductions as Python functions: kernel(x, axes, keepdims), variance and std with ddof behind.
#include "kernels/reduce/reduce.hpp"

#include <initializer_list>

#include "bindings/half.hpp"

namespace extensor {
namespace {

struct ReduceKernel {
  const char* name;
  Reduction kind;
  bool has_ddof;
  bool needs_elements;  // nothing is the largest of no elements
};
constexpr ReduceKernel reduce_kernels[] = {
    {"sum", Reduction::sum, false, false},        {"mean", Reduction::mean, false, false},
    {"prod", Reduction::prod, false, false},      {"max_reduce", Reduction::max, false, true},
    {"min_reduce", Reduction::min, false, true},  {"variance", Reduction::variance, true, false},
    {"std", Reduction::std, true, false},         {"logsumexp", Reduction::logsumexp, false, false},
};

// A bit per axis; false if `axes` is not a tuple of axes of a tensor of `ndim` dimensions.
bool read_axes(PyObject* axes, int ndim, uint64_t& reduced) {
  if (!PyTuple_Check(axes)) return false;
  reduced = 0;
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(axes); ++i) {
    const long axis = PyLong_AsLong(PyTuple_GET_ITEM(axes, i));
    if (axis < 0 || axis >= ndim) {
      PyErr_Clear();
      return false;
    }
    reduced |= uint64_t(1) << axis;
  }
  return true;
}

// Neighbouring axes that are all kept or all reduced become one. False if what is left is not one of the forms of
// ReduceLayout: kept, kept-reduced-kept, or reduced-kept-reduced.
bool find_layout(int ndim, const npy_intp* shape, uint64_t reduced, ReduceLayout& layout) {
  int64_t lengths[NPY_MAXDIMS];
  bool kinds[NPY_MAXDIMS];
  int groups = 0;
  for (int axis = 0; axis < ndim; ++axis) {
    if (shape[axis] == 1) continue;
    const bool kind = reduced >> axis & 1;
    if (groups > 0 && kinds[groups - 1] == kind) lengths[groups - 1] *= shape[axis];
    else lengths[groups] = shape[axis], kinds[groups++] = kind;
  }
  layout = ReduceLayout();
  int next = 0;
  if (groups == 3 && kinds[0]) {
    layout.pieces = lengths[0], layout.outer = lengths[1], layout.length = lengths[2];
    layout.piece_stride = lengths[1] * lengths[2], layout.outer_stride = lengths[2];
    return true;
  }
  if (next < groups && !kinds[next]) layout.outer = lengths[next++];
  if (next < groups && kinds[next]) layout.length = lengths[next++];
  if (next < groups && !kinds[next]) layout.inner = lengths[next++];
  layout.length_stride = layout.inner;
  layout.outer_stride = layout.length * layout.inner;
  return next == groups;
}

// x with its reduced axes moved to the end, dense.
PyArrayObject* with_reduced_last(PyArrayObject* x, uint64_t reduced) {
  npy_intp order[NPY_MAXDIMS];
  PyArray_Dims permutation = {order, 0};
  for (const bool kind : {false, true})
    for (int axis = 0; axis < PyArray_NDIM(x); ++axis)
      if (bool(reduced >> axis & 1) == kind) order[permutation.len++] = axis;
  PyObject* moved = PyArray_Transpose(x, &permutation);
  if (moved == nullptr) return nullptr;
  PyObject* dense = PyArray_NewCopy(reinterpret_cast<PyArrayObject*>(moved), NPY_CORDER);
  Py_DECREF(moved);
  return reinterpret_cast<PyArrayObject*>(dense);
}

PyObject* call_reduce(PyObject* self, PyObject* const* args, Py_ssize_t count) {
  const ReduceKernel& kernel = *kernel_context<ReduceKernel>(self);
  if (count != (kernel.has_ddof ? 4 : 3) || !PyArray_Check(args[0])) return not_covered();
  PyArrayObject* x = reinterpret_cast<PyArrayObject*>(args[0]);
  const DType dtype = dtype_of(x);
  if (dtype != DType::float32 && dtype != DType::float64) return call_widened(call_reduce, self, args, count);
  const int ndim = PyArray_NDIM(x);
  uint64_t reduced;
  if (!is_readable(x) || !read_axes(args[1], ndim, reduced)) return not_covered();
  const bool keepdims = args[2] == Py_True;
  const double ddof = kernel.has_ddof ? PyFloat_AsDouble(args[3]) : 0;
  if (PyErr_Occurred()) {
    PyErr_Clear();
    return not_covered();
  }

  npy_intp shape[NPY_MAXDIMS];
  int out_ndim = 0;
  bool empty = false;
  for (int axis = 0; axis < ndim; ++axis) {
    const bool kind = reduced >> axis & 1;
    if (!kind) shape[out_ndim++] = PyArray_DIM(x, axis);
    else if (keepdims) shape[out_ndim++] = 1;
    empty = empty || (kind && PyArray_DIM(x, axis) == 0);
  }
  if (empty && kernel.needs_elements) return not_covered();

  PyArrayObject* dense = x;
  ReduceLayout layout;
  if (PyArray_IS_C_CONTIGUOUS(x) && find_layout(ndim, PyArray_DIMS(x), reduced, layout)) {
    Py_INCREF(dense);
  } else {
    dense = with_reduced_last(x, reduced);
    if (dense == nullptr) return nullptr;
    const uint64_t last = reduced == 0 ? 0 : ~uint64_t(0) << (ndim - __builtin_popcountll(reduced));
    find_layout(ndim, PyArray_DIMS(dense), last, layout);
  }
  PyArrayObject* out = new_array(dtype, out_ndim, shape);
  if (out != nullptr && PyArray_SIZE(out) > 0) {
    MaybeReleaseGil unlocked(reduce_ns(kernel.kind, double(PyArray_SIZE(x))));
    reduce(dtype, kernel.kind, layout, PyArray_DATA(dense), PyArray_DATA(out), ddof);
  }
  Py_DECREF(dense);
  return reinterpret_cast<PyObject*>(out);
}

}  // namespace

void bind_reduce(PyObject* kernels) {
  for (const ReduceKernel& kernel : reduce_kernels) add_kernel(kernels, kernel.name, call_reduce, &kernel);
}

}  // namespace extensor
