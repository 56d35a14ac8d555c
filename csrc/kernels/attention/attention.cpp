// Compiled once per instruction set.
//
// A block is some queries of one batch element with complete rows of scores:
//   1. scores = (scale q) k^T        a product
//   2. p = softmax(scores + mask)    row by row; hidden keys get exactly 0
//   3. out = p v                     a product
// and back, from the same p:
//   4. dv += p^T dy                  5. dp = dy v^T
//   6. ds = scale p (dp - sum(p dp))
//   7. dq = ds k                     8. dk += ds^T q
#include "kernels/attention/attention.hpp"

#include "core/memory.hpp"
#include "core/threads.hpp"
#include "kernels/matmul/matmul.hpp"
#include "kernels/softmax/rows.hpp"

namespace extensor::EXTENSOR_ISA {
namespace {

constexpr int64_t block_scores = 1 << 18;

template <class T>
void multiply(const Product<T>& product) {
  if constexpr (sizeof(T) == 4) matmul_table().float32(product, {});
  else matmul_table().float64(product, {});
}

template <class T>
struct Block {
  int64_t batch, start, rows, seen;  // `seen` keys at most are visible from here
};

template <class T>
int64_t rows_per_block(const Attention<T>& a) {
  int64_t rows = block_scores / (a.keys + 1);
  if (a.causal && rows > 64) rows = 64;  // a causal block skips the keys behind its last query
  return rows < 1 ? 1 : rows > a.queries ? a.queries : rows;
}

template <class T>
Block<T> block_at(const Attention<T>& a, int64_t batch, int64_t start, int64_t most) {
  const int64_t rows = a.queries - start < most ? a.queries - start : most;
  const int64_t seen = a.causal && start + rows < a.keys ? start + rows : a.keys;
  return {batch, start, rows, seen};
}

// The softmax of a row of scores, in place, of which the first `visible` are not hidden by their place.
template <class T>
EXTENSOR_INLINE void attend_row(const Attention<T>& a, int64_t batch, int64_t query, int64_t visible, int64_t seen, T* scores) {
  const int64_t mask = a.mask_offsets == nullptr ? 0 : a.mask_offsets[batch] + query * a.mask_row;
  const T hidden = T(-__builtin_inf());
  if (a.allowed != nullptr)
    for (int64_t j = 0; j < visible; ++j) scores[j] = a.allowed[mask + j * a.mask_column] ? scores[j] : hidden;
  else if (a.added != nullptr)
    for (int64_t j = 0; j < visible; ++j) scores[j] += a.added[mask + j * a.mask_column];
  for (int64_t j = visible; j < seen; ++j) scores[j] = 0;
  if (fold_row<Largest, T>(scores, visible) == -__builtin_inf()) {
    for (int64_t j = 0; j < visible; ++j) scores[j] = 0;  // a query that sees nothing
  } else {
    softmax_row(scores, visible, scores);
  }
}

template <class T>
void attend(const Attention<T>& a, const Block<T>& block, T* scaled, T* scores) {
  const T* q = a.q + (block.batch * a.queries + block.start) * a.features;
  const T scale = T(a.scale);
  for (int64_t i = 0; i < block.rows * a.features; ++i) scaled[i] = q[i] * scale;
  multiply<T>({block.rows, block.seen, a.features, scaled, a.features, 1, a.k + block.batch * a.keys * a.features, 1, a.features, scores, block.seen});
  for (int64_t r = 0; r < block.rows; ++r) {
    const int64_t query = block.start + r, visible = a.causal && query + 1 < block.seen ? query + 1 : block.seen;
    attend_row(a, block.batch, query, visible, block.seen, scores + r * block.seen);
  }
}

template <class T>
void forward(const Attention<T>& a, T* out) {
  const int64_t most = rows_per_block(a), blocks = (a.queries + most - 1) / most;
  const size_t bytes = size_t(most * (a.keys + a.features)) * sizeof(T);
  parallel_for(a.batch * blocks, attention_ns(a) / double(a.batch * blocks), [&](int64_t begin, int64_t end) {
    T* scores = static_cast<T*>(acquire_buffer(bytes));
    for (int64_t i = begin; i < end; ++i) {
      const Block<T> block = block_at(a, i / blocks, i % blocks * most, most);
      attend(a, block, scores + most * a.keys, scores);
      multiply<T>({block.rows, a.values, block.seen, scores, block.seen, 1, a.v + block.batch * a.keys * a.values, a.values, 1,
                   out + (block.batch * a.queries + block.start) * a.values, a.values});
    }
    recycle_buffer(scores, bytes);
  });
}

// 6., with dp in `grad`, which becomes ds.
template <class T>
EXTENSOR_INLINE void scores_backward(const T* p, int64_t n, double scale, T* grad) {
  const Vec<T> sum(sum_vectors<T>(n, [&](int64_t i, int64_t count) EXTENSOR_INLINE_LAMBDA {
    return load_first(p + i, count) * load_first(grad + i, count);
  }));
  const Vec<T> factor(scale);
  for_each_vector<T>(n, [&](int64_t i, int64_t count) EXTENSOR_INLINE_LAMBDA {
    store_first(grad + i, load_first(p + i, count) * (load_first(grad + i, count) - sum) * factor, count);
  });
}

template <class T>
void backward_batch(const Attention<T>& a, int64_t batch, const T* g, T* grad_q, T* grad_k, T* grad_v, T* buffer) {
  const int64_t most = rows_per_block(a), of_keys = batch * a.keys;
  T* grad = buffer + most * a.keys;
  T* scaled = grad + most * a.keys;
  if (grad_k != nullptr) __builtin_memset(grad_k + of_keys * a.features, 0, size_t(a.keys * a.features) * sizeof(T));
  if (grad_v != nullptr) __builtin_memset(grad_v + of_keys * a.values, 0, size_t(a.keys * a.values) * sizeof(T));
  for (int64_t start = 0; start < a.queries; start += most) {
    const Block<T> block = block_at(a, batch, start, most);
    const int64_t of_queries = batch * a.queries + start, rows = block.rows, seen = block.seen;
    const T* dy = g + of_queries * a.values;
    attend(a, block, scaled, buffer);
    if (grad_v != nullptr) {
      Product<T> product{seen, a.values, rows, buffer, 1, seen, dy, a.values, 1, grad_v + of_keys * a.values, a.values};
      product.accumulate = true;
      multiply(product);
    }
    if (grad_q == nullptr && grad_k == nullptr) continue;
    multiply<T>({rows, seen, a.values, dy, a.values, 1, a.v + of_keys * a.values, 1, a.values, grad, seen});
    for (int64_t r = 0; r < rows; ++r) scores_backward(buffer + r * seen, seen, a.scale, grad + r * seen);
    if (grad_q != nullptr)
      multiply<T>({rows, a.features, seen, grad, seen, 1, a.k + of_keys * a.features, a.features, 1, grad_q + of_queries * a.features, a.features});
    if (grad_k != nullptr) {
      Product<T> product{seen, a.features, rows, grad, 1, seen, a.q + of_queries * a.features, a.features, 1, grad_k + of_keys * a.features, a.features};
      product.accumulate = true;
      multiply(product);
    }
  }
}

// Keys and values collect from all queries of their batch element, so one thread does all of one element; where there is
// only one element, its products are shared instead.
template <class T>
void backward(const Attention<T>& a, const T* g, T* grad_q, T* grad_k, T* grad_v) {
  const int64_t most = rows_per_block(a);
  const size_t bytes = size_t(most * (2 * a.keys + a.features)) * sizeof(T);
  const auto run = [&](int64_t begin, int64_t end) {
    T* buffer = static_cast<T*>(acquire_buffer(bytes));
    for (int64_t b = begin; b < end; ++b) backward_batch(a, b, g, grad_q, grad_k, grad_v, buffer);
    recycle_buffer(buffer, bytes);
  };
  if (a.batch == 1) run(0, 1);
  else parallel_for(a.batch, 3 * attention_ns(a) / double(a.batch), run);
}

template <class T>
bool is_finite(const T* x, int64_t count) {
  const Vec<T> largest(pick<T>(3.4028234663852886e38, 1.7976931348623157e308));
  bool finite = true;
  for_each_vector<T>(count, [&](int64_t i, int64_t lanes) EXTENSOR_INLINE_LAMBDA {
    finite = finite && !any(!(abs(load_first(x + i, lanes)) <= largest));
  });
  return finite;
}

}  // namespace

const AttentionTable& attention_table() {
  static constexpr AttentionTable table = {{is_finite<float>, forward<float>, backward<float>},
                                           {is_finite<double>, forward<double>, backward<double>}};
  return table;
}

}  // namespace extensor::EXTENSOR_ISA
