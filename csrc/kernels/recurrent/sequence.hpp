// What the recurrent layers share: how a sequence is walked, and the products over all of its steps.
//
// The elements of a batch do not know each other. So the batch is cut into blocks of rows, and each block walks through all
// steps by itself: threads meet once per sequence, not once per step, and the states of a block stay in the cache.
#pragma once

#if defined(__AVX512BF16__)
namespace extensor {
struct ReduceTable;
namespace avx512bf16 { const ReduceTable& reduce_table(); }  // that of AVX-512: reduce.hpp asks for it
}  // namespace extensor
#endif

#include "core/threads.hpp"
#include "core/workspace.hpp"
#include "kernels/elementwise/vecmath.hpp"
#include "kernels/matmul/packed_weight.hpp"
#include "kernels/recurrent/recurrent.hpp"
#include "kernels/reduce/reduce.hpp"
#include "kernels/reduce/row_sums.hpp"
#if defined(__AVX512BF16__)
#include "kernels/recurrent/half_weight.hpp"
#else
#include "kernels/matmul/matmul.hpp"
#endif

namespace extensor::EXTENSOR_ISA {

// Once more for AVX512-BF16, the products take their operands as bfloat16; all else stays float32.
#if defined(__AVX512BF16__)
inline const ReduceTable& reduce_table() { return avx512::reduce_table(); }
template <class T>
using StepWeight = PairWeight;
#else
template <class T>
using StepWeight = PackedWeight<T>;
#endif

// The step that comes at place `i` of the walk.
template <class T>
int64_t step_at(const Sequence<T>& s, int64_t i) {
  return s.reverse ? s.steps - 1 - i : i;
}

// Row `row` of what a step of the walk starts from: of `first`, or of `all` after the step before.
template <class T>
const T* before(const Sequence<T>& s, int64_t i, int64_t row, const T* first, const T* all) {
  return i == 0 ? first + row * s.hidden : all + (step_at(s, i - 1) * s.batch + row) * s.hidden;
}

// body(first row, rows) for each block of the batch: as many for each thread, none much larger than the cache likes. No bit of
// a result depends on the cut, for a row is the same chain of operations in every block.
template <class T, class Body>
void for_each_block(const Sequence<T>& s, const Body& body) {
  constexpr double worth_sharing_ns = 50e3;
  constexpr int64_t thinnest = 4, thickest = 48;
  if (s.batch < 1) return;
  const int64_t threads = sequence_ns(s) > worth_sharing_ns ? get_num_threads() : 1;
  const int64_t blocks = threads * ((s.batch + threads * thickest - 1) / (threads * thickest));
  int64_t rows = (s.batch + blocks - 1) / blocks;
  if (rows < thinnest) rows = thinnest;
  parallel_chunks(s.batch, Chunks{rows, (s.batch + rows - 1) / rows}, [&](int64_t begin, int64_t end) { body(begin, end - begin); });
}

// body(row, unit, count): the vectors of units of some rows.
template <class T, class Body>
EXTENSOR_INLINE void for_each_unit(int64_t first, int64_t rows, int64_t hidden, const Body& body) {
  for (int64_t row = first; row < first + rows; ++row)
    for_each_vector<T>(hidden, [&](int64_t i, int64_t count) EXTENSOR_INLINE_LAMBDA { body(row, i, count); });
}

template <class T>
void multiply(const Product<T>& product) {
  if (product.m == 0) return;
#if defined(__AVX512BF16__)
  multiply_rounded(product);
#else
  if constexpr (sizeof(T) == 4) matmul_table().float32(product, {});
  else matmul_table().float64(product, {});
#endif
}

// out[rows, outputs] (+)= x[rows, inputs] weight[outputs, inputs]^T + bias
template <class T>
void map(const T* x, int64_t rows, int64_t inputs, const T* weight, int64_t outputs, const T* bias, bool accumulate, T* out) {
  Product<T> product{rows, outputs, inputs, x, inputs, 1, weight, 1, inputs, out, outputs};
  product.accumulate = accumulate;
  product.column_bias = bias;
  multiply(product);
}

// out[outputs, inputs] (+)= grad[rows, outputs]^T x[rows, inputs]: the gradient of a weight.
template <class T>
void weight_gradient(const T* grad, int64_t rows, int64_t outputs, const T* x, int64_t inputs, bool accumulate, T* out) {
  Product<T> product{outputs, inputs, rows, grad, 1, outputs, x, inputs, 1, out, inputs};
  product.accumulate = accumulate;
  multiply(product);
}

// The sum of both biases in `to`; nullptr where there is none.
template <class T>
const T* joined_bias(const Sequence<T>& s, T* to) {
  if (s.b_ih == nullptr && s.b_hh == nullptr) return nullptr;
  for (int64_t i = 0; i < s.gates * s.hidden; ++i)
    to[i] = (s.b_ih == nullptr ? T(0) : s.b_ih[i]) + (s.b_hh == nullptr ? T(0) : s.b_hh[i]);
  return to;
}

// w_hh^T as the forward reads it, and w_hh as the backward does.
template <class T>
StepWeight<T> pack_forward(const Sequence<T>& s, T* room) {
  return {s.hidden, s.gates * s.hidden, s.w_hh, 1, s.hidden, room};
}
template <class T>
StepWeight<T> pack_backward(const Sequence<T>& s, T* room) {
  return {s.gates * s.hidden, s.hidden, s.w_hh, s.hidden, 1, room};
}
template <class T>
int64_t packed_room(const Sequence<T>& s, bool backward) {
  const int64_t wide = s.gates * s.hidden;
  return backward ? StepWeight<T>::room(wide, s.hidden) : StepWeight<T>::room(s.hidden, wide);
}

// The sum over the rows of grad[rows, wide].
template <class T>
void bias_gradient(const T* grad, int64_t rows, int64_t wide, T* out) {
  ReduceLayout layout;
  layout.length = rows, layout.length_stride = wide, layout.inner = wide;
  if constexpr (sizeof(T) == 4) reduce_table().float32(Reduction::sum, layout, grad, out, 0);
  else reduce_table().float64(Reduction::sum, layout, grad, out, 0);
}

// The last pass of a backward, over all steps at once. grad_a and grad_u: the gradients of x w_ih^T + b_ih and of
// h w_hh^T + b_hh; the same where nothing but their sum was used.
template <class T>
void finish_gradients(const Sequence<T>& s, const T* hidden, const T* grad_a, const T* grad_u, const SequenceGradients<T>& grads) {
  const int64_t rows = s.steps * s.batch, wide = s.gates * s.hidden;
  if (grads.x != nullptr && s.w_ih != nullptr) multiply<T>({rows, s.inputs, wide, grad_a, wide, 1, s.w_ih, s.inputs, 1, grads.x, s.inputs});
  if (grads.w_ih != nullptr) weight_gradient(grad_a, rows, wide, s.x, s.inputs, false, grads.w_ih);
  if (grads.w_hh != nullptr) {
    // The first step of the walk started from h, the others from the hidden state of a neighbour.
    const int64_t others = rows - s.batch;
    const T* of_first = grad_u + step_at(s, 0) * s.batch * wide;
    const T* of_others = s.reverse ? grad_u : grad_u + s.batch * wide;
    const T* neighbours = s.reverse ? hidden + s.batch * s.hidden : hidden;
    if (others > 0) weight_gradient(of_others, others, wide, neighbours, s.hidden, false, grads.w_hh);
    weight_gradient(of_first, s.batch, wide, s.h, s.hidden, others > 0, grads.w_hh);
  }
  if (grads.b_ih != nullptr) bias_gradient(grad_a, rows, wide, grads.b_ih);
  if (grads.b_hh != nullptr && (grads.b_ih == nullptr || grad_u != grad_a)) bias_gradient(grad_u, rows, wide, grads.b_hh);
  else if (grads.b_hh != nullptr)
    for (int64_t i = 0; i < wide; ++i) grads.b_hh[i] = grads.b_ih[i];
}

}  // namespace extensor::EXTENSOR_ISA
