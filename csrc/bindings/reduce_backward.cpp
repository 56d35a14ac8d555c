// Gradients of reductions as Python functions: kernel(g, x, axes, keepdims), variance and std with ddof behind; those of
// sum and mean take a shape in place of x.
#include "kernels/reduce/backward.hpp"

#include "bindings/half.hpp"
#include "bindings/reduced_axes.hpp"

namespace extensor {
namespace {

// Whether `g` has the shape of the forward's result.
bool is_gradient(PyArrayObject* g, int ndim, const npy_intp* shape, PyObject* axes, PyObject* keepdims, uint64_t& reduced) {
  bool keeps;
  if (!is_readable(g) || !read_flag(keepdims, keeps) || !read_axes(axes, ndim, reduced)) return false;
  npy_intp left[NPY_MAXDIMS];
  const int count = reduced_shape(ndim, shape, reduced, keeps, left);
  return has_shape(g, count, left);
}

// How the slices lie in memory. False if one is more than one stretch of it.
bool find_slices(int ndim, const npy_intp* shape, uint64_t reduced, ReduceLayout& layout) {
  return find_layout(ndim, shape, reduced, layout) && layout.pieces == 1;
}

struct GradientKernel {
  const char* name;
  ReduceGradient kind;
  bool has_ddof;
};
constexpr GradientKernel gradient_kernels[] = {
    {"max_reduce_backward", ReduceGradient::max, false},    {"min_reduce_backward", ReduceGradient::min, false},
    {"variance_backward", ReduceGradient::variance, true},  {"std_backward", ReduceGradient::std, true},
    {"prod_backward", ReduceGradient::prod, false},         {"logsumexp_backward", ReduceGradient::logsumexp, false},
};

PyObject* call_gradient(PyObject* self, PyObject* const* args, Py_ssize_t count) {
  const GradientKernel& kernel = *kernel_context<GradientKernel>(self);
  PyArrayObject *g = count > 1 ? as_array(args[0]) : nullptr, *x = count > 1 ? as_array(args[1]) : nullptr;
  if (count != (kernel.has_ddof ? 5 : 4) || g == nullptr || x == nullptr) return not_covered();
  const DType dtype = dtype_of(x);
  if (!is_float(dtype)) return call_widened(call_gradient, self, args, count);
  uint64_t reduced;
  double ddof = 0;
  ReduceLayout layout;
  if (dtype_of(g) != dtype || !PyArray_IS_C_CONTIGUOUS(x) || !is_readable(x) ||
      !is_gradient(g, PyArray_NDIM(x), PyArray_DIMS(x), args[2], args[3], reduced) ||
      !find_slices(PyArray_NDIM(x), PyArray_DIMS(x), reduced, layout) || (kernel.has_ddof && !read_number(args[4], ddof)))
    return not_covered();
  const Array grad = dense(g);
  Array out = make_array(dtype, PyArray_NDIM(x), PyArray_DIMS(x));
  if (PyArray_SIZE(out) > 0) {
    const ReduceBackwardTable& table = EXTENSOR_SELECT(reduce_backward_table)();
    MaybeReleaseGil unlocked(double(PyArray_SIZE(out)) * reduce_backward_ns(kernel.kind));
    if (dtype == DType::float32)
      table.float32(kernel.kind, layout, data_of<float>(grad), data_of<float>(x), data_of<float>(out), ddof);
    else
      table.float64(kernel.kind, layout, data_of<double>(grad), data_of<double>(x), data_of<double>(out), ddof);
  }
  return out.release();
}

struct SpreadKernel {
  const char* name;
  bool divides;
};
constexpr SpreadKernel spread_kernels[] = {{"sum_backward", false}, {"mean_backward", true}};

// From this size on a gradient that repeats itself is a view: what reads it then reads less memory. Below, most kernels
// are faster with a dense one.
constexpr int64_t smallest_view = 64 * 1024;

// A new dense array of `shape`: g / divisor, spread over the slices.
Array spread_array(PyArrayObject* g, int ndim, const npy_intp* shape, const ReduceLayout& layout, double divisor) {
  const DType dtype = dtype_of(g);
  const Array from = dense(g);
  Array out = make_array(dtype, ndim, shape);
  if (PyArray_SIZE(out) > 0) {
    const ReduceBackwardTable& table = EXTENSOR_SELECT(reduce_backward_table)();
    if (dtype == DType::float32) table.spread32(layout, data_of<float>(from), data_of<float>(out), divisor);
    else if (dtype == DType::float64) table.spread64(layout, data_of<double>(from), data_of<double>(out), divisor);
    else table.spread16(layout, data_of<uint16_t>(from), data_of<uint16_t>(out));
  }
  return out;
}

// A view of `shape` into g: steps of 0 along the reduced axes. Not to be written to.
Array repeating_view(PyArrayObject* g, int ndim, const npy_intp* shape, uint64_t reduced) {
  npy_intp strides[NPY_MAXDIMS];
  const bool kept_all = PyArray_NDIM(g) == ndim;
  for (int axis = 0, at = 0; axis < ndim; ++axis) {
    const bool kind = reduced >> axis & 1;
    strides[axis] = kind ? 0 : PyArray_STRIDE(g, at);
    at += !kind || kept_all;
  }
  return view_of(g, ndim, shape, strides, PyArray_BYTES(g), NPY_ARRAY_ALIGNED);
}

// kernel(g, shape, axes, keepdims). A half precision mean is not divided in its own precision: it asks for a dense result
// in float32, which is rounded.
template <bool may_be_view>
PyObject* call_spread(PyObject* self, PyObject* const* args, Py_ssize_t count) {
  const SpreadKernel& kernel = *kernel_context<SpreadKernel>(self);
  PyArrayObject* g = count == 4 ? as_array(args[0]) : nullptr;
  if (g == nullptr) return not_covered();
  const DType dtype = dtype_of(g);
  if (!is_float(dtype) && (kernel.divides || !is_half(dtype)))
    return call_widened(call_spread<false>, self, args, count);
  npy_intp shape[NPY_MAXDIMS];
  int ndim;
  uint64_t reduced;
  if (!read_shape(args[1], ndim, shape) || !is_gradient(g, ndim, shape, args[2], args[3], reduced)) return not_covered();
  const int64_t size = product_of(shape, ndim);
  if (size == 0) return not_covered();
  const double divisor = kernel.divides ? double(size) / double(PyArray_SIZE(g)) : 1;
  ReduceLayout layout;
  if (size < smallest_view / int64_t(PyArray_ITEMSIZE(g)) && find_slices(ndim, shape, reduced, layout))
    return spread_array(g, ndim, shape, layout, divisor).release();
  if (!may_be_view) return not_covered();
  if (!kernel.divides) return repeating_view(g, ndim, shape, reduced).release();
  ReduceLayout each;
  each.inner = PyArray_SIZE(g);
  const Array quotients = spread_array(g, PyArray_NDIM(g), PyArray_DIMS(g), each, divisor);
  return repeating_view(quotients, ndim, shape, reduced).release();
}

}  // namespace

void bind_reduce_backward(PyObject* kernels) {
  for (const GradientKernel& kernel : gradient_kernels) add_kernel(kernels, kernel.name, call_gradient, &kernel);
  for (const SpreadKernel& kernel : spread_kernels) add_kernel(kernels, kernel.name, call_spread<true>, &kernel);
}

}  // namespace extensor
