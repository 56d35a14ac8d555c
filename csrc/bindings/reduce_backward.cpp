// Gradients of reductions as Python functions: kernel(g, x, axes, keepdims), variance and std with ddof behind; those of
// sum and mean take a shape in place of x.
#include "kernels/reduce/backward.hpp"

#include "bindings/half.hpp"
#include "bindings/reduced_axes.hpp"

namespace extensor {
namespace {

// Whether `g` has the shape of the forward's result.
bool is_gradient(PyArrayObject* g, int ndim, const npy_intp* shape, PyObject* axes, PyObject* keepdims, uint64_t& reduced) {
  if (!is_readable(g) || !PyBool_Check(keepdims) || !read_axes(axes, ndim, reduced)) return false;
  npy_intp left[NPY_MAXDIMS];
  const int count = reduced_shape(ndim, shape, reduced, keepdims == Py_True, left);
  return PyArray_NDIM(g) == count && PyArray_CompareLists(PyArray_DIMS(g), left, count);
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
  ReduceLayout layout;
  if (dtype_of(g) != dtype || !PyArray_IS_C_CONTIGUOUS(x) || !is_readable(x) ||
      !is_gradient(g, PyArray_NDIM(x), PyArray_DIMS(x), args[2], args[3], reduced) ||
      !find_slices(PyArray_NDIM(x), PyArray_DIMS(x), reduced, layout))
    return not_covered();
  const double ddof = kernel.has_ddof ? PyFloat_AsDouble(args[4]) : 0;
  if (PyErr_Occurred()) {
    PyErr_Clear();
    return not_covered();
  }
  PyArrayObject* grad = dense(args[0]);
  if (grad == nullptr) return nullptr;
  PyArrayObject* out = new_array(dtype, PyArray_NDIM(x), PyArray_DIMS(x));
  if (out != nullptr && PyArray_SIZE(out) > 0) {
    const ReduceBackwardTable& table = EXTENSOR_SELECT(reduce_backward_table)();
    MaybeReleaseGil unlocked(double(PyArray_SIZE(out)) * reduce_backward_ns(kernel.kind));
    if (dtype == DType::float32)
      table.float32(kernel.kind, layout, static_cast<const float*>(PyArray_DATA(grad)), static_cast<const float*>(PyArray_DATA(x)),
                    static_cast<float*>(PyArray_DATA(out)), ddof);
    else
      table.float64(kernel.kind, layout, static_cast<const double*>(PyArray_DATA(grad)), static_cast<const double*>(PyArray_DATA(x)),
                    static_cast<double*>(PyArray_DATA(out)), ddof);
  }
  Py_DECREF(grad);
  return reinterpret_cast<PyObject*>(out);
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
PyObject* spread_array(PyArrayObject* g, int ndim, const npy_intp* shape, const ReduceLayout& layout, double divisor) {
  const DType dtype = dtype_of(g);
  PyArrayObject* from = dense(reinterpret_cast<PyObject*>(g));
  PyArrayObject* out = from == nullptr ? nullptr : new_array(dtype, ndim, shape);
  if (out != nullptr && PyArray_SIZE(out) > 0) {
    const ReduceBackwardTable& table = EXTENSOR_SELECT(reduce_backward_table)();
    const void* data = PyArray_DATA(from);
    void* to = PyArray_DATA(out);
    if (dtype == DType::float32) table.spread32(layout, static_cast<const float*>(data), static_cast<float*>(to), divisor);
    else if (dtype == DType::float64) table.spread64(layout, static_cast<const double*>(data), static_cast<double*>(to), divisor);
    else table.spread16(layout, static_cast<const uint16_t*>(data), static_cast<uint16_t*>(to));
  }
  Py_XDECREF(from);
  return reinterpret_cast<PyObject*>(out);
}

// A view of `shape` into g, which it takes over: steps of 0 along the reduced axes. Not to be written to.
PyObject* repeating_view(PyArrayObject* g, int ndim, const npy_intp* shape, uint64_t reduced) {
  npy_intp strides[NPY_MAXDIMS];
  const bool kept_all = PyArray_NDIM(g) == ndim;
  for (int axis = 0, at = 0; axis < ndim; ++axis) {
    const bool kind = reduced >> axis & 1;
    strides[axis] = kind ? 0 : PyArray_STRIDE(g, at);
    at += !kind || kept_all;
  }
  PyArray_Descr* descriptor = PyArray_DESCR(g);
  Py_INCREF(descriptor);
  PyObject* view = PyArray_NewFromDescr(&PyArray_Type, descriptor, ndim, shape, strides, PyArray_DATA(g), NPY_ARRAY_ALIGNED, nullptr);
  if (view == nullptr) {
    Py_DECREF(g);
    return nullptr;
  }
  if (PyArray_SetBaseObject(reinterpret_cast<PyArrayObject*>(view), reinterpret_cast<PyObject*>(g)) < 0) Py_CLEAR(view);
  return view;
}

// kernel(g, shape, axes, keepdims). A half precision mean is not divided in its own precision: it asks for a dense result
// in float32, which is rounded.
template <bool may_be_view>
PyObject* call_spread(PyObject* self, PyObject* const* args, Py_ssize_t count) {
  const SpreadKernel& kernel = *kernel_context<SpreadKernel>(self);
  PyArrayObject* g = count == 4 ? as_array(args[0]) : nullptr;
  if (g == nullptr) return not_covered();
  const DType dtype = dtype_of(g);
  if (!is_float(dtype) && (kernel.divides || (dtype != DType::float16 && dtype != DType::bfloat16)))
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
    return spread_array(g, ndim, shape, layout, divisor);
  if (!may_be_view) return not_covered();
  if (!kernel.divides) return repeating_view(reinterpret_cast<PyArrayObject*>(Py_NewRef(args[0])), ndim, shape, reduced);
  ReduceLayout each;
  each.inner = PyArray_SIZE(g);
  PyObject* quotients = spread_array(g, PyArray_NDIM(g), PyArray_DIMS(g), each, divisor);
  return quotients == nullptr ? nullptr : repeating_view(reinterpret_cast<PyArrayObject*>(quotients), ndim, shape, reduced);
}

}  // namespace

void bind_reduce_backward(PyObject* kernels) {
  for (const GradientKernel& kernel : gradient_kernels) add_kernel(kernels, kernel.name, call_gradient, &kernel);
  for (const SpreadKernel& kernel : spread_kernels) add_kernel(kernels, kernel.name, call_spread<true>, &kernel);
}

}  // namespace extensor
