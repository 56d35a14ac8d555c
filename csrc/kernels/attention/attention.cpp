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

// Rows of scores are whole vectors; what lies behind the last key is nobody's.
template <class T>
constexpr int64_t whole_vectors(int64_t count) {
  return (count + Vec<T>::lanes - 1) / Vec<T>::lanes * Vec<T>::lanes;
}

// The softmax of a row of scores, in place, of which the first `visible` are not hidden by their place.
template <class T>
EXTENSOR_INLINE void attend_row(const Attention<T>& a, int64_t batch, int64_t query, int64_t visible, int64_t seen, T* scores) {
  constexpr int lanes = Vec<T>::lanes;
  const int64_t mask = a.mask_offsets == nullptr ? 0 : a.mask_offsets[batch] + query * a.mask_row;
  const int64_t filled = whole_vectors<T>(visible);
  const T hidden = T(-__builtin_inf());
  if (a.allowed != nullptr)
    for (int64_t j = 0; j < visible; ++j) scores[j] = a.allowed[mask + j * a.mask_column] ? scores[j] : hidden;
  else if (a.added != nullptr)
    for (int64_t j = 0; j < visible; ++j) scores[j] += a.added[mask + j * a.mask_column];
  for (int64_t j = visible; j < filled; ++j) scores[j] = hidden;
  for (int64_t j = filled; j < seen; ++j) scores[j] = 0;
  const double largest = fold_row<Largest, T>(scores, filled);
  if (largest == -__builtin_inf()) {
    for (int64_t j = 0; j < filled; ++j) scores[j] = 0;  // a query that sees nothing
    return;
  }
  const Vec<T> sum(sum_vectors<T>(filled, [&](int64_t i, int64_t) EXTENSOR_INLINE_LAMBDA {
    const Vec<T> e = exp(load(scores + i) - largest);
    store(scores + i, e);
    return e;
  }));
  for (int64_t i = 0; i < filled; i += lanes) store(scores + i, load(scores + i) / sum);
}

template <class T>
void attend(const Attention<T>& a, const Block<T>& block, T* scaled, T* scores) {
  const T scale = T(a.scale);
  for (int64_t r = 0; r < block.rows; ++r) {
    const T* q = a.q.at(block.batch, block.start + r);
    for (int64_t i = 0; i < a.features; ++i) scaled[r * a.features + i] = q[i] * scale;
  }
  multiply<T>({block.rows, block.seen, a.features, scaled, a.features, 1, a.k.at(block.batch, 0), 1, a.k.row, scores, whole_vectors<T>(block.seen)});
  for (int64_t r = 0; r < block.rows; ++r) {
    const int64_t query = block.start + r, visible = a.causal && query + 1 < block.seen ? query + 1 : block.seen;
    attend_row(a, block.batch, query, visible, block.seen, scores + r * whole_vectors<T>(block.seen));
  }
}

template <class T>
void forward(const Attention<T>& a, const Matrices<T>& out) {
  const int64_t most = rows_per_block(a), blocks = (a.queries + most - 1) / most;
  const int64_t room = whole_vectors<T>(a.keys);
  const size_t bytes = size_t(most * (room + a.features)) * sizeof(T);
  parallel_for(a.batch * blocks, attention_ns(a) / double(a.batch * blocks), [&](int64_t begin, int64_t end) {
    T* scores = static_cast<T*>(acquire_buffer(bytes));
    for (int64_t i = begin; i < end; ++i) {
      const Block<T> block = block_at(a, i / blocks, i % blocks * most, most);
      attend(a, block, scores + most * room, scores);
      multiply<T>({block.rows, a.values, block.seen, scores, whole_vectors<T>(block.seen), 1, a.v.at(block.batch, 0), a.v.row, 1,
                   out.at(block.batch, block.start), out.row});
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
void clear(const Matrices<T>& x, int64_t batch, int64_t rows, int64_t columns) {
  if (x.data == nullptr) return;
  for (int64_t r = 0; r < rows; ++r) __builtin_memset(x.at(batch, r), 0, size_t(columns) * sizeof(T));
}

template <class T>
struct Gradients {
  Matrices<T> q, k, v;
};

template <class T>
void backward_batch(const Attention<T>& a, int64_t batch, const Matrices<const T>& g, const Gradients<T>& grads, T* buffer) {
  const int64_t most = rows_per_block(a), room = whole_vectors<T>(a.keys);
  T* grad = buffer + most * room;
  T* scaled = grad + most * room;
  clear(grads.k, batch, a.keys, a.features);
  clear(grads.v, batch, a.keys, a.values);
  for (int64_t start = 0; start < a.queries; start += most) {
    const Block<T> block = block_at(a, batch, start, most);
    const int64_t rows = block.rows, seen = block.seen, wide = whole_vectors<T>(seen);
    const T* dy = g.at(batch, start);
    attend(a, block, scaled, buffer);
    if (grads.v.data != nullptr) {
      Product<T> product{seen, a.values, rows, buffer, 1, wide, dy, g.row, 1, grads.v.at(batch, 0), grads.v.row};
      product.accumulate = true;
      multiply(product);
    }
    if (grads.q.data == nullptr && grads.k.data == nullptr) continue;
    multiply<T>({rows, seen, a.values, dy, g.row, 1, a.v.at(batch, 0), 1, a.v.row, grad, wide});
    for (int64_t r = 0; r < rows; ++r) scores_backward(buffer + r * wide, seen, a.scale, grad + r * wide);
    if (grads.q.data != nullptr)
      multiply<T>({rows, a.features, seen, grad, wide, 1, a.k.at(batch, 0), a.k.row, 1, grads.q.at(batch, start), grads.q.row});
    if (grads.k.data != nullptr) {
      Product<T> product{seen, a.features, rows, grad, 1, wide, a.q.at(batch, start), a.q.row, 1, grads.k.at(batch, 0), grads.k.row};
      product.accumulate = true;
      multiply(product);
    }
  }
}

// Keys and values collect from all queries of their batch element, so one thread does all of one element; where there is
// only one element, its products are shared instead.
template <class T>
void backward(const Attention<T>& a, const Matrices<const T>& g, const Matrices<T>& grad_q, const Matrices<T>& grad_k,
              const Matrices<T>& grad_v) {
  const int64_t most = rows_per_block(a);
  const size_t bytes = size_t(most * (2 * whole_vectors<T>(a.keys) + a.features)) * sizeof(T);
  const auto run = [&](int64_t begin, int64_t end) {
    T* buffer = static_cast<T*>(acquire_buffer(bytes));
    for (int64_t b = begin; b < end; ++b) backward_batch(a, b, g, Gradients<T>{grad_q, grad_k, grad_v}, buffer);
    recycle_buffer(buffer, bytes);
  };
  if (a.batch == 1) run(0, 1);
  else parallel_for(a.batch, 3 * attention_ns(a) / double(a.batch), run);
}

template <class T>
bool are_finite(const Matrices<const T>& x, int64_t batch, int64_t rows, int64_t columns) {
  const Vec<T> largest(pick<T>(3.4028234663852886e38, 1.7976931348623157e308));
  Mask<T> strange = largest < largest;  // none
  for (int64_t b = 0; b < batch; ++b) {
    for (int64_t r = 0; r < rows; ++r) {
      const T* row = x.at(b, r);
      for_each_vector<T>(columns, [&](int64_t i, int64_t lanes) EXTENSOR_INLINE_LAMBDA {
        strange = strange || !(abs(load_first(row + i, lanes)) <= largest);
      });
    }
  }
  return !any(strange);
}

}  // namespace

const AttentionTable& attention_table() {
  static constexpr AttentionTable table = {{are_finite<float>, forward<float>, backward<float>},
                                           {are_finite<double>, forward<double>, backward<double>}};
  return table;
}

}  // namespace extensor::EXTENSOR_ISA
