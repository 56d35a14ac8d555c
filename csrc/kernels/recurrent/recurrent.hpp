// Recurrent layers over whole sequences, and their gradients.
#pragma once

#include <cstdint>

#include "core/isa.hpp"

namespace extensor {

// Dense x [steps, batch, inputs], h [batch, hidden], w_ih [gates * hidden, inputs], w_hh [gates * hidden, hidden], biases of
// gates * hidden values or nullptr. What belongs to all steps is [steps, batch, ...] in their order, also in reverse.
// Of an LSTM, w_ih may be nullptr: x [steps, batch, gates * hidden] is then what x w_ih^T would be.
template <class T>
struct Sequence {
  int64_t steps, batch, inputs, hidden, gates;
  const T* x;
  const T* h;
  const T* w_ih;
  const T* w_hh;
  const T* b_ih;
  const T* b_hh;
  bool reverse;  // the walk goes from the last step to the first
};

// Gradients that are not wanted are nullptr.
template <class T>
struct SequenceGradients {
  T* x;
  T* h;
  T* w_ih;
  T* w_hh;
  T* b_ih;
  T* b_hh;
};

// h' = f(x w_ih^T + b_ih + h w_hh^T + b_hh) with f = tanh or relu
template <class T>
struct RnnFunctions {
  void (*forward)(const Sequence<T>&, bool relu, T* hidden);
  void (*backward)(const Sequence<T>&, bool relu, const T* hidden, const T* g_hidden, const SequenceGradients<T>&);
};

// The gates input, forget, cell and output: c' = f c + i g, h' = o tanh(c'). `cells` holds the c' of all steps, `gates` the
// four gates of all steps after their nonlinearities, side by side.
template <class T>
struct LstmFunctions {
  void (*forward)(const Sequence<T>&, const T* c, T* hidden, T* cells, T* gates);
  // g_cells may be nullptr: zeros. grad_c may be nullptr.
  void (*backward)(const Sequence<T>&, const T* c, const T* hidden, const T* cells, const T* gates, const T* g_hidden,
                   const T* g_cells, const SequenceGradients<T>&, T* grad_c);
};

// The gates reset, update and new: h' = (1 - z) n + z h, n = tanh(a_n + r u_n) with a = x w_ih^T + b_ih, u = h w_hh^T + b_hh.
template <class T>
struct GruFunctions {
  void (*forward)(const Sequence<T>&, T* hidden);
  void (*backward)(const Sequence<T>&, const T* hidden, const T* g_hidden, const SequenceGradients<T>&);
};

template <template <class> class Functions>
struct RecurrentTable {
  Functions<float> float32;
  Functions<double> float64;

  template <class T>
  const Functions<T>& of() const {
    if constexpr (sizeof(T) == 4) return float32;
    else return float64;
  }
};
EXTENSOR_PER_ISA(const RecurrentTable<RnnFunctions>& rnn_table())
EXTENSOR_PER_ISA(const RecurrentTable<LstmFunctions>& lstm_table())
EXTENSOR_PER_ISA(const RecurrentTable<GruFunctions>& gru_table())

// The same in float32 but for the operands of products, which are rounded to bfloat16; there is no float64.
namespace avx512bf16 {
const RecurrentTable<RnnFunctions>& rnn_table();
const RecurrentTable<LstmFunctions>& lstm_table();
const RecurrentTable<GruFunctions>& gru_table();
}

// Rough time of a pass over a sequence. Static: sources of several instruction sets use it.
template <class T>
static double sequence_ns(const Sequence<T>& s) {
  const double units = double(s.steps) * double(s.batch) * double(s.hidden) * double(s.gates);
  return units * (2.0 + double((s.w_ih == nullptr ? 0 : s.inputs) + s.hidden) * sizeof(T) / 180.0);
}

}  // namespace extensor
