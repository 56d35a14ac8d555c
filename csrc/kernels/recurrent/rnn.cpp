// Compiled once per instruction set.
//
// forward:   1. hidden = x w_ih^T + bias, all steps in one product
//            2. each block of the batch, step by step: hidden = f(hidden + h w_hh^T)
// backward:  1. each block of the batch, from the last step to the first: the gradients before the nonlinearity
//            2. the gradients of x, the weights and the biases, all steps in one product each
#include "kernels/recurrent/sequence.hpp"

namespace extensor::EXTENSOR_ISA {
namespace {

template <class T>
void forward(const Sequence<T>& s, bool relu, T* hidden) {
  Workspace<T> room(packed_room(s, false) + s.hidden);
  map(s.x, s.steps * s.batch, s.inputs, s.w_ih, s.hidden, joined_bias(s, room.data() + packed_room(s, false)), false, hidden);
  const StepWeight<T> w_hh = pack_forward(s, room.data());
  for_each_block(s, [&](int64_t first, int64_t rows) {
    for (int64_t i = 0; i < s.steps; ++i) {
      T* const to = hidden + (step_at(s, i) * s.batch + first) * s.hidden;
      w_hh.multiply(rows, before(s, i, first, s.h, hidden), s.hidden, to, s.hidden, true);
      for_each_vector<T>(rows * s.hidden, [&](int64_t at, int64_t count) EXTENSOR_INLINE_LAMBDA {
        const Vec<T> a = load_first(to + at, count);
        store_first(to + at, relu ? keep(!(a < 0.0), a) : tanh(a), count);  // a nan stays
      });
    }
  });
}

template <class T>
void backward(const Sequence<T>& s, bool relu, const T* hidden, const T* g_hidden, const SequenceGradients<T>& grads) {
  const int64_t units = s.batch * s.hidden;
  Workspace<T> room(s.steps * units + packed_room(s, true) + units);
  T* const grad_a = room.data();
  T* const packed = grad_a + s.steps * units;
  T* const carried = packed + packed_room(s, true);
  const StepWeight<T> w_hh = pack_backward(s, packed);
  for_each_block(s, [&](int64_t first, int64_t rows) {
    T* const handed = carried + first * s.hidden;
    for (int64_t k = 0; k < rows * s.hidden; ++k) handed[k] = T(0);
    for (int64_t i = s.steps - 1; i >= 0; --i) {
      const int64_t start = (step_at(s, i) * s.batch + first) * s.hidden;
      for_each_vector<T>(rows * s.hidden, [&](int64_t at, int64_t count) EXTENSOR_INLINE_LAMBDA {
        const Vec<T> y = load_first(hidden + start + at, count), one(1.0);
        const Vec<T> slope = relu ? select(isnan(y), y, keep(y > 0.0, one)) : one - y * y;
        store_first(grad_a + start + at, (load_first(g_hidden + start + at, count) + load_first(handed + at, count)) * slope, count);
      });
      if (i > 0 || grads.h != nullptr) w_hh.multiply(rows, grad_a + start, s.hidden, handed, s.hidden, false);
    }
  });
  if (grads.h != nullptr)
    for (int64_t k = 0; k < units; ++k) grads.h[k] = carried[k];
  finish_gradients(s, hidden, grad_a, grad_a, grads);
}

}  // namespace

const RecurrentTable<RnnFunctions>& rnn_table() {
#if defined(__AVX512BF16__)
  static constexpr RecurrentTable<RnnFunctions> table = {{forward<float>, backward<float>}, {}};
#else
  static constexpr RecurrentTable<RnnFunctions> table = {{forward<float>, backward<float>}, {forward<double>, backward<double>}};
#endif
  return table;
}

}  // namespace extensor::EXTENSOR_ISA
