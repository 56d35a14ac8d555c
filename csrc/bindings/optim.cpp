// The steps of the most used optimisers over lists of parameters: one pass over memory for each parameter.
// Arguments and results are those of the reference kernels of the same names.
#include <algorithm>
#include <cmath>

#include "bindings/optim.hpp"

#include "bindings/elementwise.hpp"
#include "bindings/parameter_lists.hpp"

namespace extensor {
namespace {

// The numbers of sgd_update and of the kernels with a velocity, from lr, momentum, dampening, weight_decay; nesterov, maximize.
struct SgdScalars {
  SgdScalars(const double* options, const bool* flags)
      : values{options[0], options[3], flags[1] ? -1.0 : 1.0, options[1], flags[0] ? 1.0 : 0.0, 1 - options[2]} {}
  double values[6];
};

// The numbers of adam_update, from lr, beta1, beta2, eps, weight_decay; decoupled, maximize; and the number of the step.
struct AdamScalars {
  AdamScalars(const double* options, const bool* flags, double step) {
    const double lr = options[0], beta1 = options[1], beta2 = options[2], eps = options[3], decay = options[4];
    const double found[] = {lr / (1 - std::pow(beta1, step)),
                            std::sqrt(1 - std::pow(beta2, step)),
                            eps,
                            flags[0] ? 0.0 : decay,
                            flags[1] ? -1.0 : 1.0,
                            flags[0] ? 1 - lr * decay : 1.0,
                            beta1,
                            1 - beta1,
                            beta2,
                            1 - beta2};
    for (int i = 0; i < 10; ++i) values[i] = found[i];
  }
  double values[10];
};

// sgd_step(params, grads, buffers, lr, momentum, dampening, weight_decay, nesterov, maximize) -> params, buffers
PyObject* sgd_step(PyObject*, PyObject* const* args, Py_ssize_t count) {
  static const ElementwiseKernel& plain = *find_elementwise("sgd_update");
  static const ElementwiseKernel& first = *find_elementwise("sgd_first_velocity");
  static const ElementwiseKernel& later = *find_elementwise("sgd_velocity");
  double options[4];
  bool flags[2];
  if (count != 9 || !are_parallel(args, 3, args[2]) || !read_numbers(args + 3, options) || !read_flag(args[7], flags[0]) ||
      !read_flag(args[8], flags[1]))
    return not_covered();
  const double momentum = options[1];
  const SgdScalars scalars(options, flags);
  const Py_ssize_t length = PyList_GET_SIZE(args[0]);
  Lists<2> found(length);
  for (Py_ssize_t i = 0; i < length; ++i) {
    PyObject* const inputs[] = {PyList_GET_ITEM(args[0], i), PyList_GET_ITEM(args[1], i), PyList_GET_ITEM(args[2], i)};
    const ElementwiseKernel& kernel = momentum == 0 ? plain : inputs[2] == Py_None ? first : later;
    if (!found.put_all(i, elementwise(kernel, inputs, scalars.values))) return not_covered();
    if (momentum == 0) found.put(1, i, shared(inputs[2]));
  }
  return PyTuple_Pack(2, found.lists[0].get(), found.lists[1].get());
}

// adam_step(params, grads, exp_avgs, exp_avg_sqs, max_exp_avg_sqs, steps, lr, beta1, beta2, eps, weight_decay, decoupled,
//           maximize) -> params, exp_avgs, exp_avg_sqs, max_exp_avg_sqs
PyObject* adam_step(PyObject*, PyObject* const* args, Py_ssize_t count) {
  static const ElementwiseKernel& update = *find_elementwise("adam_update");
  double options[5];
  bool flags[2];
  if (count != 13 || args[4] != Py_None || !are_parallel(args, 4, nullptr) || !PyList_CheckExact(args[5]) ||
      PyList_GET_SIZE(args[5]) != PyList_GET_SIZE(args[0]) || !read_numbers(args + 6, options) || !read_flag(args[11], flags[0]) ||
      !read_flag(args[12], flags[1]))
    return not_covered();
  const Py_ssize_t length = PyList_GET_SIZE(args[0]);
  Lists<3> found(length);
  for (Py_ssize_t i = 0; i < length; ++i) {
    double step;
    if (!read_number(PyList_GET_ITEM(args[5], i), step)) return not_covered();
    const AdamScalars scalars(options, flags, step);
    PyObject* inputs[4];
    for (int k = 0; k < 4; ++k) inputs[k] = PyList_GET_ITEM(args[k], i);
    if (!found.put_all(i, elementwise(update, inputs, scalars.values))) return not_covered();
  }
  return PyTuple_Pack(4, found.lists[0].get(), found.lists[1].get(), found.lists[2].get(), Py_None);
}

}  // namespace

StepInPlace::StepInPlace(PyObject* kernel, PyObject* tail) {
  const NativeKernel* native = native_kernel(kernel);
  const Py_ssize_t numbers = native == nullptr ? 0 : native->function == adam_step ? 5 : native->function == sgd_step ? 4 : 0;
  if (numbers == 0 || PyTuple_GET_SIZE(tail) != numbers + 2) return;
  for (Py_ssize_t i = 0; i < numbers; ++i)
    if (!read_number(PyTuple_GET_ITEM(tail, i), options_[i])) return;
  for (Py_ssize_t i = 0; i < 2; ++i)
    if (!read_flag(PyTuple_GET_ITEM(tail, numbers + i), flags_[i])) return;
  rule_ = numbers == 5 ? Rule::adam : options_[1] == 0 ? Rule::sgd : Rule::velocity;
}

const ElementwiseKernel& StepInPlace::kernel() const {
  static const ElementwiseKernel& plain = *find_elementwise("sgd_update");
  static const ElementwiseKernel& velocity = *find_elementwise("sgd_velocity");
  static const ElementwiseKernel& adam = *find_elementwise("adam_update");
  return rule_ == Rule::adam ? adam : rule_ == Rule::sgd ? plain : velocity;
}

bool StepInPlace::fits(PyArrayObject* const* arrays) const { return fits_in_place(kernel(), arrays); }

void StepInPlace::run(PyArrayObject* const* arrays, double step) {
  if (step != numbers_step_) {
    if (rule_ == Rule::adam) std::copy_n(AdamScalars(options_, flags_, step).values, 10, numbers_);
    else std::copy_n(SgdScalars(options_, flags_).values, 6, numbers_);
    numbers_step_ = step;
  }
  elementwise_in_place(kernel(), arrays, numbers_);
}

void bind_optim(PyObject* kernels) {
  add_kernel(kernels, "sgd_step", sgd_step);
  add_kernel(kernels, "adam_step", adam_step);
}

}  // namespace extensor
