// Softmax, its logarithm and the cross-entropy of integer labels as Python functions.
#include "kernels/softmax/softmax.hpp"

#include <cstring>
#include <utility>

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
  PyArrayObject* x = count == kernel.inputs + 1 ? as_array(args[0]) : nullptr;
  if (x == nullptr) return not_covered();
  const DType dtype = dtype_of(x);
  if (!is_float(dtype) && !is_half(dtype)) return not_covered();
  const int ndim = PyArray_NDIM(x);
  const int axis = read_axis(args[count - 1], ndim == 0 ? 1 : ndim);
  if (axis < 0 || !is_readable(x)) return not_covered();
  if (is_half(dtype) && axis + 1 < ndim) return call_widened(call_softmax, self, args, count);  // columns are read again and again
  for (int i = 1; i < kernel.inputs; ++i) {
    PyArrayObject* other = as_array(args[i]);
    if (other == nullptr || dtype_of(other) != dtype || !PyArray_SAMESHAPE(x, other) || !is_readable(other)) return not_covered();
  }
  const Array a = dense(x), b = kernel.inputs == 2 ? dense(as_array(args[1])) : Array();
  Array out = make_array(dtype, ndim, PyArray_DIMS(x));
  if (PyArray_SIZE(out) > 0) {
    const npy_intp* shape = PyArray_DIMS(x);
    const int64_t length = ndim == 0 ? 1 : shape[axis];
    MaybeReleaseGil unlocked(double(PyArray_SIZE(out)) * softmax_ns(kernel.kind));
    softmax(dtype, kernel.kind, product_of(shape, axis), length, ndim == 0 ? 1 : product_of(shape + axis + 1, ndim - axis - 1),
            PyArray_DATA(a), data_of<void>(b), PyArray_DATA(out));
  }
  return out.release();
}

// What both directions share: the logits as rows, the labels as int64 with -1 for the rows that are left out.
struct Classes {
  Array x, labels;
  DType dtype = DType::other;
  int64_t rows = 0, classes = 0, kept = 0;
  LossReduction reduction = LossReduction::other;

  // args: x, targets, axis, label_smoothing, weight, ignore_index, reduction. Covered: labels along the last axis, neither
  // smoothed nor weighted.
  bool read(PyObject* const* args) {
    PyArrayObject *logits = as_array(args[0]), *targets = as_array(args[1]);
    if (logits == nullptr || targets == nullptr || !is_readable(logits) || !PyArray_ISINTEGER(targets)) return false;
    const int ndim = PyArray_NDIM(logits);
    if (ndim < 1 || read_axis(args[2], ndim) != ndim - 1 || !has_shape(targets, ndim - 1, PyArray_DIMS(logits))) return false;
    double smoothing;
    reduction = read_reduction(args[6]);
    if (!read_number(args[3], smoothing) || smoothing != 0 || args[4] != Py_None || reduction == LossReduction::other) return false;
    dtype = dtype_of(logits);
    classes = PyArray_DIM(logits, ndim - 1);
    rows = product_of(PyArray_DIMS(logits), ndim - 1);
    x = dense(logits);
    if (dtype_of(targets) == DType::int64 && PyArray_IS_C_CONTIGUOUS(targets) && is_readable(targets)) {
      labels = make_array(DType::int64, ndim - 1, PyArray_DIMS(targets));
      if (rows > 0) std::memcpy(PyArray_DATA(labels), PyArray_DATA(targets), sizeof(int64_t) * size_t(rows));
    } else {
      constexpr int copied = NPY_ARRAY_C_CONTIGUOUS | NPY_ARRAY_ALIGNED | NPY_ARRAY_ENSURECOPY | NPY_ARRAY_FORCECAST;
      labels = owned(reinterpret_cast<PyArrayObject*>(PyArray_FROM_OTF(args[1], NPY_INT64, copied)));
    }
    return leave_out(args[5]);
  }

 private:
  // The rows with this label, or none. False if another label is no class.
  bool leave_out(PyObject* label) {
    int overflow = 0;
    const bool ignores = label != Py_None;
    if (ignores && !PyLong_CheckExact(label)) return false;
    const int64_t ignored = ignores ? PyLong_AsLongLongAndOverflow(label, &overflow) : 0;
    int64_t* const found = data_of<int64_t>(labels);
    for (int64_t r = 0; r < rows; ++r) {
      if (ignores && overflow == 0 && found[r] == ignored) {
        found[r] = -1;
        continue;
      }
      if (found[r] < 0 || found[r] >= classes) return false;
      ++kept;
    }
    return true;
  }
};

// The mean runs over the rows that are not left out.
template <class T>
T total(const Classes& c, const T* losses) {
  double sum = 0;
  for (int64_t r = 0; r < c.rows; ++r) sum += double(losses[r]);
  return T(c.reduction == LossReduction::mean ? sum / double(c.kept) : sum);
}

PyObject* call_cross_entropy(PyObject*, PyObject* const* args, Py_ssize_t count) {
  PyArrayObject* x = count == 7 ? as_array(args[0]) : nullptr;
  if (x == nullptr) return not_covered();
  if (!is_float(dtype_of(x)) && !is_half(dtype_of(x))) return not_covered();
  Classes c;
  if (!c.read(args)) return not_covered();
  Array losses = make_array(computed_in(c.dtype), PyArray_NDIM(c.x) - 1, PyArray_DIMS(c.x)), out;
  with_type(computed_in(c.dtype), [&](auto zero) {
    using T = decltype(zero);
    {
      MaybeReleaseGil unlocked(double(c.rows) * double(c.classes));
      cross_entropy_functions<T>().forward(c.dtype, c.rows, c.classes, PyArray_DATA(c.x), data_of<int64_t>(c.labels), data_of<T>(losses));
    }
    if (c.reduction == LossReduction::none) return;
    out = make_array(computed_in(c.dtype), 0, nullptr);
    *data_of<T>(out) = total(c, data_of<const T>(losses));
  });
  return narrowed(std::move(c.reduction == LossReduction::none ? losses : out), c.dtype).release();
}

template <class T>
void run_backward(const Classes& c, const T* upstream, void* out) {
  const int64_t* labels = data_of<int64_t>(c.labels);
  T each = upstream[0];
  int64_t step = 1;
  if (c.reduction != LossReduction::none) {
    if (c.reduction == LossReduction::mean) each = T(double(each) / double(c.kept));
    upstream = &each, step = 0;
  }
  cross_entropy_functions<T>().backward(c.dtype, c.rows, c.classes, PyArray_DATA(c.x), labels, upstream, step, out);
}

PyObject* call_cross_entropy_backward(PyObject*, PyObject* const* args, Py_ssize_t count) {
  PyArrayObject *g = count == 8 ? as_array(args[0]) : nullptr, *x = count == 8 ? as_array(args[1]) : nullptr;
  if (g == nullptr || x == nullptr) return not_covered();
  const DType dtype = dtype_of(x);
  if (!is_float(dtype) && !is_half(dtype)) return not_covered();
  Classes c;
  if (dtype_of(g) != dtype || !is_readable(g) || !c.read(args + 1)) return not_covered();
  if (PyArray_SIZE(g) != (c.reduction == LossReduction::none ? c.rows : 1)) return not_covered();
  const Array given = dense(g), upstream = widened(given);
  Array out = make_array(c.dtype, PyArray_NDIM(c.x), PyArray_DIMS(c.x));
  if (PyArray_SIZE(out) > 0) {
    with_type(computed_in(dtype), [&](auto zero) {
      using T = decltype(zero);
      MaybeReleaseGil unlocked(double(c.rows) * double(c.classes));
      run_backward<T>(c, data_of<T>(upstream), PyArray_DATA(out));
    });
  }
  return out.release();
}

}  // namespace

void bind_softmax(PyObject* kernels) {
  for (const SoftmaxKernel& kernel : softmax_kernels) add_kernel(kernels, kernel.name, call_softmax, &kernel);
  add_kernel(kernels, "cross_entropy", call_cross_entropy);
  add_kernel(kernels, "cross_entropy_backward", call_cross_entropy_backward);
}

}  // namespace extensor
