// The LSTM over a whole sequence, and its gradient.
#pragma once

#include <cstdint>

#include "core/isa.hpp"

namespace extensor {

// Dense x [steps, batch, inputs], h and c [batch, hidden], w_ih [4 hidden, inputs], w_hh [4 hidden, hidden], bias (the sum of
// both, 4 hidden values) or nullptr. Gates: input, forget, cell, output.
template <class T>
struct Lstm {
  int64_t steps, batch, inputs, hidden;
  const T* x;
  const T* h;
  const T* c;
  const T* w_ih;
  const T* w_hh;
  const T* bias;
  bool reverse;
};

// Gradients that are not wanted are nullptr.
template <class T>
struct LstmGradients {
  T* x;
  T* h;
  T* c;
  T* w_ih;
  T* w_hh;
  T* bias;
};

template <class T>
struct LstmFunctions {
  // gates: room for [steps, batch, 4 hidden]; c_out [batch, hidden]
  void (*forward)(const Lstm<T>&, T* gates, T* hidden, T* c_out);
  // gates as above; cells: room for [steps, batch, hidden]; carried: room for 2 [batch, hidden]
  void (*backward)(const Lstm<T>&, const T* hidden, const T* g_hidden, const T* g_c, T* gates, T* cells, T* carried,
                   const LstmGradients<T>&);
};

struct LstmTable {
  LstmFunctions<float> float32;
  LstmFunctions<double> float64;
};
EXTENSOR_PER_ISA(const LstmTable& lstm_table())

template <class T>
const LstmFunctions<T>& lstm_functions() {
  const LstmTable& table = EXTENSOR_SELECT(lstm_table)();
  if constexpr (sizeof(T) == 4) return table.float32;
  else return table.float64;
}

// Rough time of one hidden unit of one step, without the products.
constexpr double lstm_ns = 8;

}  // namespace extensor
