// Compiled once per instruction set.
//
// As many queries, of one batch element, as the first-level cache holds complete rows of scores for, or a register tile has rows:
//   1. scores = (scale q) k^T        2. p = softmax(scores + mask), row by row; hidden keys get exactly 0
//   3. out = p v
// and back, the p and ds of a block of queries being kept:
//   4. dp = dy v^T                   5. ds = scale p (dp - sum(p dp))
//   6. dq = ds k                     7. dv += p^T dy, dk += ds^T q
// What stays the same for all queries is packed once per batch element. Of a causal product, the tiles that lie behind their
// queries are left out.
#include "kernels/attention/attention.hpp"

#include <atomic>

#include "core/threads.hpp"
#include "core/workspace.hpp"
#include "kernels/matmul/packed_weight.hpp"
#include "kernels/softmax/rows.hpp"

namespace extensor::EXTENSOR_ISA {
namespace {

constexpr int64_t block_scores = 1 << 18;

constexpr int64_t least(int64_t a, int64_t b) { return a < b ? a : b; }
constexpr int64_t most(int64_t a, int64_t b) { return a > b ? a : b; }

// Rows of scores are whole panels and whole wide vectors; what lies behind the last key is nobody's.
template <class T>
constexpr int64_t whole_panels(int64_t count) {
  constexpr int64_t unit = panel_width<T> < wide_lanes<T> ? wide_lanes<T> : panel_width<T>;
  return (count + unit - 1) / unit * unit;
}

template <class T>
int64_t rows_per_block(const Attention<T>& a) {
  int64_t rows = block_scores / (a.keys + 1);
  if (a.causal && rows > 64) rows = 64;  // a causal block skips the keys behind its last query
  return rows < 1 ? 1 : rows > a.queries ? a.queries : rows;
}

// Some queries, and the keys that the last of them sees.
struct Block {
  int64_t batch, start, rows, seen;
};

template <class T>
Block block_at(const Attention<T>& a, int64_t batch, int64_t start, int64_t rows) {
  return {batch, start, rows, a.causal ? least(a.keys, start + rows) : a.keys};
}

// body(first, rows): `count` rows in parts of nearly equal heights, `highest` at most; `shared` between threads, or not.
template <class Body>
void for_each_part(int64_t count, int64_t highest, bool shared, double row_ns, const Body& body) {
  const int64_t parts = (count + highest - 1) / highest;
  const auto run = [&](int64_t begin, int64_t end) {
    for (int64_t t = begin; t < end; ++t) body(t * count / parts, (t + 1) * count / parts - t * count / parts);
  };
  if (shared) parallel_for(parts, row_ns * double(highest), run);
  else run(0, parts);
}

template <class Body>
void for_each_tile(int64_t count, const Body& body) {
  for_each_part(count, max_rows, false, 0, body);
}

// Queries that go through each stage together: many, for the stages of one wait for each other.
constexpr int64_t most_together = 64;

template <class T>
constexpr int64_t rows_together(int64_t wide) {
  return least(most_together, most(max_rows, 16 * 1024 / (wide * int64_t(sizeof(T)))));
}

// -0 becomes 0. A sum that underflowed is -0, and 0 once a hidden key is added; a tile ends with some of them, and its height
// depends on the registers.
template <class T>
void unsign_zeros(const Matrices<T>& x, int64_t batch, int64_t start, int64_t rows, int64_t columns) {
  T* row = x.at(batch, start);
  for (int64_t r = 0; r < rows; ++r, row += x.row)
    for_each_vector<T>(columns, [&](int64_t i, int64_t lanes) EXTENSOR_INLINE_LAMBDA {
      store_first(row + i, load_first(row + i, lanes) + 0.0, lanes);
    });
}

template <class T>
bool are_finite(const Matrices<T>& x, int64_t batch, int64_t start, int64_t rows, int64_t columns) {
  const Vec<T> zero(0.0);
  Vec<T> zeros = zero;  // 0 times an inf or a nan is a nan, and stays
  const T* row = x.at(batch, start);
  for (int64_t r = 0; r < rows; ++r, row += x.row)
    for_each_vector<T>(columns, [&](int64_t i, int64_t lanes) EXTENSOR_INLINE_LAMBDA {
      zeros = fma(load_first(row + i, lanes), zero, zeros);
    });
  return !any(isnan(zeros));
}

// How many keys the query `i` of a block sees, and how many scores that is in whole wide vectors.
template <class T>
EXTENSOR_INLINE int64_t visible_of(const Attention<T>& a, const Block& block, int64_t i) {
  return a.causal ? least(block.start + i + 1, block.seen) : block.seen;
}
template <class T>
EXTENSOR_INLINE int64_t filled_of(const Attention<T>& a, const Block& block, int64_t i) {
  return (visible_of(a, block, i) + wide_lanes<T> - 1) / wide_lanes<T> * wide_lanes<T>;
}

// What is summed up or searched in some rows, a vector for each; then a number for each.
template <class A>
struct OfRows {
  static constexpr int lanes = wide_lanes<A>;
  Wide<A> parts[most_together / lanes][lanes];

  EXTENSOR_INLINE Wide<A>& operator[](int64_t row) { return parts[row / lanes][row % lanes]; }
  template <class Step, class T>
  EXTENSOR_INLINE void fold(int64_t rows, T (&results)[most_together]) {
    for (int64_t r = rows; r % lanes != 0; ++r) (*this)[r] = (*this)[0];
    for (int64_t r = 0; r < rows; r += lanes) store_wide_as<T>(results + r, fold_lanes_of_each<Step>(parts[r / lanes]));
  }
};

// The sum over the vectors of a row of f(i), in float64, still in lanes.
template <class T, class Function>
EXTENSOR_INLINE Wide<double> sum_in_lanes(int64_t filled, const Function& f) {
  constexpr int parts = wide_lanes<T> / wide_lanes<double>;
  Wide<double> sums[parts];
  for (Wide<double>& sum : sums) sum = Wide<double>(0.0);
  for (int64_t i = 0; i < filled; i += wide_lanes<T>) {
    const Wide<T> value = f(i);
    for (int part = 0; part < parts; ++part) sums[part] = Add::combine(sums[part], widened_part(value, part));
  }
  return parts == 1 ? sums[0] : sums[0] + sums[parts - 1];
}

// The largest scores of a row that are not hidden, lane by lane, the hidden ones being set to -inf. A nan may be passed over:
// it will be found in the result.
template <class T>
EXTENSOR_INLINE Wide<T> hide(const Attention<T>& a, const Block& block, int64_t i, T* scores) {
  const int64_t query = block.start + i, visible = a.causal ? least(query + 1, block.seen) : block.seen;
  const int64_t mask = a.mask_offsets == nullptr ? 0 : a.mask_offsets[block.batch] + query * a.mask_row;
  const T hidden = T(-__builtin_inf());
  if (a.allowed != nullptr)
    for (int64_t j = 0; j < visible; ++j) scores[j] = a.allowed[mask + j * a.mask_column] ? scores[j] : hidden;
  else if (a.added != nullptr)
    for (int64_t j = 0; j < visible; ++j) scores[j] += a.added[mask + j * a.mask_column];
  const int64_t last = filled_of(a, block, i) - wide_lanes<T>;
  Wide<T> largest = load_wide(scores + last, visible - last, hidden);
  store_wide(scores + last, largest, wide_lanes<T>);
  for (int64_t j = 0; j < last; j += wide_lanes<T>) largest = at_least(largest, load_wide(scores + j));
  return largest;
}

struct Greater {
  template <class T>
  static EXTENSOR_INLINE Vec<T> combine(Vec<T> a, Vec<T> b) { return at_least(a, b); }
};

// 1. and 2. for some queries, p in `scores`, 0 up to the last key of the block.
template <class T>
void attend(const Attention<T>& a, const Block& block, const PackedWeight<T>& k, T* scaled, T* scores, int64_t wide) {
  constexpr int lanes = Vec<T>::lanes;
  const Vec<T> scale(double(T(a.scale)));
  const T* q = a.q.at(block.batch, block.start);
  for (int64_t r = 0; r < block.rows; ++r, q += a.q.row)
    for_each_vector<T>(a.features, [&](int64_t i, int64_t count) EXTENSOR_INLINE_LAMBDA {
      store_first(scaled + r * a.features + i, load_first(q + i, count) * scale, count);
    });
  for_each_tile(block.rows, [&](int64_t first, int64_t rows) {
    const int64_t seen = block_at(a, block.batch, block.start + first, rows).seen;
    k.multiply_part(rows, 0, a.features, seen, scaled + first * a.features, a.features, 1, scores + first * wide, wide, false, true);
  });
  OfRows<T> tops;
  OfRows<double> totals;
  T largest[most_together], sums[most_together];
  for (int64_t r = 0; r < block.rows; ++r) tops[r] = hide(a, block, r, scores + r * wide);
  tops.template fold<Greater>(block.rows, largest);
  for (int64_t r = 0; r < block.rows; ++r) {
    T* row = scores + r * wide;
    const Vec<T> shift = broadcast(largest[r] == T(-__builtin_inf()) ? T(0) : largest[r]);  // a query that sees nothing: every p is 0
    totals[r] = sum_in_lanes<T>(filled_of(a, block, r), [&](int64_t i) EXTENSOR_INLINE_LAMBDA {
      const Wide<T> e = exp(load_wide(row + i) - shift);
      store_wide(row + i, e, wide_lanes<T>);
      return e;
    });
  }
  totals.template fold<Add>(block.rows, sums);
  for (int64_t r = 0; r < block.rows; ++r) {
    T* row = scores + r * wide;
    const Vec<T> sum = broadcast(largest[r] == T(-__builtin_inf()) ? T(1) : sums[r]);
    int64_t i = 0;
    for (const int64_t filled = filled_of(a, block, r); i < filled; i += lanes) store(row + i, load(row + i) / sum);
    for (; i < wide; i += lanes) store(row + i, Vec<T>(0.0));
  }
}

template <class T>
bool forward(const Attention<T>& a, const Matrices<T>& out) {
  const int64_t height = rows_per_block(a), blocks = (a.queries + height - 1) / height;
  const int64_t wide = whole_panels<T>(a.keys), of_k = PackedWeight<T>::room(a.features, a.keys), of_v = PackedWeight<T>::room(a.keys, a.values);
  const int64_t together = rows_together<T>(wide);
  std::atomic<bool> finite{true};
  parallel_for(a.batch * blocks, attention_ns(a) / double(a.batch * blocks), [&](int64_t begin, int64_t end) {
    Workspace<T> room(of_k + of_v + together * (wide + a.features));
    T* const scores = room.data() + of_k + of_v;
    for (int64_t i = begin; i < end;) {
      const int64_t batch = i / blocks;
      const PackedWeight<T> k(a.features, a.keys, a.k.at(batch, 0), 1, a.k.row, room.data());
      const PackedWeight<T> v(a.keys, a.values, a.v.at(batch, 0), a.v.row, 1, room.data() + of_k);
      for (; i < end && i / blocks == batch; ++i) {
        const int64_t start = i % blocks * height;
        for_each_part(least(height, a.queries - start), together, false, 0, [&](int64_t first, int64_t rows) {
          const Block block = block_at(a, batch, start + first, rows);
          attend(a, block, k, scores + together * wide, scores, wide);
          for_each_tile(rows, [&](int64_t r, int64_t height) {
            const Block tile = block_at(a, batch, block.start + r, height);
            v.multiply_part(height, 0, tile.seen, a.values, scores + r * wide, wide, 1, out.at(batch, tile.start), out.row, false, false);
          });
          if (a.causal) unsign_zeros(out, batch, block.start, rows, a.values);
          if (!are_finite(out, batch, block.start, rows, a.values)) finite = false;
        });
      }
    }
  });
  return finite;
}

// 5., with dp in `grad`, which becomes ds.
template <class T>
void scores_backward(const Attention<T>& a, const Block& block, const T* p, T* grad, int64_t wide) {
  constexpr int lanes = Vec<T>::lanes;
  const Vec<T> factor(a.scale);
  OfRows<double> totals;
  T sums[most_together];
  if constexpr (panel_width<T> < wide_lanes<T>)  // dp has not been written up to there, and 0 times anything is to be 0
    for (int64_t r = 0; r < block.rows; ++r)
      for (int64_t i = visible_of(a, block, r); i < filled_of(a, block, r); ++i) grad[r * wide + i] = T(0);
  for (int64_t r = 0; r < block.rows; ++r)
    totals[r] = sum_in_lanes<T>(filled_of(a, block, r), [&](int64_t i) EXTENSOR_INLINE_LAMBDA {
      return load_wide(p + r * wide + i) * load_wide(grad + r * wide + i);
    });
  totals.template fold<Add>(block.rows, sums);
  for (int64_t r = 0; r < block.rows; ++r) {
    const T* weights = p + r * wide;
    T* row = grad + r * wide;
    const Vec<T> sum = broadcast(sums[r]);
    int64_t i = 0;
    for (const int64_t filled = filled_of(a, block, r); i < filled; i += lanes)
      store(row + i, load(weights + i) * (load(row + i) - sum) * factor);
    for (; i < wide; i += lanes) store(row + i, Vec<T>(0.0));
  }
}

template <class T>
struct Gradients {
  Matrices<T> q, k, v;
};

// Where the parts of the working memory of a backward begin.
template <class T>
struct BackwardRoom {
  int64_t block_rows, wide, p, ds, scaled, k_across, v_across, k, q, g, size;

  explicit BackwardRoom(const Attention<T>& a) : block_rows(rows_per_block(a)), wide(whole_panels<T>(a.keys)) {
    int64_t end = 0;
    const auto take = [&](int64_t count) { return end += count, end - count; };
    p = take(block_rows * wide), ds = take(block_rows * wide), scaled = take(block_rows * a.features);
    k_across = take(PackedWeight<T>::room(a.features, a.keys)), v_across = take(PackedWeight<T>::room(a.values, a.keys));
    k = take(PackedWeight<T>::room(a.keys, a.features)), q = take(PackedWeight<T>::room(block_rows, a.features));
    g = take(PackedWeight<T>::room(block_rows, a.values));
    size = end;
  }
};

// 7. for a block of queries: to[keys, columns] (+)= weights[queries, keys]^T x[queries, columns]
template <class T>
void collect(const Attention<T>& a, const Block& block, const T* weights, int64_t wide, const PackedWeight<T>& x, int64_t columns,
             const Matrices<T>& to, bool shared) {
  for_each_part(block.seen, max_rows, shared, double(block.rows * columns) * sizeof(T) / 180.0, [&](int64_t first, int64_t keys) {
    const int64_t from = a.causal ? most(first - block.start, 0) : 0;  // the first query that sees one of these keys
    x.multiply_part(keys, from, block.rows, columns, weights + first, 1, wide, to.at(block.batch, first), to.row, block.rows < a.queries, false);
  });
}

// The gradients of the keys that some block of queries does not see start from 0.
template <class T>
void clear(const Attention<T>& a, const Matrices<T>& x, int64_t batch, int64_t columns) {
  if (rows_per_block(a) == a.queries && (!a.causal || a.keys <= a.queries)) return;
  for (int64_t r = 0; r < a.keys; ++r) __builtin_memset(x.at(batch, r), 0, size_t(columns) * sizeof(T));
}

// All gradients of one batch element; false if one is not finite.
template <class T>
bool backward_batch(const Attention<T>& a, int64_t batch, const Matrices<const T>& g, const Gradients<T>& grads, bool shared, T* room) {
  const BackwardRoom<T> at(a);
  const int64_t wide = at.wide;
  const bool wants_q = grads.q.data != nullptr, wants_k = grads.k.data != nullptr, wants_v = grads.v.data != nullptr;
  const PackedWeight<T> k_across(a.features, a.keys, a.k.at(batch, 0), 1, a.k.row, room + at.k_across);
  const PackedWeight<T> v_across(a.values, a.keys, a.v.at(batch, 0), 1, a.v.row, room + at.v_across);
  const PackedWeight<T> k(a.keys, a.features, a.k.at(batch, 0), a.k.row, 1, room + at.k);
  if (wants_k) clear(a, grads.k, batch, a.features);
  if (wants_v) clear(a, grads.v, batch, a.values);
  std::atomic<bool> finite{true};
  for (int64_t start = 0; start < a.queries; start += at.block_rows) {
    const Block block = block_at(a, batch, start, least(at.block_rows, a.queries - start));
    const int64_t together = shared ? max_rows : rows_together<T>(wide);  // one tile for a thread, where threads share a block
    for_each_part(block.rows, together, shared, 3 * attention_ns(a) / double(a.batch * a.queries), [&](int64_t first, int64_t rows) {
      const Block part = block_at(a, batch, start + first, rows);
      T* const p = room + at.p + first * wide;
      T* const ds = room + at.ds + first * wide;
      attend(a, part, k_across, room + at.scaled + first * a.features, p, wide);
      if (!wants_q && !wants_k) return;
      for_each_tile(rows, [&](int64_t r, int64_t height) {
        const Block tile = block_at(a, batch, part.start + r, height);
        v_across.multiply_part(height, 0, a.values, tile.seen, g.at(batch, tile.start), g.row, 1, ds + r * wide, wide, false, true);
      });
      scores_backward(a, part, p, ds, wide);
      if (!wants_q) return;
      for_each_tile(rows, [&](int64_t r, int64_t height) {
        const Block tile = block_at(a, batch, part.start + r, height);
        k.multiply_part(height, 0, tile.seen, a.features, ds + r * wide, wide, 1, grads.q.at(batch, tile.start), grads.q.row, false, false);
      });
      if (a.causal) unsign_zeros(grads.q, batch, part.start, rows, a.features);
      if (!are_finite(grads.q, batch, part.start, rows, a.features)) finite = false;
    });
    if (wants_v) {
      const PackedWeight<T> dy(block.rows, a.values, g.at(batch, start), g.row, 1, room + at.g);
      collect(a, block, room + at.p, wide, dy, a.values, grads.v, shared);
    }
    if (wants_k) {
      const PackedWeight<T> q(block.rows, a.features, a.q.at(batch, start), a.q.row, 1, room + at.q);
      collect(a, block, room + at.ds, wide, q, a.features, grads.k, shared);
    }
  }
  return finite && (!wants_k || are_finite(grads.k, batch, 0, a.keys, a.features)) &&
         (!wants_v || are_finite(grads.v, batch, 0, a.keys, a.values));
}

// Keys and values collect from all queries of their batch element, so one thread does all of one element; where there is
// only one element, its tiles are shared instead.
template <class T>
bool backward(const Attention<T>& a, const Matrices<const T>& g, const Matrices<T>& grad_q, const Matrices<T>& grad_k,
              const Matrices<T>& grad_v) {
  const int64_t size = BackwardRoom<T>(a).size;
  std::atomic<bool> finite{true};
  const auto run = [&](int64_t begin, int64_t end) {
    Workspace<T> room(size);
    for (int64_t b = begin; b < end; ++b)
      if (!backward_batch(a, b, g, Gradients<T>{grad_q, grad_k, grad_v}, a.batch == 1, room.data())) finite = false;
  };
  if (a.batch == 1) run(0, 1);
  else parallel_for(a.batch, 3 * attention_ns(a) / double(a.batch), run);
  return finite;
}

}  // namespace

const AttentionTable& attention_table() {
  static constexpr AttentionTable table = {{forward<float>, backward<float>}, {forward<double>, backward<double>}};
  return table;
}

}  // namespace extensor::EXTENSOR_ISA
