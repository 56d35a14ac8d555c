// Softmax, its logarithm and the cross-entropy of integer labels as Python functions.
#include "kernels/softmax/softmax.hpp"

#include "bindings/arguments.hpp"
#include "bindings/half.hpp"
#include "kernels/loss/cross_entropy.hpp"

namespace extensor {
namespace {

struct SoftmaxKernel {
  const char* name;
  Softmax kind;
  int inputs;
};
constexpr SoftmaxKernel softmax_kernels[] = {
    {"softmax", Softmax::forward, 1},
    {"softmax_backward", Softmax::backward, 2},
    {"log_softmax", Softmax::log_forward, 1},
    {"log_softmax_backward", Softmax::log_backward, 2},
};

PyObject* call_softmax(PyObject* self, PyObject* const* args, Py_ssize_t count) {
  const SoftmaxKernel& kernel = *kernel_context<SoftmaxKernel>(self);
  if (count != kernel.inputs + 1 || !PyArray_Check(args[0])) return not_covered();
  PyArrayObject* x = reinterpret_cast<PyArrayObject*>(args[0]);
  const DType dtype = dtype_of(x);
  if (!is_float(dtype)) return call_widened(call_softmax, self, args, count);
  const int ndim = PyArray_NDIM(x);
  const long axis = read_axis(args[count - 1], ndim == 0 ? 1 : ndim);
  if (axis < 0 || !is_readable(x)) return not_covered();
  for (int i = 1; i < kernel.inputs; ++i) {
    PyArrayObject* other = reinterpret_cast<PyArrayObject*>(args[i]);
    if (!PyArray_Check(args[i]) || dtype_of(other) != dtype || !PyArray_SAMESHAPE(x, other) || !is_readable(other)) return not_covered();
  }
  PyArrayObject* a = dense(args[0]);
  PyArrayObject* b = kernel.inputs == 2 ? dense(args[1]) : nullptr;
  PyArrayObject* out = new_array(dtype, ndim, PyArray_DIMS(x));
  const bool ready = a != nullptr && (kernel.inputs == 1 || b != nullptr) && out != nullptr;
  if (ready && PyArray_SIZE(out) > 0) {
    const npy_intp* shape = PyArray_DIMS(x);
    const int64_t length = ndim == 0 ? 1 : shape[axis];
    MaybeReleaseGil unlocked(double(PyArray_SIZE(out)) * softmax_ns(kernel.kind));
    softmax(dtype, kernel.kind, product_of(shape, int(axis)), length,
            ndim == 0 ? 1 : product_of(shape + axis + 1, ndim - int(axis) - 1), PyArray_DATA(a), b == nullptr ? nullptr : PyArray_DATA(b),
            PyArray_DATA(out));
  }
  Py_XDECREF(a);
  Py_XDECREF(b);
  if (!ready) Py_CLEAR(out);
  return reinterpret_cast<PyObject*>(out);
}

// What both directions share: the logits as rows, the labels as int64 with -1 for the rows that are left out.
struct Classes {
  PyArrayObject* x = nullptr;
  PyArrayObject* labels = nullptr;
  DType dtype = DType::other;
  int64_t rows = 0, classes = 0, kept = 0;
  LossReduction reduction = LossReduction::other;

  ~Classes() {
    Py_XDECREF(x);
    Py_XDECREF(labels);
  }
};

// args: x, targets, axis, label_smoothing, weight, ignore_index, reduction. Covered: labels along the last axis,
// neither smoothed nor weighted. 1 if they are ready, 0 if not covered, -1 with a Python error set.
int read_classes(PyObject* const* args, Classes& out) {
  if (!PyArray_Check(args[0]) || !PyArray_Check(args[1])) return 0;
  PyArrayObject* x = reinterpret_cast<PyArrayObject*>(args[0]);
  PyArrayObject* targets = reinterpret_cast<PyArrayObject*>(args[1]);
  const int ndim = PyArray_NDIM(x);
  if (!PyArray_ISINTEGER(targets) || ndim < 1 || read_axis(args[2], ndim) != ndim - 1 || PyArray_NDIM(targets) != ndim - 1) return 0;
  for (int axis = 0; axis < ndim - 1; ++axis)
    if (PyArray_DIM(x, axis) != PyArray_DIM(targets, axis)) return 0;
  const double smoothing = PyFloat_AsDouble(args[3]);
  const bool ignores = args[5] != Py_None;
  const long long ignored = ignores ? PyLong_AsLongLong(args[5]) : 0;
  out.reduction = read_reduction(args[6]);
  if (PyErr_Occurred()) {
    PyErr_Clear();
    return 0;
  }
  if (smoothing != 0 || args[4] != Py_None || out.reduction == LossReduction::other) return 0;
  out.dtype = dtype_of(x);
  out.classes = PyArray_DIM(x, ndim - 1);
  out.rows = product_of(PyArray_DIMS(x), ndim - 1);
  out.x = dense(args[0]);
  out.labels = reinterpret_cast<PyArrayObject*>(PyArray_FROM_OTF(args[1], NPY_INT64, NPY_ARRAY_C_CONTIGUOUS | NPY_ARRAY_ALIGNED | NPY_ARRAY_ENSURECOPY | NPY_ARRAY_FORCECAST));
  if (out.x == nullptr || out.labels == nullptr) return -1;
  int64_t* labels = static_cast<int64_t*>(PyArray_DATA(out.labels));
  for (int64_t r = 0; r < out.rows; ++r) {
    if (ignores && labels[r] == ignored) {
      labels[r] = -1;
      continue;
    }
    if (labels[r] < 0 || labels[r] >= out.classes) return 0;
    ++out.kept;
  }
  return 1;
}

// The mean runs over the rows that are not left out.
template <class T>
void store_total(const Classes& c, PyArrayObject* losses, PyArrayObject* total) {
  const T* from = static_cast<const T*>(PyArray_DATA(losses));
  double sum = 0;
  for (int64_t r = 0; r < c.rows; ++r) sum += double(from[r]);
  *static_cast<T*>(PyArray_DATA(total)) = T(c.reduction == LossReduction::mean ? sum / double(c.kept) : sum);
}

PyObject* call_cross_entropy(PyObject* self, PyObject* const* args, Py_ssize_t count) {
  if (count != 7 || !PyArray_Check(args[0])) return not_covered();
  if (!is_float(dtype_of(reinterpret_cast<PyArrayObject*>(args[0])))) return call_widened(call_cross_entropy, self, args, count);
  Classes c;
  const int ready = read_classes(args, c);
  if (ready < 1) return ready < 0 ? nullptr : not_covered();
  const int ndim = PyArray_NDIM(c.x) - 1;
  PyArrayObject* losses = new_array(c.dtype, ndim, PyArray_DIMS(c.x));
  if (losses == nullptr) return nullptr;
  const CrossEntropyTable& table = EXTENSOR_SELECT(cross_entropy_table)();
  const int64_t* labels = static_cast<const int64_t*>(PyArray_DATA(c.labels));
  {
    MaybeReleaseGil unlocked(double(c.rows) * double(c.classes));
    if (c.dtype == DType::float32)
      table.forward32(c.rows, c.classes, static_cast<const float*>(PyArray_DATA(c.x)), labels, static_cast<float*>(PyArray_DATA(losses)));
    else
      table.forward64(c.rows, c.classes, static_cast<const double*>(PyArray_DATA(c.x)), labels, static_cast<double*>(PyArray_DATA(losses)));
  }
  if (c.reduction == LossReduction::none) return reinterpret_cast<PyObject*>(losses);
  PyArrayObject* total = new_array(c.dtype, 0, nullptr);
  if (total != nullptr) {
    if (c.dtype == DType::float32) store_total<float>(c, losses, total);
    else store_total<double>(c, losses, total);
  }
  Py_DECREF(losses);
  return reinterpret_cast<PyObject*>(total);
}

template <class T>
void run_backward(const Classes& c, const T* upstream, PyArrayObject* out) {
  const CrossEntropyTable& table = EXTENSOR_SELECT(cross_entropy_table)();
  const int64_t* labels = static_cast<const int64_t*>(PyArray_DATA(c.labels));
  T each = upstream[0];
  int64_t step = 1;
  if (c.reduction != LossReduction::none) {
    if (c.reduction == LossReduction::mean) each = T(double(each) / double(c.kept));
    upstream = &each, step = 0;
  }
  const T* x = static_cast<const T*>(PyArray_DATA(c.x));
  T* to = static_cast<T*>(PyArray_DATA(out));
  if constexpr (sizeof(T) == 4) table.backward32(c.rows, c.classes, x, labels, upstream, step, to);
  else table.backward64(c.rows, c.classes, x, labels, upstream, step, to);
}

PyObject* call_cross_entropy_backward(PyObject* self, PyObject* const* args, Py_ssize_t count) {
  if (count != 8 || !PyArray_Check(args[0]) || !PyArray_Check(args[1])) return not_covered();
  const DType dtype = dtype_of(reinterpret_cast<PyArrayObject*>(args[1]));
  if (!is_float(dtype)) return call_widened(call_cross_entropy_backward, self, args, count);
  if (dtype_of(reinterpret_cast<PyArrayObject*>(args[0])) != dtype) return not_covered();
  Classes c;
  const int ready = read_classes(args + 1, c);
  if (ready < 1) return ready < 0 ? nullptr : not_covered();
  PyArrayObject* upstream = dense(args[0]);
  if (upstream == nullptr) return nullptr;
  const bool fits = PyArray_SIZE(upstream) == (c.reduction == LossReduction::none ? c.rows : 1);
  PyArrayObject* out = fits ? new_array(c.dtype, PyArray_NDIM(c.x), PyArray_DIMS(c.x)) : nullptr;
  if (out != nullptr && PyArray_SIZE(out) > 0) {
    MaybeReleaseGil unlocked(double(c.rows) * double(c.classes));
    if (dtype == DType::float32) run_backward(c, static_cast<const float*>(PyArray_DATA(upstream)), out);
    else run_backward(c, static_cast<const double*>(PyArray_DATA(upstream)), out);
  }
  Py_DECREF(upstream);
  return fits ? reinterpret_cast<PyObject*>(out) : not_covered();
}

}  // namespace

void bind_softmax(PyObject* kernels) {
  for (const SoftmaxKernel& kernel : softmax_kernels) add_kernel(kernels, kernel.name, call_softmax, &kernel);
  add_kernel(kernels, "cross_entropy", call_cross_entropy);
  add_kernel(kernels, "cross_entropy_backward", call_cross_entropy_backward);
}

}  // namespace extensor
