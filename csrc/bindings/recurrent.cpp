// The LSTM over a sequence as Python functions.
#include "kernels/recurrent/recurrent.hpp"

#include "bindings/arguments.hpp"
#include "core/memory.hpp"

namespace extensor {
namespace {

// x, h, c, w_ih, w_hh, b_ih, b_hh, and for the backward hidden, g_hidden, g_c: dense, held until the call is over.
struct Operands {
  static constexpr int most = 10;
  PyArrayObject* arrays[most] = {};
  DType dtype = DType::other;

  ~Operands() {
    for (PyArrayObject* array : arrays) Py_XDECREF(array);
  }
  bool take(int index, PyObject* argument) {
    if (argument == Py_None) return index == 5 || index == 6;
    PyArrayObject* array = as_array(argument);
    if (array == nullptr || !is_readable(array) || PyArray_SIZE(array) == 0) return false;
    if (index == 0) dtype = dtype_of(array);
    if (!is_float(dtype) || dtype_of(array) != dtype) return false;
    arrays[index] = dense(argument);
    if (arrays[index] == nullptr) PyErr_Clear();
    return arrays[index] != nullptr;
  }
  template <class T>
  const T* data(int i) const {
    return arrays[i] == nullptr ? nullptr : static_cast<const T*>(PyArray_DATA(arrays[i]));
  }
};

// Working memory, given back when it goes out of scope.
template <class T>
class Workspace {
 public:
  explicit Workspace(int64_t count) : bytes_(size_t(count) * sizeof(T)), data_(static_cast<T*>(acquire_buffer(bytes_))) {}
  ~Workspace() {
    if (data_ != nullptr) recycle_buffer(data_, bytes_);
  }
  Workspace(const Workspace&) = delete;
  Workspace& operator=(const Workspace&) = delete;
  T* data() const { return data_; }

 private:
  size_t bytes_;
  T* data_;
};

template <class T>
Lstm<T> lstm_of(const Operands& o, T* bias, bool reverse) {
  const npy_intp* x = PyArray_DIMS(o.arrays[0]);
  const int64_t hidden = PyArray_DIM(o.arrays[1], 1);
  const T* b_ih = o.data<T>(5);
  const T* b_hh = o.data<T>(6);
  for (int64_t i = 0; i < 4 * hidden; ++i) bias[i] = (b_ih == nullptr ? T(0) : b_ih[i]) + (b_hh == nullptr ? T(0) : b_hh[i]);
  const bool biased = b_ih != nullptr || b_hh != nullptr;
  return {x[0], x[1], x[2], hidden, o.data<T>(0), o.data<T>(1), o.data<T>(2), o.data<T>(3), o.data<T>(4), biased ? bias : nullptr, reverse};
}

template <class T>
PyObject* run_forward(const Operands& o, bool reverse) {
  const npy_intp* x = PyArray_DIMS(o.arrays[0]);
  const npy_intp shape[] = {x[0], x[1], PyArray_DIM(o.arrays[1], 1)};
  const int64_t all = shape[0] * shape[1] * shape[2];
  Workspace<T> gates(4 * all), bias(4 * shape[2]);
  PyArrayObject* hidden = new_array(o.dtype, 3, shape);
  PyArrayObject* c = new_array(o.dtype, 2, shape + 1);
  if (hidden == nullptr || c == nullptr || gates.data() == nullptr || bias.data() == nullptr) {
    Py_XDECREF(hidden);
    Py_XDECREF(c);
    return PyErr_NoMemory();
  }
  {
    const Lstm<T> lstm = lstm_of(o, bias.data(), reverse);
    MaybeReleaseGil unlocked(double(all) * lstm_ns);
    lstm_functions<T>().forward(lstm, gates.data(), static_cast<T*>(PyArray_DATA(hidden)), static_cast<T*>(PyArray_DATA(c)));
  }
  return Py_BuildValue("(NN)", hidden, c);
}

// x, h, c, w_ih, w_hh, b_ih, b_hh, reverse
PyObject* call_lstm(PyObject*, PyObject* const* args, Py_ssize_t count) {
  Operands operands;
  if (count != 8) return not_covered();
  for (int i = 0; i < 7; ++i)
    if (!operands.take(i, args[i])) return not_covered();
  const bool reverse = args[7] == Py_True;
  return operands.dtype == DType::float32 ? run_forward<float>(operands, reverse) : run_forward<double>(operands, reverse);
}

template <class T>
PyObject* run_backward(const Operands& o, bool reverse, PyObject* needs) {
  const npy_intp* x = PyArray_DIMS(o.arrays[0]);
  const npy_intp width = PyArray_DIM(o.arrays[1], 1), wide = 4 * width;
  const int64_t units = x[1] * width, all = x[0] * units;
  Workspace<T> gates(4 * all), cells(all), carried(2 * units), bias(wide);
  PyObject* result = PyTuple_New(7);
  T* grads[7] = {};
  bool made = result != nullptr && gates.data() != nullptr && cells.data() != nullptr && carried.data() != nullptr && bias.data() != nullptr;
  for (int i = 0; made && i < 7; ++i) {
    if (PyTuple_GET_ITEM(needs, i) != Py_True) {
      PyTuple_SET_ITEM(result, i, Py_NewRef(Py_None));
      continue;
    }
    PyArrayObject* grad = i < 5 ? new_array(o.dtype, PyArray_NDIM(o.arrays[i]), PyArray_DIMS(o.arrays[i])) : new_array(o.dtype, 1, &wide);
    made = grad != nullptr;
    if (made) PyTuple_SET_ITEM(result, i, reinterpret_cast<PyObject*>(grad)), grads[i] = static_cast<T*>(PyArray_DATA(grad));
  }
  if (!made) {
    Py_XDECREF(result);
    return PyErr_NoMemory();
  }
  {
    const Lstm<T> lstm = lstm_of(o, bias.data(), reverse);
    T* const bias_grad = grads[5] != nullptr ? grads[5] : grads[6];
    MaybeReleaseGil unlocked(double(all) * lstm_ns * 3);
    lstm_functions<T>().backward(lstm, o.data<T>(7), o.data<T>(8), o.data<T>(9), gates.data(), cells.data(), carried.data(),
                                 {grads[0], grads[1], grads[2], grads[3], grads[4], bias_grad});
    if (grads[5] != nullptr && grads[6] != nullptr)  // the gradients of both biases are the same numbers
      for (int64_t i = 0; i < wide; ++i) grads[6][i] = grads[5][i];
  }
  return result;
}

// g_hidden, g_c, x, h, c, w_ih, w_hh, b_ih, b_hh, hidden, reverse, needs
PyObject* call_lstm_backward(PyObject*, PyObject* const* args, Py_ssize_t count) {
  Operands operands;
  if (count != 12 || !PyTuple_Check(args[11]) || PyTuple_GET_SIZE(args[11]) != 7) return not_covered();
  for (int i = 0; i < 7; ++i)
    if (!operands.take(i, args[i + 2])) return not_covered();
  if (!operands.take(7, args[9]) || !operands.take(8, args[0]) || !operands.take(9, args[1])) return not_covered();
  const bool reverse = args[10] == Py_True;
  return operands.dtype == DType::float32 ? run_backward<float>(operands, reverse, args[11]) : run_backward<double>(operands, reverse, args[11]);
}

}  // namespace

void bind_recurrent(PyObject* kernels) {
  add_kernel(kernels, "lstm_sequence", call_lstm);
  add_kernel(kernels, "lstm_sequence_backward", call_lstm_backward);
}

}  // namespace extensor
