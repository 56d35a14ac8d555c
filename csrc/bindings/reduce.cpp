// Reductions as Python functions: kernel(x, axes, keepdims), variance and std with ddof behind.
#include "bindings/reduce.hpp"

#include "bindings/elementwise.hpp"
#include "bindings/half.hpp"
#include "bindings/operands.hpp"
#include "bindings/reduced_axes.hpp"
#include "kernels/reduce/arg_reduce.hpp"
#include "kernels/reduce/reduce.hpp"
#include "kernels/reduce/truth.hpp"

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

// x with its reduced axes moved to the end, dense.
Array with_reduced_last(PyArrayObject* x, uint64_t reduced) {
  npy_intp order[NPY_MAXDIMS];
  PyArray_Dims permutation = {order, 0};
  for (const bool kind : {false, true})
    for (int axis = 0; axis < PyArray_NDIM(x); ++axis)
      if (bool(reduced >> axis & 1) == kind) order[permutation.len++] = axis;
  const Ref<> moved = owned(PyArray_Transpose(x, &permutation));
  return dense(as_array(moved));
}

// A new array of `shape`: x reduced over the axes whose bit is set.
Array reduced_array(PyArrayObject* x, Reduction kind, uint64_t reduced, int ndim, const npy_intp* shape, double ddof) {
  Array from;
  ReduceLayout layout;
  if (PyArray_IS_C_CONTIGUOUS(x) && find_layout(PyArray_NDIM(x), PyArray_DIMS(x), reduced, layout)) {
    from = shared(x);
  } else {
    from = with_reduced_last(x, reduced);
    const uint64_t last = reduced == 0 ? 0 : ~uint64_t(0) << (PyArray_NDIM(x) - __builtin_popcountll(reduced));
    find_layout(PyArray_NDIM(x), PyArray_DIMS(from), last, layout);
  }
  const DType dtype = dtype_of(x);
  Array out = make_array(dtype, ndim, shape);
  if (PyArray_SIZE(out) > 0) {
    MaybeReleaseGil unlocked(reduce_ns(kind, double(PyArray_SIZE(x))));
    reduce(dtype, kind, layout, PyArray_DATA(from), PyArray_DATA(out), ddof);
  }
  return out;
}

// Sums of half precision along neighbours, without a float32 copy; not covered: all else.
Ref<> reduced_half(PyArrayObject* x, Reduction kind, PyObject* axes, bool keepdims) {
  const DType dtype = dtype_of(x);
  uint64_t reduced;
  ReduceLayout layout;
  if (!is_half(dtype) || !is_readable(x) || !PyArray_IS_C_CONTIGUOUS(x) || PyArray_SIZE(x) == 0 || !read_axes(axes, PyArray_NDIM(x), reduced) ||
      !find_layout(PyArray_NDIM(x), PyArray_DIMS(x), reduced, layout))
    return owned(not_covered());
  npy_intp shape[NPY_MAXDIMS];
  const int ndim = reduced_shape(PyArray_NDIM(x), PyArray_DIMS(x), reduced, keepdims, shape);
  Array out = make_array(dtype, ndim, shape);
  bool covered;
  {
    MaybeReleaseGil unlocked(reduce_ns(kind, double(PyArray_SIZE(x))));
    covered = EXTENSOR_SELECT(reduce_table)().half(dtype, kind, layout, PyArray_DATA(x), PyArray_DATA(out));
  }
  return owned(covered ? out.release() : not_covered());
}

PyObject* call_reduce(PyObject* self, PyObject* const* args, Py_ssize_t count) {
  const ReduceKernel& kernel = *kernel_context<ReduceKernel>(self);
  PyArrayObject* x = count == (kernel.has_ddof ? 4 : 3) ? as_array(args[0]) : nullptr;
  bool keepdims;
  if (x == nullptr || !read_flag(args[2], keepdims)) return not_covered();
  if (!is_float(dtype_of(x))) {
    Ref<> sum = kernel.has_ddof ? owned(not_covered()) : reduced_half(x, kernel.kind, args[1], keepdims);
    return sum != Py_NotImplemented ? sum.release() : call_widened(call_reduce, self, args, count);
  }
  uint64_t reduced;
  double ddof = 0;
  if (!is_readable(x) || !read_axes(args[1], PyArray_NDIM(x), reduced) || (kernel.has_ddof && !read_number(args[3], ddof)))
    return not_covered();
  for (int axis = 0; axis < PyArray_NDIM(x); ++axis)
    if (reduced >> axis & 1 && PyArray_DIM(x, axis) == 0 && kernel.needs_elements) return not_covered();
  npy_intp shape[NPY_MAXDIMS];
  const int ndim = reduced_shape(PyArray_NDIM(x), PyArray_DIMS(x), reduced, keepdims, shape);
  return reduced_array(x, kernel.kind, reduced, ndim, shape, ddof).release();
}

// sum_to_shape(x, shape): the adjoint of broadcasting.
PyObject* call_sum_to_shape(PyObject* self, PyObject* const* args, Py_ssize_t count) {
  PyArrayObject* x = count == 2 ? as_array(args[0]) : nullptr;
  npy_intp shape[NPY_MAXDIMS];
  int ndim;
  if (x == nullptr || !read_shape(args[1], ndim, shape)) return not_covered();
  if (!is_float(dtype_of(x))) return call_widened(call_sum_to_shape, self, args, count);
  return sum_to_shape(x, ndim, shape).release();
}

// add_backward(g, shape_a, shape_b, needs) and subtract_backward: the gradient itself, summed to the shapes of the operands.
PyObject* call_add_backward(PyObject* self, PyObject* const* args, Py_ssize_t count) {
  static const ElementwiseKernel& negate = *find_elementwise("negate");
  PyArrayObject* g = count == 4 ? as_array(args[0]) : nullptr;
  bool needs[2], same[2];
  if (g == nullptr || !elementwise_covers(dtype_of(g)) || !read_flags(args[3], needs, 2)) return not_covered();
  npy_intp shapes[2][NPY_MAXDIMS];
  int ndims[2];
  for (int i = 0; i < 2; ++i) {
    if (!read_shape(args[1 + i], ndims[i], shapes[i])) return not_covered();
    same[i] = has_shape(g, ndims[i], shapes[i]);
    if (needs[i] && !same[i] && !is_float(dtype_of(g))) return call_widened(call_add_backward, self, args, count);
  }
  if (!broadcast_to(ndims[0], shapes[0], ndims[1], shapes[1], g)) return not_covered();
  return pair_of_gradients([&](int i) {
    if (!needs[i]) return shared(Py_None);
    Ref<> grad = same[i] ? shared(args[0]) : sum_to_shape(g, ndims[i], shapes[i]);
    if (i == 0 || !*kernel_context<bool>(self) || grad == Py_NotImplemented) return grad;
    PyObject* const summed[] = {grad};
    return elementwise(negate, summed, nullptr);
  });
}
constexpr bool keeps_sign = false, turns_sign = true;

struct ArgKernel {
  const char* name;
  bool largest;
};
constexpr ArgKernel arg_kernels[] = {{"argmax", true}, {"argmin", false}};

// argmax(x, axis, keepdims); axis None is the position in the flattened tensor.
PyObject* call_arg_reduce(PyObject* self, PyObject* const* args, Py_ssize_t count) {
  const ArgKernel& kernel = *kernel_context<ArgKernel>(self);
  PyArrayObject* x = count == 3 ? as_array(args[0]) : nullptr;
  bool keepdims;
  if (x == nullptr || !read_flag(args[2], keepdims)) return not_covered();
  const DType dtype = dtype_of(x);
  if (!is_float(dtype)) return call_widened(call_arg_reduce, self, args, count);
  const int ndim = PyArray_NDIM(x);
  const bool all = args[1] == Py_None;
  const int axis = all ? 0 : read_axis(args[1], ndim);
  if (axis < 0 || !PyArray_IS_C_CONTIGUOUS(x) || !is_readable(x) || PyArray_SIZE(x) == 0) return not_covered();
  npy_intp shape[NPY_MAXDIMS];
  int out_ndim = 0;
  int64_t outer = 1, inner = 1;
  for (int i = 0; i < ndim; ++i) {
    const bool kept = !all && i != axis;
    if (kept || keepdims) shape[out_ndim++] = kept ? PyArray_DIM(x, i) : 1;
    if (kept) (i < axis ? outer : inner) *= PyArray_DIM(x, i);
  }
  Array out = make_array(DType::int64, out_ndim, shape);
  {
    MaybeReleaseGil unlocked(double(PyArray_SIZE(x)) * 0.3);
    arg_reduce(dtype, kernel.largest, outer, PyArray_SIZE(x) / (outer * inner), inner, PyArray_DATA(x), data_of<int64_t>(out));
  }
  return out.release();
}

struct TruthKernel {
  const char* name;
  Truth kind;
};
constexpr TruthKernel truth_kernels[] = {{"any", Truth::any}, {"all", Truth::all}, {"count_nonzero", Truth::count}};

// any(x, axes, keepdims)
PyObject* call_truth(PyObject* self, PyObject* const* args, Py_ssize_t count) {
  const TruthKernel& kernel = *kernel_context<TruthKernel>(self);
  PyArrayObject* x = count == 3 ? as_array(args[0]) : nullptr;
  if (x == nullptr) return not_covered();
  const DType dtype = dtype_of(x);
  uint64_t reduced;
  bool keepdims;
  ReduceLayout layout;
  if ((dtype != DType::boolean && !is_float(dtype)) || !PyArray_IS_C_CONTIGUOUS(x) || !is_readable(x) ||
      !read_flag(args[2], keepdims) || !read_axes(args[1], PyArray_NDIM(x), reduced) ||
      !find_layout(PyArray_NDIM(x), PyArray_DIMS(x), reduced, layout) || layout.pieces > 1)
    return not_covered();
  npy_intp shape[NPY_MAXDIMS];
  const int ndim = reduced_shape(PyArray_NDIM(x), PyArray_DIMS(x), reduced, keepdims, shape);
  Array out = make_array(kernel.kind == Truth::count ? DType::int64 : DType::boolean, ndim, shape);
  if (PyArray_SIZE(out) > 0) {
    const TruthTable& table = EXTENSOR_SELECT(truth_table)();
    const void* from = PyArray_DATA(x);
    void* to = PyArray_DATA(out);
    MaybeReleaseGil unlocked(double(PyArray_SIZE(x)) * truth_ns);
    if (dtype == DType::boolean) table.bytes(kernel.kind, layout, static_cast<const uint8_t*>(from), to);
    else if (dtype == DType::float32) table.float32(kernel.kind, layout, static_cast<const float*>(from), to);
    else table.float64(kernel.kind, layout, static_cast<const double*>(from), to);
  }
  return out.release();
}

}  // namespace

void bind_reduce(PyObject* kernels) {
  for (const ReduceKernel& kernel : reduce_kernels) add_kernel(kernels, kernel.name, call_reduce, &kernel);
  for (const ArgKernel& kernel : arg_kernels) add_kernel(kernels, kernel.name, call_arg_reduce, &kernel);
  for (const TruthKernel& kernel : truth_kernels) add_kernel(kernels, kernel.name, call_truth, &kernel);
  add_kernel(kernels, "sum_to_shape", call_sum_to_shape);
  add_kernel(kernels, "add_backward", call_add_backward, &keeps_sign);
  add_kernel(kernels, "subtract_backward", call_add_backward, &turns_sign);
}

Ref<> sum_to_shape(PyArrayObject* x, int ndim, const npy_intp* shape) {
  if (ndim > PyArray_NDIM(x) || !is_float(dtype_of(x)) || !is_readable(x)) return owned(not_covered());
  const int extra = PyArray_NDIM(x) - ndim;
  uint64_t reduced = extra < 64 ? (uint64_t(1) << extra) - 1 : ~uint64_t(0);
  for (int axis = 0; axis < ndim; ++axis) {
    const npy_intp length = PyArray_DIM(x, axis + extra);
    if (shape[axis] == 1 && length != 1) reduced |= uint64_t(1) << (axis + extra);
    else if (shape[axis] != length) return owned(not_covered());
  }
  // Nothing to add: the reference reshapes, which needs no memory.
  return owned(reduced == 0 ? not_covered() : reduced_array(x, Reduction::sum, reduced, ndim, shape, 0).release());
}

}  // namespace extensor
