// Recurrent cells and sequences as Python functions. A cell is a sequence of one step.
#include "kernels/recurrent/recurrent.hpp"

#include "bindings/half.hpp"
#include "bindings/operands.hpp"
#include "core/bf16_unit.hpp"
#include "core/workspace.hpp"

namespace extensor {
namespace {

enum Operand { x_, h_, c_, w_ih_, w_hh_, b_ih_, b_hh_, hidden_, cells_, gates_, g_hidden_, g_cells_, operand_count };

// The arguments of a call. x is [steps, batch, inputs], or of one step [batch, inputs] or [inputs].
class Call {
 public:
  explicit Call(int gates) : gates_per_unit(gates) {}

  // Takes the arguments in this order. False if one is not covered or x, h, w_ih or w_hh has no elements. There may be no
  // biases, no gradient of the cells and, in a sequence of the LSTM, no w_ih.
  bool take(std::initializer_list<Operand> order, PyObject* const* args) {
    for (Operand operand : order) {
      if (operand == x_ && PyArray_Check(*args)) dtype = dtype_of(as_array(*args));
      ++args;
    }
    args -= order.size();
    if (!is_float(dtype)) return false;
    for (Operand operand : order)
      if (!operands.take(operand, *args++, dtype)) return false;
    for (Operand operand : order)
      if (operands.array(operand) == nullptr && operand != w_ih_ && operand != b_ih_ && operand != b_hh_ && operand != g_cells_) return false;
    for (Operand operand : {x_, h_, w_hh_})
      if (PyArray_SIZE(operands.array(operand)) == 0) return false;
    PyArrayObject* x = operands.array(x_);
    PyArrayObject* w_ih = operands.array(w_ih_);
    const int ndim = PyArray_NDIM(x);
    if (w_ih == nullptr ? gates_per_unit != 4 || ndim != 3 : PyArray_SIZE(w_ih) == 0) return false;
    steps = ndim == 3 ? PyArray_DIM(x, 0) : 1;
    batch = ndim == 1 ? 1 : PyArray_DIM(x, ndim - 2);
    inputs = PyArray_DIM(x, ndim - 1);
    hidden = PyArray_NDIM(operands.array(w_hh_)) == 2 ? PyArray_DIM(operands.array(w_hh_), 1) : 0;
    return ndim >= 1 && ndim <= 3 && hidden > 0 && fit_together();
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
  Array make_states(int64_t wider = 1) const {
    const npy_intp shape[] = {steps, batch, hidden * wider};
    if (PyArray_NDIM(operands.array(x_)) == 3) return make_array(dtype, 3, shape);
    return make_array(dtype, PyArray_NDIM(operands.array(h_)), PyArray_DIMS(operands.array(h_)));
  }

  // Calls run(T()) without the interpreter lock.
  template <class Run>
  void compute(const Run& run) const {
    MaybeReleaseGil unlocked(sequence_ns(sequence<float>()));
    with_type(dtype, run);
  }

  // Whether the arrays have as many elements as the lengths say.
  bool fit_together() const {
    const int64_t rows = gates_per_unit * hidden, states = steps * batch * hidden;
    const int64_t sizes[operand_count] = {steps * batch * inputs, batch * hidden, batch * hidden, rows * inputs, rows * hidden, rows, rows,
                                          states,                 states,         states * 4,     states,        states};
    for (int operand = 0; operand < operand_count; ++operand)
      if (operands.array(operand) != nullptr && PyArray_SIZE(operands.array(operand)) != sizes[operand]) return false;
    return operands.array(w_ih_) != nullptr || inputs == rows;
  }

  // Whether products are to take bfloat16 operands: those of half precision calls that are large enough for the unit to pay.
  bool takes_pairs(bool half) const { return half && hidden >= 32 && steps * batch >= 32; }

  const int gates_per_unit;
  Operands<operand_count> operands;
  DType dtype = DType::other;
  int64_t steps = 0, batch = 0, inputs = 0, hidden = 0;
  bool reverse = false;
};

// The gradients that are wanted: x, h, (c), w_ih, w_hh, b_ih, b_hh.
class Gradients {
 public:
  Gradients(const Call& call, const bool* wanted, bool has_c) : count_(has_c ? 7 : 6) {
    int i = 0;
    for (Operand operand : {x_, h_, c_, w_ih_, w_hh_, b_ih_, b_hh_}) {
      if (operand == c_ && !has_c) continue;
      place_[operand] = i;
      const npy_intp rows = call.gates_per_unit * call.hidden;
      PyArrayObject* like = operand < b_ih_ ? call.operands.array(operand) : nullptr;
      if (wanted[i]) arrays_[i] = like != nullptr ? make_array(call.dtype, PyArray_NDIM(like), PyArray_DIMS(like)) : make_array(call.dtype, 1, &rows);
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
  PyObject* release() { return tuple_of(arrays_, count_); }

 private:
  int count_;
  int place_[operand_count] = {};
  Array arrays_[7];
};

// "tanh" or "relu". False for anything else.
bool read_nonlinearity(PyObject* name, bool& relu) {
  relu = is_text(name, "relu");
  return relu || is_text(name, "tanh");
}

bool is_half_call(PyObject* x) { return PyArray_Check(x) && !is_float(dtype_of(as_array(x))); }

// Whether the processor multiplies pairs of these elements.
bool has_pairs(PyObject* x) { return dtype_of(as_array(x)) == DType::bfloat16 && has_bf16_unit(); }

#ifdef EXTENSOR_BUILT_AVX512BF16
#define EXTENSOR_RECURRENT_OF(table, pairs) (pairs ? avx512bf16::table : EXTENSOR_SELECT(table))
#else
#define EXTENSOR_RECURRENT_OF(table, pairs) ((void)pairs, EXTENSOR_SELECT(table))
#endif
template <class T>
const RnnFunctions<T>& rnn_of(bool pairs) { return EXTENSOR_RECURRENT_OF(rnn_table, pairs)().template of<T>(); }
template <class T>
const LstmFunctions<T>& lstm_of(bool pairs) { return EXTENSOR_RECURRENT_OF(lstm_table, pairs)().template of<T>(); }
template <class T>
const GruFunctions<T>& gru_of(bool pairs) { return EXTENSOR_RECURRENT_OF(gru_table, pairs)().template of<T>(); }

// A kernel is Half where call_widened has widened what it is given.
//
// x, h, w_ih, w_hh, b_ih, b_hh, nonlinearity; a sequence: reverse
template <bool Half>
PyObject* call_rnn(PyObject* self, PyObject* const* args, Py_ssize_t count) {
  const bool is_sequence = *kernel_context<bool>(self);
  if (count != (is_sequence ? 8 : 7)) return not_covered();
  if (is_half_call(args[0])) return call_widened(has_pairs(args[0]) ? call_rnn<true> : call_rnn<false>, self, args, count);
  Call call(1);
  bool relu;
  if (!call.take({x_, h_, w_ih_, w_hh_, b_ih_, b_hh_}, args) || !read_nonlinearity(args[6], relu) ||
      (is_sequence && !read_flag(args[7], call.reverse)))
    return not_covered();
  Array hidden = call.make_states();
  call.compute([&](auto zero) {
    using T = decltype(zero);
    rnn_of<T>(call.takes_pairs(Half)).forward(call.sequence<T>(), relu, data_of<T>(hidden));
  });
  return hidden.release();
}

// g, x, h, w_ih, w_hh, hidden, nonlinearity; a sequence: reverse; needs
template <bool Half>
PyObject* call_rnn_backward(PyObject* self, PyObject* const* args, Py_ssize_t count) {
  const bool is_sequence = *kernel_context<bool>(self);
  if (count != (is_sequence ? 9 : 8)) return not_covered();
  if (is_half_call(args[1])) return call_widened(has_pairs(args[1]) ? call_rnn_backward<true> : call_rnn_backward<false>, self, args, count);
  Call call(1);
  bool relu, needs[6];
  if (!call.take({g_hidden_, x_, h_, w_ih_, w_hh_, hidden_}, args) || !read_nonlinearity(args[6], relu) ||
      (is_sequence && !read_flag(args[7], call.reverse)) || !read_flags(args[count - 1], needs, 6))
    return not_covered();
  Gradients grads(call, needs, false);
  call.compute([&](auto zero) {
    using T = decltype(zero);
    rnn_of<T>(call.takes_pairs(Half)).backward(call.sequence<T>(), relu, call.data<T>(hidden_), call.data<T>(g_hidden_),
                                                         grads.all<T>());
  });
  return grads.release();
}

// x, h, c, w_ih, w_hh, b_ih, b_hh; a sequence: reverse. Returns hidden, cells, gates; of one step the first two.
template <bool Half>
PyObject* call_lstm(PyObject* self, PyObject* const* args, Py_ssize_t count) {
  const bool is_sequence = *kernel_context<bool>(self);
  if (count != (is_sequence ? 8 : 7)) return not_covered();
  if (is_half_call(args[0])) return call_widened(has_pairs(args[0]) ? call_lstm<true> : call_lstm<false>, self, args, count);
  Call call(4);
  if (!call.take({x_, h_, c_, w_ih_, w_hh_, b_ih_, b_hh_}, args) || (is_sequence && !read_flag(args[7], call.reverse)))
    return not_covered();
  Array found[] = {call.make_states(), call.make_states(), is_sequence ? call.make_states(4) : Array()};
  call.compute([&](auto zero) {
    using T = decltype(zero);
    Workspace<T> gates(is_sequence ? 0 : call.batch * call.hidden * 4);
    lstm_of<T>(call.takes_pairs(Half)).forward(call.sequence<T>(), call.data<T>(c_), data_of<T>(found[0]), data_of<T>(found[1]),
                                                         is_sequence ? data_of<T>(found[2]) : gates.data());
  });
  return tuple_of(found, is_sequence ? 3 : 2);
}

// g_hidden, g_cells, g_gates, x, h, c, w_ih, w_hh, hidden, cells, gates, reverse, needs
template <bool Half>
PyObject* call_lstm_sequence_backward(PyObject* self, PyObject* const* args, Py_ssize_t count) {
  if (count != 13 || args[2] != Py_None) return not_covered();
  if (is_half_call(args[3])) return call_widened(has_pairs(args[3]) ? call_lstm_sequence_backward<true> : call_lstm_sequence_backward<false>, self, args, count);
  Call call(4);
  bool needs[7];
  if (!call.take({g_hidden_, g_cells_, gates_, x_, h_, c_, w_ih_, w_hh_, hidden_, cells_, gates_}, args) ||
      !read_flag(args[11], call.reverse) || !read_flags(args[12], needs, 7))
    return not_covered();
  Gradients grads(call, needs, true);
  call.compute([&](auto zero) {
    using T = decltype(zero);
    lstm_of<T>(call.takes_pairs(Half)).backward(call.sequence<T>(), call.data<T>(c_), call.data<T>(hidden_), call.data<T>(cells_),
                                                          call.data<T>(gates_), call.data<T>(g_hidden_), call.data<T>(g_cells_),
                                                          grads.all<T>(), grads.data<T>(c_));
  });
  return grads.release();
}

// g_h, g_c, x, h, c, w_ih, w_hh, b_ih, b_hh, needs. What the forward had is computed again.
template <bool Half>
PyObject* call_lstm_cell_backward(PyObject* self, PyObject* const* args, Py_ssize_t count) {
  if (count != 10) return not_covered();
  if (is_half_call(args[2])) return call_widened(has_pairs(args[2]) ? call_lstm_cell_backward<true> : call_lstm_cell_backward<false>, self, args, count);
  Call call(4);
  bool needs[7];
  if (!call.take({g_hidden_, g_cells_, x_, h_, c_, w_ih_, w_hh_, b_ih_, b_hh_}, args) || !read_flags(args[9], needs, 7)) return not_covered();
  Gradients grads(call, needs, true);
  call.compute([&](auto zero) {
    using T = decltype(zero);
    Workspace<T> states(call.batch * call.hidden * 6);
    const Sequence<T> sequence = call.sequence<T>();
    const LstmFunctions<T>& lstm = lstm_of<T>(call.takes_pairs(Half));
    T* const hidden = states.data();
    T* const cells = hidden + call.batch * call.hidden;
    T* const gates = cells + call.batch * call.hidden;
    lstm.forward(sequence, call.data<T>(c_), hidden, cells, gates);
    lstm.backward(sequence, call.data<T>(c_), hidden, cells, gates, call.data<T>(g_hidden_), call.data<T>(g_cells_), grads.all<T>(),
                  grads.data<T>(c_));
  });
  return grads.release();
}

// x, h, w_ih, w_hh, b_ih, b_hh; a sequence: reverse
template <bool Half>
PyObject* call_gru(PyObject* self, PyObject* const* args, Py_ssize_t count) {
  const bool is_sequence = *kernel_context<bool>(self);
  if (count != (is_sequence ? 7 : 6)) return not_covered();
  if (is_half_call(args[0])) return call_widened(has_pairs(args[0]) ? call_gru<true> : call_gru<false>, self, args, count);
  Call call(3);
  if (!call.take({x_, h_, w_ih_, w_hh_, b_ih_, b_hh_}, args) || (is_sequence && !read_flag(args[6], call.reverse))) return not_covered();
  Array hidden = call.make_states();
  call.compute([&](auto zero) {
    using T = decltype(zero);
    gru_of<T>(call.takes_pairs(Half)).forward(call.sequence<T>(), data_of<T>(hidden));
  });
  return hidden.release();
}

// g, x, h, w_ih, w_hh, b_ih, b_hh; a sequence: hidden, reverse; needs
template <bool Half>
PyObject* call_gru_backward(PyObject* self, PyObject* const* args, Py_ssize_t count) {
  const bool is_sequence = *kernel_context<bool>(self);
  if (count != (is_sequence ? 10 : 8)) return not_covered();
  if (is_half_call(args[1])) return call_widened(has_pairs(args[1]) ? call_gru_backward<true> : call_gru_backward<false>, self, args, count);
  Call call(3);
  if (is_sequence ? !call.take({g_hidden_, x_, h_, w_ih_, w_hh_, b_ih_, b_hh_, hidden_}, args)
                  : !call.take({g_hidden_, x_, h_, w_ih_, w_hh_, b_ih_, b_hh_}, args))
    return not_covered();
  bool needs[6];
  if ((is_sequence && !read_flag(args[8], call.reverse)) || !read_flags(args[count - 1], needs, 6)) return not_covered();
  Gradients grads(call, needs, false);
  call.compute([&](auto zero) {
    using T = decltype(zero);
    gru_of<T>(call.takes_pairs(Half)).backward(call.sequence<T>(), call.data<T>(hidden_), call.data<T>(g_hidden_),
                                                         grads.all<T>());
  });
  return grads.release();
}

constexpr bool sequence = true, cell = false;

}  // namespace

void bind_recurrent(PyObject* kernels) {
  add_kernel(kernels, "rnn_sequence", call_rnn<false>, &sequence);
  add_kernel(kernels, "rnn_sequence_backward", call_rnn_backward<false>, &sequence);
  add_kernel(kernels, "rnn_cell", call_rnn<false>, &cell);
  add_kernel(kernels, "rnn_cell_backward", call_rnn_backward<false>, &cell);
  add_kernel(kernels, "lstm_sequence", call_lstm<false>, &sequence);
  add_kernel(kernels, "lstm_sequence_backward", call_lstm_sequence_backward<false>);
  add_kernel(kernels, "lstm_cell", call_lstm<false>, &cell);
  add_kernel(kernels, "lstm_cell_backward", call_lstm_cell_backward<false>);
  add_kernel(kernels, "gru_sequence", call_gru<false>, &sequence);
  add_kernel(kernels, "gru_sequence_backward", call_gru_backward<false>, &sequence);
  add_kernel(kernels, "gru_cell", call_gru<false>, &cell);
  add_kernel(kernels, "gru_cell_backward", call_gru_backward<false>, &cell);
}

}  // namespace extensor
