// The steps of the most used optimisers over lists of parameters: one pass over memory for each parameter.
// Arguments and results are those of the reference kernels of the same names.
#include <cmath>

#include "bindings/elementwise.hpp"

namespace extensor {
namespace {

bool read_number(PyObject* value, double& number) {
  number = PyFloat_AsDouble(value);
  if (number != -1.0 || !PyErr_Occurred()) return true;
  PyErr_Clear();
  return false;
}

// Lists of equal length whose i-th entries are arrays of one shape and dtype; `optional` may hold None.
bool are_parallel(PyObject* const* lists, int count, PyObject* optional) {
  if (!PyList_CheckExact(lists[0])) return false;
  const Py_ssize_t length = PyList_GET_SIZE(lists[0]);
  for (int k = 0; k < count; ++k) {
    if (!PyList_CheckExact(lists[k]) || PyList_GET_SIZE(lists[k]) != length) return false;
    for (Py_ssize_t i = 0; i < length; ++i) {
      PyObject* entry = PyList_GET_ITEM(lists[k], i);
      if (entry == Py_None && lists[k] == optional) continue;
      if (!PyArray_Check(entry) || !PyArray_Check(PyList_GET_ITEM(lists[0], i))) return false;
      PyArrayObject* array = reinterpret_cast<PyArrayObject*>(entry);
      PyArrayObject* first = reinterpret_cast<PyArrayObject*>(PyList_GET_ITEM(lists[0], i));
      const DType dtype = dtype_of(array);
      if (dtype != dtype_of(first) || (dtype != DType::float32 && dtype != DType::float64) || !is_readable(array)) return false;
      if (PyArray_NDIM(array) != PyArray_NDIM(first) ||
          !PyArray_CompareLists(PyArray_DIMS(array), PyArray_DIMS(first), PyArray_NDIM(first))) {
        return false;
      }
    }
  }
  return true;
}

// New lists that are filled entry by entry and returned as a tuple.
class Results {
 public:
  Results(int count, Py_ssize_t length) : tuple_(PyTuple_New(count)) {
    for (int k = 0; k < count && tuple_ != nullptr; ++k) {
      PyObject* list = PyList_New(length);
      if (list == nullptr) Py_CLEAR(tuple_);
      else PyTuple_SET_ITEM(tuple_, k, list);
    }
  }
  ~Results() { Py_XDECREF(tuple_); }
  Results(const Results&) = delete;
  Results& operator=(const Results&) = delete;

  bool made() const { return tuple_ != nullptr; }
  // Takes over the reference.
  void put(int k, Py_ssize_t i, PyObject* value) { PyList_SET_ITEM(PyTuple_GET_ITEM(tuple_, k), i, value); }
  // Takes over what a kernel returned, one array or a tuple of arrays; false if it failed.
  bool put_all(Py_ssize_t i, PyObject* outputs) {
    if (outputs == nullptr || outputs == Py_NotImplemented) {
      Py_XDECREF(outputs);
      return false;
    }
    if (!PyTuple_CheckExact(outputs)) {
      put(0, i, outputs);
      return true;
    }
    for (Py_ssize_t k = 0; k < PyTuple_GET_SIZE(outputs); ++k) put(static_cast<int>(k), i, Py_NewRef(PyTuple_GET_ITEM(outputs, k)));
    Py_DECREF(outputs);
    return true;
  }
  PyObject* release() {
    PyObject* tuple = tuple_;
    tuple_ = nullptr;
    return tuple;
  }

 private:
  PyObject* tuple_;
};

// An error, or "not covered" if there is none.
PyObject* given_up() { return PyErr_Occurred() ? nullptr : not_covered(); }

// sgd_step(params, grads, buffers, lr, momentum, dampening, weight_decay, nesterov, maximize) -> params, buffers
PyObject* sgd_step(PyObject*, PyObject* const* args, Py_ssize_t count) {
  static const ElementwiseKernel& plain = *find_elementwise("sgd_update");
  static const ElementwiseKernel& first = *find_elementwise("sgd_first_velocity");
  static const ElementwiseKernel& later = *find_elementwise("sgd_velocity");
  double lr, momentum, dampening, decay, nesterov, maximize;
  if (count != 9 || !are_parallel(args, 3, args[2]) || !read_number(args[3], lr) || !read_number(args[4], momentum) ||
      !read_number(args[5], dampening) || !read_number(args[6], decay) || !read_number(args[7], nesterov) ||
      !read_number(args[8], maximize)) {
    return not_covered();
  }
  const double scalars[] = {lr, decay, maximize != 0 ? -1.0 : 1.0, momentum, nesterov, 1 - dampening};
  const Py_ssize_t length = PyList_GET_SIZE(args[0]);
  Results results(2, length);
  if (!results.made()) return nullptr;
  for (Py_ssize_t i = 0; i < length; ++i) {
    PyObject* const inputs[] = {PyList_GET_ITEM(args[0], i), PyList_GET_ITEM(args[1], i), PyList_GET_ITEM(args[2], i)};
    const ElementwiseKernel& kernel = momentum == 0 ? plain : inputs[2] == Py_None ? first : later;
    if (!results.put_all(i, run_elementwise(kernel, inputs, scalars))) return given_up();
    if (momentum == 0) results.put(1, i, Py_NewRef(inputs[2]));
  }
  return results.release();
}

// adam_step(params, grads, exp_avgs, exp_avg_sqs, max_exp_avg_sqs, steps, lr, beta1, beta2, eps, weight_decay, decoupled,
//           maximize) -> params, exp_avgs, exp_avg_sqs, max_exp_avg_sqs
PyObject* adam_step(PyObject*, PyObject* const* args, Py_ssize_t count) {
  static const ElementwiseKernel& update = *find_elementwise("adam_update");
  double lr, beta1, beta2, eps, decay, decoupled, maximize;
  if (count != 13 || args[4] != Py_None || !are_parallel(args, 4, nullptr) || !PyList_CheckExact(args[5]) ||
      PyList_GET_SIZE(args[5]) != PyList_GET_SIZE(args[0]) || !read_number(args[6], lr) || !read_number(args[7], beta1) ||
      !read_number(args[8], beta2) || !read_number(args[9], eps) || !read_number(args[10], decay) ||
      !read_number(args[11], decoupled) || !read_number(args[12], maximize)) {
    return not_covered();
  }
  const Py_ssize_t length = PyList_GET_SIZE(args[0]);
  Results results(3, length);
  if (!results.made()) return nullptr;
  for (Py_ssize_t i = 0; i < length; ++i) {
    double step;
    if (!read_number(PyList_GET_ITEM(args[5], i), step)) return not_covered();
    const double scalars[] = {lr / (1 - std::pow(beta1, step)),
                              std::sqrt(1 - std::pow(beta2, step)),
                              eps,
                              decoupled != 0 ? 0.0 : decay,
                              maximize != 0 ? -1.0 : 1.0,
                              decoupled != 0 ? 1 - lr * decay : 1.0,
                              beta1,
                              1 - beta1,
                              beta2,
                              1 - beta2};
    PyObject* inputs[4];
    for (int k = 0; k < 4; ++k) inputs[k] = PyList_GET_ITEM(args[k], i);
    if (!results.put_all(i, run_elementwise(update, inputs, scalars))) return given_up();
  }
  PyObject* lists = results.release();
  PyObject* tuple = PyTuple_Pack(4, PyTuple_GET_ITEM(lists, 0), PyTuple_GET_ITEM(lists, 1), PyTuple_GET_ITEM(lists, 2), Py_None);
  Py_DECREF(lists);
  return tuple;
}

}  // namespace

void bind_optim(PyObject* kernels) {
  add_kernel(kernels, "sgd_step", sgd_step);
  add_kernel(kernels, "adam_step", adam_step);
}

}  // namespace extensor
