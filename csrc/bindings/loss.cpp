// Losses of single elements as Python functions: loss(p, t, *options, reduction), loss_backward(g, p, t, *options,
// reduction). Covered: contiguous predictions and targets of one shape and dtype, without weights.
#include <utility>

#include "bindings/half.hpp"
#include "bindings/operands.hpp"
#include "kernels/loss/pointwise.hpp"

namespace extensor {
namespace {

constexpr int most_scalars = 3;

// The numbers of the formula from the options of a call; false if they are not covered.
using OptionReader = bool (*)(PyObject* const* options, double* scalars);

bool no_options(PyObject* const*, double*) { return true; }
bool no_weight(PyObject* const* options, double*) { return options[0] == Py_None; }
bool no_weights(PyObject* const* options, double*) { return options[0] == Py_None && options[1] == Py_None; }
bool one_width(PyObject* const* options, double* scalars) {
  return read_number(options[0], scalars[0]) && scalars[0] > 0;
}
// alpha, or None for no balance, and gamma.
bool focal_options(PyObject* const* options, double* scalars) {
  const bool balanced = options[0] != Py_None;
  scalars[0] = 1;
  if ((balanced && !read_number(options[0], scalars[0])) || !read_number(options[1], scalars[2])) return false;
  scalars[1] = balanced ? 1 - scalars[0] : 1;
  return scalars[0] >= 0 && scalars[0] <= 1 && scalars[2] >= 0;
}

struct LossKernel {
  const char *forward, *backward;
  int options;
  OptionReader read;
  Domain predictions, targets;
};
constexpr LossKernel loss_kernels[] = {
    {"mean_squared_error", "mean_squared_error_backward", 0, no_options, Domain::all, Domain::all},
    {"mean_absolute_error", "mean_absolute_error_backward", 0, no_options, Domain::all, Domain::all},
    {"smooth_l1", "smooth_l1_backward", 1, one_width, Domain::all, Domain::all},
    {"huber", "huber_backward", 1, one_width, Domain::all, Domain::all},
    {"binary_cross_entropy", "binary_cross_entropy_backward", 1, no_weight, Domain::probabilities, Domain::probabilities},
    {"binary_cross_entropy_with_logits", "binary_cross_entropy_with_logits_backward", 2, no_weights, Domain::all, Domain::all},
    {"focal", "focal_backward", 2, focal_options, Domain::all, Domain::probabilities},
    {"hinge", "hinge_backward", 0, no_options, Domain::all, Domain::signs},
};

// One direction of a loss.
struct LossFunction {
  const LossKernel* kernel;
  const ElementwiseKernel* formula;
};

bool is_plain(PyObject* argument, DType dtype) {
  PyArrayObject* array = as_array(argument);
  return array != nullptr && dtype_of(array) == dtype && PyArray_IS_C_CONTIGUOUS(array) && is_readable(array);
}

// Whether an array among the arguments does not lie in one piece.
bool is_scattered(PyObject* const* args, Py_ssize_t count) {
  for (Py_ssize_t i = 0; i < count; ++i) {
    PyArrayObject* array = as_array(args[i]);
    if (array != nullptr && !is_plain(args[i], dtype_of(array))) return true;
  }
  return false;
}

// The two inputs that every loss has, the last of its formula. False if they are not covered.
bool take_pair(PyObject* predictions, PyObject* targets, DType dtype, const ElementwiseKernel* formula, PointwiseLoss& loss) {
  if (!is_plain(predictions, dtype) || !is_plain(targets, dtype)) return false;
  PyArrayObject* p = as_array(predictions);
  PyArrayObject* t = as_array(targets);
  if (!PyArray_SAMESHAPE(p, t)) return false;
  loss.formula = formula;
  loss.size = PyArray_SIZE(p);
  loss.in[formula->inputs - 2] = PyArray_DATA(p);
  loss.in[formula->inputs - 1] = PyArray_DATA(t);
  for (int64_t& step : loss.steps) step = 1;
  loss.stored = dtype;
  return true;
}

double work_ns(const PointwiseLoss& loss) { return double(loss.size) * loss.formula->cost_ns; }

// A new array of the shape of `like`, or NotImplemented if an element lies outside its domain.
Ref<> written(const PointwiseLoss& loss, DType dtype, PyArrayObject* like) {
  Array out = make_array(dtype, PyArray_NDIM(like), PyArray_DIMS(like));
  const PointwiseTable& table = EXTENSOR_SELECT(pointwise_table)();
  bool inside;
  {
    MaybeReleaseGil unlocked(work_ns(loss));
    inside = (dtype == DType::float64 ? table.write64 : table.write32)(loss, PyArray_DATA(out));
  }
  return owned(inside ? out.release() : not_covered());
}

// The sum divided by `count`.
PyObject* added_up(const PointwiseLoss& loss, DType dtype, double count) {
  const PointwiseTable& table = EXTENSOR_SELECT(pointwise_table)();
  double total;
  bool inside;
  {
    MaybeReleaseGil unlocked(work_ns(loss));
    inside = (dtype == DType::float64 ? table.total64 : table.total32)(loss, total);
  }
  if (!inside) return not_covered();
  Array out = make_array(computed_in(dtype), 0, nullptr);
  with_type(computed_in(dtype), [&](auto zero) { *data_of<decltype(zero)>(out) = decltype(zero)(total / count); });
  return narrowed(std::move(out), dtype).release();
}

// What arrives at each single loss: a gradient per loss as it lies, or one divided by `count` for all.
class Upstream {
 public:
  // False if it is not covered: another dtype or shape.
  bool read(PyObject* gradient, DType dtype, LossReduction reduction, double count, PyArrayObject* like, PointwiseLoss& loss) {
    if (!is_plain(gradient, dtype)) return false;
    PyArrayObject* g = as_array(gradient);
    loss.in[0] = PyArray_DATA(g);
    if (reduction == LossReduction::none) return PyArray_SAMESHAPE(g, like);
    if (PyArray_NDIM(g) != 0) return false;
    loss.steps[0] = 0;
    held_ = widened(g);
    loss.in[0] = PyArray_DATA(held_);
    if (reduction == LossReduction::sum) return true;
    if (dtype != DType::float64) {
      single_ = *static_cast<const float*>(loss.in[0]) / float(count);
      loss.in[0] = &single_;
    } else {
      double_ = *static_cast<const double*>(loss.in[0]) / count;
      loss.in[0] = &double_;
    }
    return true;
  }

 private:
  Array held_;
  float single_;
  double double_;
};

PyObject* call_loss(PyObject* self, PyObject* const* args, Py_ssize_t count) {
  const LossFunction& function = *kernel_context<LossFunction>(self);
  const LossKernel& kernel = *function.kernel;
  if (count != 3 + kernel.options || !PyArray_Check(args[0])) return not_covered();
  PyArrayObject* p = as_array(args[0]);
  const DType dtype = dtype_of(p);
  if (!is_float(dtype) && !is_half(dtype)) return not_covered();
  if (is_half(dtype) && is_scattered(args, count)) return call_widened(call_loss, self, args, count);
  double scalars[most_scalars];
  PointwiseLoss loss;
  const LossReduction reduction = read_reduction(args[count - 1]);
  if (!take_pair(args[0], args[1], dtype, function.formula, loss) || !kernel.read(args + 2, scalars) ||
      reduction == LossReduction::other)
    return not_covered();
  loss.predictions = kernel.predictions, loss.targets = kernel.targets, loss.scalars = scalars;
  if (reduction == LossReduction::none) return written(loss, dtype, p).release();
  return added_up(loss, dtype, reduction == LossReduction::mean ? double(loss.size) : 1);
}

PyObject* call_loss_backward(PyObject* self, PyObject* const* args, Py_ssize_t count) {
  const LossFunction& function = *kernel_context<LossFunction>(self);
  const LossKernel& kernel = *function.kernel;
  if (count != 4 + kernel.options || !PyArray_Check(args[1])) return not_covered();
  PyArrayObject* p = as_array(args[1]);
  const DType dtype = dtype_of(p);
  if (!is_float(dtype) && !is_half(dtype)) return not_covered();
  if (is_half(dtype) && is_scattered(args, count)) return call_widened(call_loss_backward, self, args, count);
  double scalars[most_scalars];
  PointwiseLoss loss;
  Upstream upstream;
  const LossReduction reduction = read_reduction(args[count - 1]);
  if (!take_pair(args[1], args[2], dtype, function.formula, loss) || !kernel.read(args + 3, scalars) ||
      reduction == LossReduction::other || !upstream.read(args[0], dtype, reduction, double(loss.size), p, loss))
    return not_covered();
  loss.predictions = kernel.predictions, loss.targets = kernel.targets, loss.scalars = scalars;
  return written(loss, dtype, p).release();
}

// kl_divergence(p, q, axis, reduction) of distributions along the last axis, added up.
PyObject* call_divergence(PyObject* self, PyObject* const* args, Py_ssize_t count) {
  if (count != 4 || !PyArray_Check(args[0])) return not_covered();
  PyArrayObject* p = as_array(args[0]);
  const DType dtype = dtype_of(p);
  if (!is_float(dtype) && !is_half(dtype)) return not_covered();
  if (is_half(dtype) && is_scattered(args, count)) return call_widened(call_divergence, self, args, count);
  static const ElementwiseKernel* const formula = find_elementwise("kl_divergence");
  const int ndim = PyArray_NDIM(p);
  const LossReduction reduction = read_reduction(args[3]);
  PointwiseLoss loss;
  if (!take_pair(args[0], args[1], dtype, formula, loss) || read_axis(args[2], ndim) != ndim - 1 ||
      (reduction != LossReduction::mean && reduction != LossReduction::sum))
    return not_covered();
  loss.predictions = loss.targets = Domain::not_negative, loss.scalars = nullptr;
  return added_up(loss, dtype, reduction == LossReduction::mean ? double(product_of(PyArray_DIMS(p), ndim - 1)) : 1);
}

// kl_divergence_backward(g, p, q, axis, reduction, needs) -> (grad_p, grad_q), None where not needed.
PyObject* call_divergence_backward(PyObject* self, PyObject* const* args, Py_ssize_t count) {
  if (count != 6 || !PyArray_Check(args[1])) return not_covered();
  PyArrayObject* p = as_array(args[1]);
  const DType dtype = dtype_of(p);
  if (!is_float(dtype) && !is_half(dtype)) return not_covered();
  if (is_half(dtype) && is_scattered(args, count)) return call_widened(call_divergence_backward, self, args, count);
  static const ElementwiseKernel* const formulas[] = {find_elementwise("kl_divergence_backward_p"),
                                                      find_elementwise("kl_divergence_backward_q")};
  const int ndim = PyArray_NDIM(p);
  const LossReduction reduction = read_reduction(args[4]);
  if (read_axis(args[3], ndim) != ndim - 1 || (reduction != LossReduction::mean && reduction != LossReduction::sum))
    return not_covered();
  bool needs[2];
  if (!read_flags(args[5], needs, 2)) return not_covered();
  return pair_of_gradients([&](int i) {
    PointwiseLoss loss;
    Upstream upstream;
    if (!needs[i]) return shared(Py_None);
    if (!take_pair(args[1], args[2], dtype, formulas[i], loss) ||
        !upstream.read(args[0], dtype, reduction, double(product_of(PyArray_DIMS(p), ndim - 1)), p, loss))
      return owned(not_covered());
    loss.predictions = loss.targets = Domain::not_negative, loss.scalars = nullptr;
    return written(loss, dtype, p);
  });
}

}  // namespace

void bind_loss(PyObject* kernels) {
  for (const LossKernel& kernel : loss_kernels) {
    add_kernel(kernels, kernel.forward, call_loss, new LossFunction{&kernel, find_elementwise(kernel.forward)});
    add_kernel(kernels, kernel.backward, call_loss_backward, new LossFunction{&kernel, find_elementwise(kernel.backward)});
  }
  add_kernel(kernels, "kl_divergence", call_divergence);
  add_kernel(kernels, "kl_divergence_backward", call_divergence_backward);
}

}  // namespace extensor
