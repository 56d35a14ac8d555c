// The steps of further optimisers over lists of parameters, beside those of optim.cpp: one pass over memory for each parameter.
// Arguments and results are those of the reference kernels of the same names; the numbers are computed in the same order.
#include <cmath>

#include "bindings/elementwise.hpp"
#include "bindings/parameter_lists.hpp"
#include "kernels/optim/norm.hpp"

namespace extensor {
namespace {

double sign_of(bool maximize) { return maximize ? -1.0 : 1.0; }

// A list of as many numbers as there are parameters.
bool read_steps(PyObject* list, PyObject* params, Py_ssize_t i, double& step) {
  return PyList_CheckExact(list) && PyList_GET_SIZE(list) == PyList_GET_SIZE(params) && read_number(PyList_GET_ITEM(list, i), step);
}

// kernel(the i-th entries of `lists`) for each i, the numbers by scalars(i, to); its results in as many lists, false if one is not covered.
template <int inputs, int outputs, class Scalars>
bool each_parameter(const ElementwiseKernel& kernel, PyObject* const* lists, Lists<outputs>& found, const Scalars& scalars) {
  const Py_ssize_t length = PyList_GET_SIZE(lists[0]);
  for (Py_ssize_t i = 0; i < length; ++i) {
    double numbers[max_elementwise_scalars];
    PyObject* arrays[inputs];
    for (int k = 0; k < inputs; ++k) arrays[k] = PyList_GET_ITEM(lists[k], i);
    if (!scalars(i, numbers) || !found.put_all(i, elementwise(kernel, arrays, numbers))) return false;
  }
  return true;
}

template <int count>
void set(double* to, const double (&from)[count]) {
  static_assert(count <= max_elementwise_scalars);
  for (int i = 0; i < count; ++i) to[i] = from[i];
}

// rmsprop_step(params, grads, square_avgs, grad_avgs, buffers, lr, alpha, eps, weight_decay, momentum, maximize)
//   -> params, square_avgs, grad_avgs, buffers
PyObject* rmsprop_step(PyObject*, PyObject* const* args, Py_ssize_t count) {
  static const ElementwiseKernel& plain = *find_elementwise("rmsprop_update");
  static const ElementwiseKernel& with_velocity = *find_elementwise("rmsprop_velocity");
  static const ElementwiseKernel& centred = *find_elementwise("rmsprop_centred");
  double o[5];
  bool maximize;
  if (count != 11 || !read_numbers(args + 5, o) || !read_flag(args[10], maximize)) return not_covered();
  PyObject *means = args[3], *velocities = args[4];
  if (means != Py_None && velocities != Py_None) return not_covered();  // more arrays than a formula takes
  PyObject* const lists[] = {args[0], args[1], args[2], means != Py_None ? means : velocities};
  const bool is_plain = lists[3] == Py_None;
  if (!are_parallel(lists, is_plain ? 3 : 4, nullptr)) return not_covered();
  const auto scalars = [&](Py_ssize_t, double* to) {
    set(to, {o[0], o[2], o[3], sign_of(maximize), o[1], 1 - o[1], o[4]});
    return true;
  };
  const Py_ssize_t length = PyList_GET_SIZE(args[0]);
  if (is_plain) {
    Lists<2> found(length);
    if (!each_parameter<3>(plain, lists, found, scalars)) return not_covered();
    return PyTuple_Pack(4, found.lists[0].get(), found.lists[1].get(), Py_None, Py_None);
  }
  Lists<3> found(length);
  if (!each_parameter<4>(means != Py_None ? centred : with_velocity, lists, found, scalars)) return not_covered();
  PyObject* third = found.lists[2].get();
  return PyTuple_Pack(4, found.lists[0].get(), found.lists[1].get(), means != Py_None ? third : Py_None, means != Py_None ? Py_None : third);
}

// adagrad_step(params, grads, sums, steps, lr, lr_decay, eps, weight_decay, maximize) -> params, sums
PyObject* adagrad_step(PyObject*, PyObject* const* args, Py_ssize_t count) {
  static const ElementwiseKernel& update = *find_elementwise("adagrad_update");
  double o[4];
  bool maximize;
  if (count != 9 || !are_parallel(args, 3, nullptr) || !read_numbers(args + 4, o) || !read_flag(args[8], maximize)) return not_covered();
  Lists<2> found(PyList_GET_SIZE(args[0]));
  const auto scalars = [&](Py_ssize_t i, double* to) {
    double step;
    if (!read_steps(args[3], args[0], i, step)) return false;
    set(to, {o[0] / (1 + (step - 1) * o[1]), o[2], o[3], sign_of(maximize)});
    return true;
  };
  if (!each_parameter<3>(update, args, found, scalars)) return not_covered();
  return PyTuple_Pack(2, found.lists[0].get(), found.lists[1].get());
}

// lion_step(params, grads, exp_avgs, lr, beta1, beta2, weight_decay, maximize) -> params, exp_avgs
PyObject* lion_step(PyObject*, PyObject* const* args, Py_ssize_t count) {
  static const ElementwiseKernel& update = *find_elementwise("lion_update");
  double o[4];
  bool maximize;
  if (count != 8 || !are_parallel(args, 3, nullptr) || !read_numbers(args + 3, o) || !read_flag(args[7], maximize)) return not_covered();
  Lists<2> found(PyList_GET_SIZE(args[0]));
  const auto scalars = [&](Py_ssize_t, double* to) {
    set(to, {o[0], o[3], sign_of(maximize), o[1], 1 - o[1], o[2], 1 - o[2]});
    return true;
  };
  if (!each_parameter<3>(update, args, found, scalars)) return not_covered();
  return PyTuple_Pack(2, found.lists[0].get(), found.lists[1].get());
}

double norm_of(PyObject* object) {
  const Array array = dense(reinterpret_cast<PyArrayObject*>(object));
  MaybeReleaseGil unlocked(double(PyArray_SIZE(array)) * 0.2);
  return std::sqrt(sum_of_squares(dtype_of(array), PyArray_DATA(array), PyArray_SIZE(array)));
}

// lamb_step(params, grads, exp_avgs, exp_avg_sqs, steps, lr, beta1, beta2, eps, weight_decay, maximize) -> params, exp_avgs, exp_avg_sqs
PyObject* lamb_step(PyObject*, PyObject* const* args, Py_ssize_t count) {
  static const ElementwiseKernel& direction = *find_elementwise("lamb_direction");
  static const ElementwiseKernel& update = *find_elementwise("lamb_update");
  double o[5];
  bool maximize;
  if (count != 11 || !are_parallel(args, 4, nullptr) || !read_numbers(args + 5, o) || !read_flag(args[10], maximize)) return not_covered();
  const Py_ssize_t length = PyList_GET_SIZE(args[0]);
  Lists<3> found(length);
  const auto scalars = [&](Py_ssize_t i, double* to) {
    double step;
    if (!read_steps(args[4], args[0], i, step)) return false;
    set(to, {1 - std::pow(o[1], step), 1 - std::pow(o[2], step), o[3], o[4], sign_of(maximize), o[1], 1 - o[1], o[2], 1 - o[2]});
    return true;
  };
  if (!each_parameter<4>(direction, args, found, scalars)) return not_covered();
  Lists<1> moved(length);
  for (Py_ssize_t i = 0; i < length; ++i) {
    PyObject* const inputs[] = {PyList_GET_ITEM(args[0], i), PyList_GET_ITEM(found.lists[0].get(), i)};
    const double size = norm_of(inputs[0]), stride = norm_of(inputs[1]);
    const double rate[] = {o[0] * (size != 0 && stride != 0 ? size / stride : 1.0)};
    if (!moved.put_all(i, elementwise(update, inputs, rate))) return not_covered();
  }
  return PyTuple_Pack(3, moved.lists[0].get(), found.lists[1].get(), found.lists[2].get());
}

// What the kin of Adam have in common, from lr, beta1, beta2, eps, weight_decay; decoupled, maximize.
struct Kin {
  Kin(const double* o, bool decoupled, bool maximize)
      : numbers{o[0], o[3], decoupled ? 0.0 : o[4], sign_of(maximize), decoupled ? 1 - o[0] * o[4] : 1.0, o[1], 1 - o[1], o[2], 1 - o[2]} {}
  // Those, then `more`.
  template <int count>
  void put(double* to, const double (&more)[count]) const {
    set(to, numbers);
    set(to + 9, more);
  }
  double numbers[9];
};

// nadam_step(params, grads, exp_avgs, exp_avg_sqs, mu_products, steps, lr, beta1, beta2, eps, weight_decay, momentum_decay, decoupled,
//            maximize) -> params, exp_avgs, exp_avg_sqs, mu_products
PyObject* nadam_step(PyObject*, PyObject* const* args, Py_ssize_t count) {
  static const ElementwiseKernel& update = *find_elementwise("nadam_update");
  double o[6];
  bool decoupled, maximize;
  if (count != 14 || !are_parallel(args, 4, nullptr) || !read_numbers(args + 6, o) || !read_flag(args[12], decoupled) || !read_flag(args[13], maximize))
    return not_covered();
  const Py_ssize_t length = PyList_GET_SIZE(args[0]);
  Lists<3> found(length);
  Ref<> products = owned(PyList_New(length));
  const Kin kin(o, decoupled, maximize);
  const auto scalars = [&](Py_ssize_t i, double* to) {
    double step, product;
    if (!read_steps(args[5], args[0], i, step) || !read_steps(args[4], args[0], i, product)) return false;
    const double momentum = o[1] * (1 - 0.5 * std::pow(0.96, step * o[5])), after = o[1] * (1 - 0.5 * std::pow(0.96, (step + 1) * o[5]));
    product *= momentum;
    PyList_SET_ITEM(products.get(), i, owned(PyFloat_FromDouble(product)).release());
    kin.put(to, {1 - std::pow(o[2], step), (1 - momentum) / (1 - product), after / (1 - product * after)});
    return true;
  };
  if (!each_parameter<4>(update, args, found, scalars)) return not_covered();
  return PyTuple_Pack(4, found.lists[0].get(), found.lists[1].get(), found.lists[2].get(), products.get());
}

// radam_step(params, grads, exp_avgs, exp_avg_sqs, steps, lr, beta1, beta2, eps, weight_decay, decoupled, maximize)
//   -> params, exp_avgs, exp_avg_sqs
PyObject* radam_step(PyObject*, PyObject* const* args, Py_ssize_t count) {
  static const ElementwiseKernel& update = *find_elementwise("radam_update");
  double o[5];
  bool decoupled, maximize;
  if (count != 12 || !are_parallel(args, 4, nullptr) || !read_numbers(args + 5, o) || !read_flag(args[10], decoupled) || !read_flag(args[11], maximize))
    return not_covered();
  Lists<3> found(PyList_GET_SIZE(args[0]));
  const Kin kin(o, decoupled, maximize);
  const double longest = 2 / (1 - o[2]) - 1;
  const auto scalars = [&](Py_ssize_t i, double* to) {
    double step;
    if (!read_steps(args[4], args[0], i, step)) return false;
    const double power = std::pow(o[2], step), correction = 1 - power, length = longest - 2 * step * power / correction;
    const double share = (length - 4) * (length - 2) * longest / ((longest - 4) * (longest - 2) * length);
    kin.put(to, {1 - std::pow(o[1], step), length > 5 ? std::sqrt(share * correction) : 0.0});
    return true;
  };
  if (!each_parameter<4>(update, args, found, scalars)) return not_covered();
  return PyTuple_Pack(3, found.lists[0].get(), found.lists[1].get(), found.lists[2].get());
}

// adadelta_step(params, grads, square_avgs, acc_deltas, lr, rho, eps, weight_decay, maximize) -> params, square_avgs, acc_deltas
PyObject* adadelta_step(PyObject*, PyObject* const* args, Py_ssize_t count) {
  static const ElementwiseKernel& update = *find_elementwise("adadelta_update");
  double o[4];
  bool maximize;
  if (count != 9 || !are_parallel(args, 4, nullptr) || !read_numbers(args + 4, o) || !read_flag(args[8], maximize)) return not_covered();
  Lists<3> found(PyList_GET_SIZE(args[0]));
  const auto scalars = [&](Py_ssize_t, double* to) {
    set(to, {o[0], o[2], o[3], sign_of(maximize), o[1], 1 - o[1]});
    return true;
  };
  if (!each_parameter<4>(update, args, found, scalars)) return not_covered();
  return PyTuple_Pack(3, found.lists[0].get(), found.lists[1].get(), found.lists[2].get());
}

}  // namespace

void bind_optim_adaptive(PyObject* kernels) {
  add_kernel(kernels, "rmsprop_step", rmsprop_step);
  add_kernel(kernels, "adagrad_step", adagrad_step);
  add_kernel(kernels, "lion_step", lion_step);
  add_kernel(kernels, "lamb_step", lamb_step);
  add_kernel(kernels, "nadam_step", nadam_step);
  add_kernel(kernels, "radam_step", radam_step);
  add_kernel(kernels, "adadelta_step", adadelta_step);
}

}  // namespace extensor
