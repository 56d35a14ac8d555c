// Compiled once per instruction set.
//
// forward:   1. gates = x w_ih^T + bias, all steps in one product
//            2. step by step: gates += h w_hh^T, then c = f c + i g, h = o tanh(c)
// backward:  1. the gates of all steps again, from x and the hidden states, in two products
//            2. step by step: the cell states again
//            3. from the last step to the first: the gradients of the gates, in their place, and of the step before
//            4. the gradients of x, the weights and the bias, all steps in one product each
#include "kernels/recurrent/recurrent.hpp"

#include "core/memory.hpp"
#include "core/threads.hpp"
#include "kernels/matmul/matmul.hpp"
#include "kernels/softmax/rows.hpp"

namespace extensor::EXTENSOR_ISA {
namespace {

template <class T>
void multiply(const Product<T>& product) {
  if (product.m == 0) return;
  if constexpr (sizeof(T) == 4) matmul_table().float32(product, {});
  else matmul_table().float64(product, {});
}

// out[rows, outputs] (+)= x[rows, inputs] weight[outputs, inputs]^T
template <class T>
void map(const T* x, int64_t rows, int64_t inputs, const T* weight, int64_t outputs, const T* bias, bool accumulate, T* out) {
  Product<T> product{rows, outputs, inputs, x, inputs, 1, weight, 1, inputs, out, outputs};
  product.accumulate = accumulate;
  product.column_bias = bias;
  multiply(product);
}

// out[outputs, inputs] (+)= grad[rows, outputs]^T x[rows, inputs]
template <class T>
void weight_gradient(const T* grad, int64_t rows, int64_t outputs, const T* x, int64_t inputs, bool accumulate, T* out) {
  Product<T> product{outputs, inputs, rows, grad, 1, outputs, x, inputs, 1, out, inputs};
  product.accumulate = accumulate;
  multiply(product);
}

// body(row, unit, count): the vectors of units of each batch element.
template <class T, class Body>
void for_each_unit(const Lstm<T>& l, const Body& body) {
  parallel_for(l.batch, double(l.hidden) * lstm_ns, [&](int64_t begin, int64_t end) {
    for (int64_t b = begin; b < end; ++b)
      for_each_vector<T>(l.hidden, [&](int64_t i, int64_t count) EXTENSOR_INLINE_LAMBDA { body(b, i, count); });
  });
}

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

template <class T>
EXTENSOR_INLINE Gates<T> opened(const Gates<T>& a) {
  return {sigmoid(a.i), sigmoid(a.f), tanh(a.g), sigmoid(a.o)};
}

template <class T>
void forward(const Lstm<T>& l, T* gates, T* hidden, T* c_out) {
  const int64_t units = l.batch * l.hidden;
  map(l.x, l.steps * l.batch, l.inputs, l.w_ih, 4 * l.hidden, l.bias, false, gates);
  const T* h = l.h;
  const T* c = l.c;
  for (int64_t s = 0; s < l.steps; ++s) {
    const int64_t t = l.reverse ? l.steps - 1 - s : s;
    T* a = gates + t * 4 * units;
    T* to = hidden + t * units;
    map(h, l.batch, l.hidden, l.w_hh, 4 * l.hidden, static_cast<const T*>(nullptr), true, a);
    for_each_unit(l, [&](int64_t b, int64_t i, int64_t count) EXTENSOR_INLINE_LAMBDA {
      const Gates<T> open = opened(load_gates(a + b * 4 * l.hidden + i, l.hidden, count));
      const int64_t at = b * l.hidden + i;
      const Vec<T> cell = open.f * load_first(c + at, count) + open.i * open.g;
      store_first(c_out + at, cell, count);
      store_first(to + at, open.o * tanh(cell), count);
    });
    h = to, c = c_out;
  }
}

template <class T>
void backward(const Lstm<T>& l, const T* hidden, const T* g_hidden, const T* g_c, T* gates, T* cells, T* carried, const LstmGradients<T>& grads) {
  const int64_t units = l.batch * l.hidden, rows = l.steps * l.batch, wide = 4 * l.hidden, others = rows - l.batch;
  // The steps after the first of the walk start from the hidden state of a neighbour, the first one from h.
  const int64_t first = l.reverse ? l.steps - 1 : 0;
  const T* before = l.reverse ? hidden + units : hidden;       // the hidden states that others start from
  T* others_gates = l.reverse ? gates : gates + 4 * units;     // and the gates of those others
  map(l.x, rows, l.inputs, l.w_ih, wide, l.bias, false, gates);
  map(l.h, l.batch, l.hidden, l.w_hh, wide, static_cast<const T*>(nullptr), true, gates + first * 4 * units);
  map(before, others, l.hidden, l.w_hh, wide, static_cast<const T*>(nullptr), true, others_gates);
  const T* c = l.c;
  for (int64_t s = 0; s < l.steps; ++s) {
    const int64_t t = l.reverse ? l.steps - 1 - s : s;
    T* a = gates + t * 4 * units;
    T* to = cells + t * units;
    for_each_unit(l, [&](int64_t b, int64_t i, int64_t count) EXTENSOR_INLINE_LAMBDA {
      const Gates<T> open = opened(load_gates(a + b * wide + i, l.hidden, count));
      const int64_t at = b * l.hidden + i;
      store_gates(a + b * wide + i, l.hidden, open, count);
      store_first(to + at, open.f * load_first(c + at, count) + open.i * open.g, count);
    });
    c = to;
  }
  T* carried_h = carried;
  T* carried_c = carried + units;
  for (int64_t i = 0; i < units; ++i) carried_h[i] = 0, carried_c[i] = g_c[i];
  for (int64_t s = l.steps - 1; s >= 0; --s) {
    const int64_t t = l.reverse ? l.steps - 1 - s : s;
    T* a = gates + t * 4 * units;
    const T* cell = cells + t * units;
    const T* from = s == 0 ? l.c : cells + (l.reverse ? t + 1 : t - 1) * units;
    const T* dy = g_hidden + t * units;
    for_each_unit(l, [&](int64_t b, int64_t i, int64_t count) EXTENSOR_INLINE_LAMBDA {
      const Gates<T> open = load_gates(a + b * wide + i, l.hidden, count);
      const int64_t at = b * l.hidden + i;
      const Vec<T> squashed = tanh(load_first(cell + at, count)), one(1.0);
      const Vec<T> d_h = load_first(dy + at, count) + load_first(carried_h + at, count);
      const Vec<T> d_c = load_first(carried_c + at, count) + d_h * open.o * (one - squashed * squashed);
      store_gates(a + b * wide + i, l.hidden,
                  {d_c * open.g * open.i * (one - open.i), d_c * load_first(from + at, count) * open.f * (one - open.f),
                   d_c * open.i * (one - open.g * open.g), d_h * squashed * open.o * (one - open.o)},
                  count);
      store_first(carried_c + at, d_c * open.f, count);
    });
    multiply<T>({l.batch, l.hidden, wide, a, wide, 1, l.w_hh, l.hidden, 1, carried_h, l.hidden});
  }
  for (int64_t i = 0; i < units; ++i) {
    if (grads.h != nullptr) grads.h[i] = carried_h[i];
    if (grads.c != nullptr) grads.c[i] = carried_c[i];
  }
  if (grads.x != nullptr) multiply<T>({rows, l.inputs, wide, gates, wide, 1, l.w_ih, l.inputs, 1, grads.x, l.inputs});
  if (grads.w_ih != nullptr) weight_gradient(gates, rows, wide, l.x, l.inputs, false, grads.w_ih);
  if (grads.w_hh != nullptr) {
    weight_gradient(gates + first * 4 * units, l.batch, wide, l.h, l.hidden, false, grads.w_hh);
    if (others > 0) weight_gradient(others_gates, others, wide, before, l.hidden, true, grads.w_hh);
  }
  if (grads.bias != nullptr) {
    const int64_t padded = (wide + Vec<T>::lanes - 1) / Vec<T>::lanes * Vec<T>::lanes;
    const size_t bytes = size_t(padded) * sizeof(double);
    double* sums = static_cast<double*>(acquire_buffer(bytes));
    for (int64_t i = 0; i < padded; ++i) sums[i] = 0;
    for (int64_t r = 0; r < rows; ++r)
      for_each_vector<T>(wide, [&](int64_t i, int64_t count) EXTENSOR_INLINE_LAMBDA { add_to_sums(sums + i, load_first(gates + r * wide + i, count)); });
    for (int64_t i = 0; i < wide; ++i) grads.bias[i] = T(sums[i]);
    recycle_buffer(sums, bytes);
  }
}

}  // namespace

const LstmTable& lstm_table() {
  static constexpr LstmTable table = {{forward<float>, backward<float>}, {forward<double>, backward<double>}};
  return table;
}

}  // namespace extensor::EXTENSOR_ISA
