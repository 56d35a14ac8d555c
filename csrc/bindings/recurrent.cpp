// Recurrent cells and sequences as Python functions. A cell is a sequence of one step.
#include "kernels/recurrent/recurrent.hpp"

#include "bindings/half.hpp"
#include "bindings/operands.hpp"
#include "core/memory.hpp"

namespace extensor {
namespace {

enum Operand { x_, h_, c_, w_ih_, w_hh_, b_ih_, b_hh_, hidden_, cells_, gates_, g_hidden_, g_cells_, operand_count };

// Working memory, given back when it goes out of scope.
class Scratch {
 public:
  explicit Scratch(int64_t bytes) : bytes_(size_t(bytes)), data_(acquire_buffer(bytes_)) {}
  ~Scratch() {
    if (data_ != nullptr) recycle_buffer(data_, bytes_);
  }
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;
  template <class T>
  T* data() const {
    return static_cast<T*>(data_);
  }

 private:
  size_t bytes_;
  void* data_;
};

// The arguments of a call. x is [steps, batch, inputs], or of one step [batch, inputs] or [inputs].
class Call {
 public:
  explicit Call(int gates) : gates_per_unit(gates) {}

  // Takes the arguments in this order. False if one is not covered or x, h, w_ih or w_hh has no elements. A sequence of the
  // LSTM may be without w_ih.
  bool take(std::initializer_list<Operand> order, PyObject* const* args) {
    for (Operand operand : order) {
      if (operand == x_ && PyArray_Check(*args)) dtype = dtype_of(reinterpret_cast<PyArrayObject*>(*args));
      ++args;
    }
    args -= order.size();
    if (!is_float(dtype)) return false;
    for (Operand operand : order)
      if (!operands.take(operand, *args++, dtype)) return false;
    for (Operand operand : {x_, h_, w_hh_})
      if (operands.array(operand) == nullptr || PyArray_SIZE(operands.array(operand)) == 0) return false;
    PyArrayObject* x = operands.array(x_);
    PyArrayObject* w_ih = operands.array(w_ih_);
    const int ndim = PyArray_NDIM(x);
    if (w_ih == nullptr ? gates_per_unit != 4 || ndim != 3 : PyArray_SIZE(w_ih) == 0) return false;
    steps = ndim == 3 ? PyArray_DIM(x, 0) : 1;
    batch = ndim == 1 ? 1 : PyArray_DIM(x, ndim - 2);
    inputs = PyArray_DIM(x, ndim - 1);
    hidden = PyArray_DIM(operands.array(w_hh_), 1);
    return ndim <= 3;
  }

  template <class T>
  Sequence<T> sequence() const {
    return {steps, batch, inputs, hidden, gates_per_unit, data<T>(x_), data<T>(h_), data<T>(w_ih_), data<T>(w_hh_), data<T>(b_ih_),
            data<T>(b_hh_), reverse};
  }
  template <class T>
  const T* data(Operand operand) const {
    return operands.data<T>(operand);
  }

  // A new array like h, for every step if x has steps.
  PyArrayObject* new_states(int64_t wider = 1) const {
    const npy_intp shape[] = {steps, batch, hidden * wider};
    if (PyArray_NDIM(operands.array(x_)) == 3) return new_array(dtype, 3, shape);
    return new_array(dtype, PyArray_NDIM(operands.array(h_)), PyArray_DIMS(operands.array(h_)));
  }

  // Bytes of `wider` states of every step.
  int64_t bytes_of_states(int64_t wider) const { return steps * batch * hidden * wider * (dtype == DType::float32 ? 4 : 8); }

  // Calls run(T()) without the interpreter lock.
  template <class Run>
  bool unlocked(const Run& run) const {
    MaybeReleaseGil unlocked(sequence_ns(sequence<float>()));
    return dtype == DType::float32 ? run(0.0f) : run(0.0);
  }

  const int gates_per_unit;
  Operands<operand_count> operands;
  DType dtype = DType::other;
  int64_t steps = 0, batch = 0, inputs = 0, hidden = 0;
  bool reverse = false;
};

PyObject* result_or_no_memory(PyArrayObject* const* arrays, Py_ssize_t count, bool made) {
  PyObject* tuple = results(arrays, count, made);
  return tuple == nullptr && !PyErr_Occurred() ? PyErr_NoMemory() : tuple;
}

// An only result stands for itself.
PyObject* result_or_no_memory(PyArrayObject* array, bool made) {
  if (made) return reinterpret_cast<PyObject*>(array);
  Py_XDECREF(array);
  return PyErr_Occurred() ? nullptr : PyErr_NoMemory();
}

// The gradients that are wanted: x, h, (c), w_ih, w_hh, b_ih, b_hh.
class Gradients {
 public:
  Gradients(const Call& call, PyObject* needs, bool has_c) : count_(has_c ? 7 : 6) {
    bool wanted[7];
    readable = read_flags(needs, wanted, count_);
    if (!readable) return;
    int i = 0;
    for (Operand operand : {x_, h_, c_, w_ih_, w_hh_, b_ih_, b_hh_}) {
      if (operand == c_ && !has_c) continue;
      place_[operand] = i;
      const npy_intp rows = call.gates_per_unit * call.hidden;
      PyArrayObject* like = operand < b_ih_ ? call.operands.array(operand) : nullptr;
      if (wanted[i]) arrays_[i] = like != nullptr ? new_array(call.dtype, PyArray_NDIM(like), PyArray_DIMS(like)) : new_array(call.dtype, 1, &rows);
      made = made && (arrays_[i] != nullptr) == wanted[i];
      ++i;
    }
  }
  template <class T>
  T* data(Operand operand) const {
    return data_of<T>(arrays_[place_[operand]]);
  }
  template <class T>
  SequenceGradients<T> all() const {
    return {data<T>(x_), data<T>(h_), data<T>(w_ih_), data<T>(w_hh_), data<T>(b_ih_), data<T>(b_hh_)};
  }
  PyObject* finished(bool computed) { return result_or_no_memory(arrays_, count_, computed); }

  bool readable = false, made = true;

 private:
  int count_;
  int place_[operand_count] = {};
  PyArrayObject* arrays_[7] = {};
};

bool is_relu(PyObject* name) { return PyUnicode_Check(name) && PyUnicode_CompareWithASCIIString(name, "relu") == 0; }

bool is_half_call(PyObject* x) { return PyArray_Check(x) && !is_float(dtype_of(reinterpret_cast<PyArrayObject*>(x))); }

// x, h, w_ih, w_hh, b_ih, b_hh, nonlinearity; a sequence: reverse
PyObject* call_rnn(PyObject* self, PyObject* const* args, Py_ssize_t count) {
  const bool is_sequence = *kernel_context<bool>(self);
  if (count != (is_sequence ? 8 : 7)) return not_covered();
  if (is_half_call(args[0])) return call_widened(call_rnn, self, args, count);
  Call call(1);
  if (!call.take({x_, h_, w_ih_, w_hh_, b_ih_, b_hh_}, args)) return not_covered();
  call.reverse = is_sequence && args[7] == Py_True;
  PyArrayObject* hidden = call.new_states();
  const bool done = hidden != nullptr && call.unlocked([&](auto zero) {
    using T = decltype(zero);
    return EXTENSOR_SELECT(rnn_table)().of<T>().forward(call.sequence<T>(), is_relu(args[6]), data_of<T>(hidden));
  });
  return result_or_no_memory(hidden, done);
}

// g, x, h, w_ih, w_hh, hidden, nonlinearity; a sequence: reverse; needs
PyObject* call_rnn_backward(PyObject* self, PyObject* const* args, Py_ssize_t count) {
  const bool is_sequence = *kernel_context<bool>(self);
  if (count != (is_sequence ? 9 : 8)) return not_covered();
  if (is_half_call(args[1])) return call_widened(call_rnn_backward, self, args, count);
  Call call(1);
  if (!call.take({g_hidden_, x_, h_, w_ih_, w_hh_, hidden_}, args)) return not_covered();
  call.reverse = is_sequence && args[7] == Py_True;
  Gradients grads(call, args[count - 1], false);
  if (!grads.readable) return not_covered();
  return grads.finished(grads.made && call.unlocked([&](auto zero) {
    using T = decltype(zero);
    return EXTENSOR_SELECT(rnn_table)().of<T>().backward(call.sequence<T>(), is_relu(args[6]), call.data<T>(hidden_),
                                                         call.data<T>(g_hidden_), grads.all<T>());
  }));
}

// x, h, c, w_ih, w_hh, b_ih, b_hh; a sequence: reverse. Returns hidden, cells, gates; of one step the first two.
PyObject* call_lstm(PyObject* self, PyObject* const* args, Py_ssize_t count) {
  const bool is_sequence = *kernel_context<bool>(self);
  if (count != (is_sequence ? 8 : 7)) return not_covered();
  if (is_half_call(args[0])) return call_widened(call_lstm, self, args, count);
  Call call(4);
  if (!call.take({x_, h_, c_, w_ih_, w_hh_, b_ih_, b_hh_}, args)) return not_covered();
  call.reverse = is_sequence && args[7] == Py_True;
  PyArrayObject* made[] = {call.new_states(), call.new_states(), is_sequence ? call.new_states(4) : nullptr};
  Scratch scratch(is_sequence ? 0 : call.bytes_of_states(4));
  const bool done = made[0] != nullptr && made[1] != nullptr && (is_sequence ? made[2] != nullptr : scratch.data<char>() != nullptr) &&
                    call.unlocked([&](auto zero) {
                      using T = decltype(zero);
                      T* const gates = is_sequence ? data_of<T>(made[2]) : scratch.data<T>();
                      return EXTENSOR_SELECT(lstm_table)().of<T>().forward(call.sequence<T>(), call.data<T>(c_), data_of<T>(made[0]),
                                                                           data_of<T>(made[1]), gates);
                    });
  return result_or_no_memory(made, is_sequence ? 3 : 2, done);
}

// g_hidden, g_cells, g_gates, x, h, c, w_ih, w_hh, hidden, cells, gates, reverse, needs
PyObject* call_lstm_sequence_backward(PyObject* self, PyObject* const* args, Py_ssize_t count) {
  if (count != 13 || args[2] != Py_None) return not_covered();
  if (is_half_call(args[3])) return call_widened(call_lstm_sequence_backward, self, args, count);
  Call call(4);
  if (!call.take({g_hidden_, g_cells_, gates_, x_, h_, c_, w_ih_, w_hh_, hidden_, cells_, gates_}, args)) return not_covered();
  call.reverse = args[11] == Py_True;
  Gradients grads(call, args[12], true);
  if (!grads.readable) return not_covered();
  return grads.finished(grads.made && call.unlocked([&](auto zero) {
    using T = decltype(zero);
    return EXTENSOR_SELECT(lstm_table)().of<T>().backward(call.sequence<T>(), call.data<T>(c_), call.data<T>(hidden_), call.data<T>(cells_),
                                                          call.data<T>(gates_), call.data<T>(g_hidden_), call.data<T>(g_cells_),
                                                          grads.all<T>(), grads.data<T>(c_));
  }));
}

// g_h, g_c, x, h, c, w_ih, w_hh, b_ih, b_hh, needs. What the forward had is computed again.
PyObject* call_lstm_cell_backward(PyObject* self, PyObject* const* args, Py_ssize_t count) {
  if (count != 10) return not_covered();
  if (is_half_call(args[2])) return call_widened(call_lstm_cell_backward, self, args, count);
  Call call(4);
  if (!call.take({g_hidden_, g_cells_, x_, h_, c_, w_ih_, w_hh_, b_ih_, b_hh_}, args)) return not_covered();
  Gradients grads(call, args[9], true);
  if (!grads.readable) return not_covered();
  Scratch scratch(call.bytes_of_states(6));
  return grads.finished(grads.made && scratch.data<char>() != nullptr && call.unlocked([&](auto zero) {
    using T = decltype(zero);
    const Sequence<T> sequence = call.sequence<T>();
    const LstmFunctions<T>& lstm = EXTENSOR_SELECT(lstm_table)().of<T>();
    T* const hidden = scratch.data<T>();
    T* const cells = hidden + call.batch * call.hidden;
    T* const gates = cells + call.batch * call.hidden;
    return lstm.forward(sequence, call.data<T>(c_), hidden, cells, gates) &&
           lstm.backward(sequence, call.data<T>(c_), hidden, cells, gates, call.data<T>(g_hidden_), call.data<T>(g_cells_), grads.all<T>(),
                         grads.data<T>(c_));
  }));
}

// x, h, w_ih, w_hh, b_ih, b_hh; a sequence: reverse
PyObject* call_gru(PyObject* self, PyObject* const* args, Py_ssize_t count) {
  const bool is_sequence = *kernel_context<bool>(self);
  if (count != (is_sequence ? 7 : 6)) return not_covered();
  if (is_half_call(args[0])) return call_widened(call_gru, self, args, count);
  Call call(3);
  if (!call.take({x_, h_, w_ih_, w_hh_, b_ih_, b_hh_}, args)) return not_covered();
  call.reverse = is_sequence && args[6] == Py_True;
  PyArrayObject* hidden = call.new_states();
  const bool done = hidden != nullptr && call.unlocked([&](auto zero) {
    using T = decltype(zero);
    return EXTENSOR_SELECT(gru_table)().of<T>().forward(call.sequence<T>(), data_of<T>(hidden));
  });
  return result_or_no_memory(hidden, done);
}

// g, x, h, w_ih, w_hh, b_ih, b_hh; a sequence: hidden, reverse; needs
PyObject* call_gru_backward(PyObject* self, PyObject* const* args, Py_ssize_t count) {
  const bool is_sequence = *kernel_context<bool>(self);
  if (count != (is_sequence ? 10 : 8)) return not_covered();
  if (is_half_call(args[1])) return call_widened(call_gru_backward, self, args, count);
  Call call(3);
  if (is_sequence ? !call.take({g_hidden_, x_, h_, w_ih_, w_hh_, b_ih_, b_hh_, hidden_}, args)
                  : !call.take({g_hidden_, x_, h_, w_ih_, w_hh_, b_ih_, b_hh_}, args))
    return not_covered();
  call.reverse = is_sequence && args[8] == Py_True;
  Gradients grads(call, args[count - 1], false);
  if (!grads.readable) return not_covered();
  return grads.finished(grads.made && call.unlocked([&](auto zero) {
    using T = decltype(zero);
    return EXTENSOR_SELECT(gru_table)().of<T>().backward(call.sequence<T>(), call.data<T>(hidden_), call.data<T>(g_hidden_),
                                                         grads.all<T>());
  }));
}

constexpr bool sequence = true, cell = false;

}  // namespace

void bind_recurrent(PyObject* kernels) {
  add_kernel(kernels, "rnn_sequence", call_rnn, &sequence);
  add_kernel(kernels, "rnn_sequence_backward", call_rnn_backward, &sequence);
  add_kernel(kernels, "rnn_cell", call_rnn, &cell);
  add_kernel(kernels, "rnn_cell_backward", call_rnn_backward, &cell);
  add_kernel(kernels, "lstm_sequence", call_lstm, &sequence);
  add_kernel(kernels, "lstm_sequence_backward", call_lstm_sequence_backward);
  add_kernel(kernels, "lstm_cell", call_lstm, &cell);
  add_kernel(kernels, "lstm_cell_backward", call_lstm_cell_backward);
  add_kernel(kernels, "gru_sequence", call_gru, &sequence);
  add_kernel(kernels, "gru_sequence_backward", call_gru_backward, &sequence);
  add_kernel(kernels, "gru_cell", call_gru, &cell);
  add_kernel(kernels, "gru_cell_backward", call_gru_backward, &cell);
}

}  // namespace extensor
