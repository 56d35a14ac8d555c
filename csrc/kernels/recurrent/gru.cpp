// Compiled once per instruction set.
//
// forward:   1. a = x w_ih^T + b_ih, all steps in one product
//            2. each block of the batch, step by step: u = h w_hh^T + b_hh, the gates, h
// backward:  1. a and u of all steps again, from x and the hidden states, in two products
//            2. each block of the batch, from the last step to the first: the gates again, and the gradients of a and u in
//               their places
//            3. the gradients of x, the weights and the biases, all steps in one product each
#include "kernels/recurrent/sequence.hpp"

namespace extensor::EXTENSOR_ISA {
namespace {

// The three parts of a row of a or u.
template <class T>
struct Parts {
  Vec<T> r, z, n;
};

template <class T>
EXTENSOR_INLINE Parts<T> load_parts_of(const T* from, int64_t hidden, int64_t count) {
  return {load_first(from, count), load_first(from + hidden, count), load_first(from + 2 * hidden, count)};
}

template <class T>
EXTENSOR_INLINE void store_parts(T* to, int64_t hidden, const Parts<T>& parts, int64_t count) {
  store_first(to, parts.r, count), store_first(to + hidden, parts.z, count), store_first(to + 2 * hidden, parts.n, count);
}

template <class T>
EXTENSOR_INLINE Parts<T> opened(const Parts<T>& a, const Parts<T>& u) {
  const Vec<T> r = sigmoid(a.r + u.r);
  return {r, sigmoid(a.z + u.z), tanh(a.n + r * u.n)};
}

template <class T>
void forward(const Sequence<T>& s, T* hidden) {
  const int64_t wide = 3 * s.hidden;
  Workspace<T> room(s.steps * s.batch * wide + packed_room(s, false) + s.batch * wide + wide);
  T* const all = room.data();
  T* const packed = all + s.steps * s.batch * wide;
  T* const of_step = packed + packed_room(s, false);
  T* const bias = of_step + s.batch * wide;
  for (int64_t k = 0; k < wide; ++k) bias[k] = s.b_hh == nullptr ? T(0) : s.b_hh[k];
  map(s.x, s.steps * s.batch, s.inputs, s.w_ih, wide, s.b_ih, false, all);
  const StepWeight<T> w_hh = pack_forward(s, packed);
  for_each_block(s, [&](int64_t first, int64_t rows) {
    for (int64_t i = 0; i < s.steps; ++i) {
      const int64_t t = step_at(s, i);
      w_hh.multiply(rows, before(s, i, first, s.h, hidden), s.hidden, of_step + first * wide, wide, false);
      for_each_unit<T>(first, rows, s.hidden, [&](int64_t row, int64_t unit, int64_t count) EXTENSOR_INLINE_LAMBDA {
        const Parts<T> b = load_parts_of(bias + unit, s.hidden, count);
        Parts<T> u = load_parts_of(of_step + row * wide + unit, s.hidden, count);
        u = {u.r + b.r, u.z + b.z, u.n + b.n};
        const Parts<T> open = opened(load_parts_of(all + (t * s.batch + row) * wide + unit, s.hidden, count), u);
        const Vec<T> h = load_first(before(s, i, row, s.h, hidden) + unit, count);
        store_first(hidden + (t * s.batch + row) * s.hidden + unit, (1.0 - open.z) * open.n + open.z * h, count);
      });
    }
  });
}

template <class T>
void backward(const Sequence<T>& s, const T* hidden, const T* g_hidden, const SequenceGradients<T>& grads) {
  const int64_t wide = 3 * s.hidden, units = s.batch * s.hidden, rows_of_all = s.steps * s.batch;
  Workspace<T> room(2 * rows_of_all * wide + packed_room(s, true) + units);
  T* const of_a = room.data();
  T* const of_u = of_a + rows_of_all * wide;
  T* const packed = of_u + rows_of_all * wide;
  T* const carried = packed + packed_room(s, true);
  map(s.x, rows_of_all, s.inputs, s.w_ih, wide, s.b_ih, false, of_a);
  map(s.h, s.batch, s.hidden, s.w_hh, wide, s.b_hh, false, of_u + step_at(s, 0) * s.batch * wide);
  map(s.reverse ? hidden + units : hidden, rows_of_all - s.batch, s.hidden, s.w_hh, wide, s.b_hh, false,
      s.reverse ? of_u : of_u + s.batch * wide);
  const StepWeight<T> w_hh = pack_backward(s, packed);
  for_each_block(s, [&](int64_t first, int64_t rows) {
    for (int64_t k = first * s.hidden; k < (first + rows) * s.hidden; ++k) carried[k] = T(0);
    for (int64_t i = s.steps - 1; i >= 0; --i) {
      const int64_t t = step_at(s, i);
      for_each_unit<T>(first, rows, s.hidden, [&](int64_t row, int64_t unit, int64_t count) EXTENSOR_INLINE_LAMBDA {
        const int64_t at = (t * s.batch + row) * wide + unit;
        T* const handed = carried + row * s.hidden + unit;
        const Parts<T> u = load_parts_of(of_u + at, s.hidden, count);
        const Parts<T> open = opened(load_parts_of(of_a + at, s.hidden, count), u);
        const Vec<T> d_h = load_first(g_hidden + (t * s.batch + row) * s.hidden + unit, count) + load_first(handed, count);
        const Vec<T> d_n = d_h * (1.0 - open.z) * (1.0 - open.n * open.n);
        const Vec<T> d_r = d_n * u.n * open.r * (1.0 - open.r);
        const Vec<T> h = load_first(before(s, i, row, s.h, hidden) + unit, count);
        const Vec<T> d_z = d_h * (h - open.n) * open.z * (1.0 - open.z);
        store_parts(of_a + at, s.hidden, {d_r, d_z, d_n}, count);
        store_parts(of_u + at, s.hidden, {d_r, d_z, d_n * open.r}, count);
        store_first(handed, d_h * open.z, count);
      });
      if (i > 0 || grads.h != nullptr)
        w_hh.multiply(rows, of_u + (t * s.batch + first) * wide, wide, carried + first * s.hidden, s.hidden, true);
    }
  });
  if (grads.h != nullptr)
    for (int64_t k = 0; k < units; ++k) grads.h[k] = carried[k];
  finish_gradients(s, hidden, of_a, of_u, grads);
}

}  // namespace

const RecurrentTable<GruFunctions>& gru_table() {
#if defined(__AVX512BF16__)
  static constexpr RecurrentTable<GruFunctions> table = {{forward<float>, backward<float>}, {}};
#else
  static constexpr RecurrentTable<GruFunctions> table = {{forward<float>, backward<float>}, {forward<double>, backward<double>}};
#endif
  return table;
}

}  // namespace extensor::EXTENSOR_ISA
