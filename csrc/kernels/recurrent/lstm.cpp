// Compiled once per instruction set.
//
// forward:   1. gates = x w_ih^T + bias, all steps in one product; without w_ih, x + bias, each block and step by itself
//            2. each block of the batch, step by step: gates += h w_hh^T, then c = f c + i g, h = o tanh(c)
// backward:  1. each block of the batch, from the last step to the first: the gradients of the gates before their
//               nonlinearities, and of the states of the step before
//            2. the gradients of x, the weights and the biases, all steps in one product each; without w_ih, those of the
//               gates are those of x
#include "kernels/recurrent/sequence.hpp"

namespace extensor::EXTENSOR_ISA {
namespace {

template <class T>
struct Gates {
  Vec<T> i, f, g, o;
};

template <class T>
EXTENSOR_INLINE Gates<T> load_gates(const T* gates, int64_t hidden, int64_t count) {
  return {load_first(gates, count), load_first(gates + hidden, count), load_first(gates + 2 * hidden, count), load_first(gates + 3 * hidden, count)};
}

template <class T>
EXTENSOR_INLINE void store_gates(T* gates, int64_t hidden, const Gates<T>& a, int64_t count) {
  store_first(gates, a.i, count), store_first(gates + hidden, a.f, count);
  store_first(gates + 2 * hidden, a.g, count), store_first(gates + 3 * hidden, a.o, count);
}

// gates[rows, wide] = x[rows, wide] + bias
template <class T>
void start_gates(int64_t rows, int64_t wide, const T* x, const T* bias, T* gates) {
  for_each_unit<T>(0, rows, wide, [&](int64_t row, int64_t i, int64_t count) EXTENSOR_INLINE_LAMBDA {
    const Vec<T> a = load_first(x + row * wide + i, count);
    store_first(gates + row * wide + i, bias == nullptr ? a : a + load_first(bias + i, count), count);
  });
}

template <class T>
void forward(const Sequence<T>& s, const T* c, T* hidden, T* cells, T* gates) {
  const int64_t wide = 4 * s.hidden;
  Workspace<T> room(packed_room(s, false) + wide);
  const T* const bias = joined_bias(s, room.data() + packed_room(s, false));
  if (s.w_ih != nullptr) map(s.x, s.steps * s.batch, s.inputs, s.w_ih, wide, bias, false, gates);
  const StepWeight<T> w_hh = pack_forward(s, room.data());
  for_each_block(s, [&](int64_t first, int64_t rows) {
    for (int64_t i = 0; i < s.steps; ++i) {
      const int64_t t = step_at(s, i), here = (t * s.batch + first) * wide;
      if (s.w_ih == nullptr) start_gates(rows, wide, s.x + here, bias, gates + here);
      w_hh.multiply(rows, before(s, i, first, s.h, hidden), s.hidden, gates + here, wide, true);
      for_each_unit<T>(0, rows, s.hidden, [&](int64_t row, int64_t unit, int64_t count) EXTENSOR_INLINE_LAMBDA {
        const int64_t at = (t * s.batch + first + row) * s.hidden + unit;
        T* const a = gates + (t * s.batch + first + row) * wide + unit;
        Gates<T> open = load_gates(a, s.hidden, count);
        open = {sigmoid(open.i), sigmoid(open.f), tanh(open.g), sigmoid(open.o)};
        const Vec<T> cell = open.f * load_first(before(s, i, first + row, c, cells) + unit, count) + open.i * open.g;
        store_gates(a, s.hidden, open, count);
        store_first(cells + at, cell, count);
        store_first(hidden + at, open.o * tanh(cell), count);
      });
    }
  });
}

template <class T>
void backward(const Sequence<T>& s, const T* c, const T* hidden, const T* cells, const T* gates, const T* g_hidden, const T* g_cells,
              const SequenceGradients<T>& grads, T* grad_c) {
  const int64_t wide = 4 * s.hidden, units = s.batch * s.hidden;
  const bool is_grad_x = s.w_ih == nullptr && grads.x != nullptr;
  const int64_t of_grad_a = is_grad_x ? 0 : s.steps * s.batch * wide;
  Workspace<T> room(of_grad_a + packed_room(s, true) + 2 * units);
  T* const grad_a = is_grad_x ? grads.x : room.data();
  T* const packed = room.data() + of_grad_a;
  T* const carried_h = packed + packed_room(s, true);
  T* const carried_c = carried_h + units;
  const StepWeight<T> w_hh = pack_backward(s, packed);
  for_each_block(s, [&](int64_t first, int64_t rows) {
    for (int64_t k = first * s.hidden; k < (first + rows) * s.hidden; ++k) carried_h[k] = carried_c[k] = T(0);
    for (int64_t i = s.steps - 1; i >= 0; --i) {
      const int64_t t = step_at(s, i);
      for_each_unit<T>(first, rows, s.hidden, [&](int64_t row, int64_t unit, int64_t count) EXTENSOR_INLINE_LAMBDA {
        const int64_t at = (t * s.batch + row) * s.hidden + unit, carried = row * s.hidden + unit;
        const Gates<T> open = load_gates(gates + (t * s.batch + row) * wide + unit, s.hidden, count);
        const Vec<T> squashed = tanh(load_first(cells + at, count)), one(1.0);
        const Vec<T> d_h = load_first(g_hidden + at, count) + load_first(carried_h + carried, count);
        Vec<T> d_c = load_first(carried_c + carried, count) + d_h * open.o * (one - squashed * squashed);
        if (g_cells != nullptr) d_c = d_c + load_first(g_cells + at, count);
        const Vec<T> c_before = load_first(before(s, i, row, c, cells) + unit, count);
        store_gates(grad_a + (t * s.batch + row) * wide + unit, s.hidden,
                    {d_c * open.g * open.i * (one - open.i), d_c * c_before * open.f * (one - open.f), d_c * open.i * (one - open.g * open.g),
                     d_h * squashed * open.o * (one - open.o)},
                    count);
        store_first(carried_c + carried, d_c * open.f, count);
      });
      if (i > 0 || grads.h != nullptr)
        w_hh.multiply(rows, grad_a + (t * s.batch + first) * wide, wide, carried_h + first * s.hidden, s.hidden, false);
    }
  });
  for (int64_t k = 0; k < units; ++k) {
    if (grads.h != nullptr) grads.h[k] = carried_h[k];
    if (grad_c != nullptr) grad_c[k] = carried_c[k];
  }
  finish_gradients(s, hidden, grad_a, grad_a, grads);
}

}  // namespace

const RecurrentTable<LstmFunctions>& lstm_table() {
#if defined(__AVX512BF16__)
  static constexpr RecurrentTable<LstmFunctions> table = {{forward<float>, backward<float>}, {}};
#else
  static constexpr RecurrentTable<LstmFunctions> table = {{forward<float>, backward<float>}, {forward<double>, backward<double>}};
#endif
  return table;
}

}  // namespace extensor::EXTENSOR_ISA
