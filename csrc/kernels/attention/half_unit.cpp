// Compiled once, for AVX512-BF16.
//
// For some queries of one batch element:
//   1. scores = q k^T                2. e = exp(scale scores + mask - largest), rounded; hidden keys get exactly 0
//   3. out = (e v) / sum(e)
// and back, p and ds being rounded for the products 6. and 7.:
//   4. dp = dy v^T                   5. p = e / sum(e), ds = scale p (dp - sum(p dp))
//   6. dq = ds k                     7. dv += p^T dy, dk += ds^T q
// What stays the same for all queries is packed once per batch element. Of a causal product, the tiles that lie behind their
// queries are left out.
#include "kernels/attention/half.hpp"

#include <atomic>

#include "core/threads.hpp"
#include "kernels/elementwise/vecmath.hpp"
#include "kernels/matmul/half_pairs_tile.hpp"

namespace extensor::EXTENSOR_ISA {
namespace {

using Operands = Attention<uint16_t>;
constexpr int lanes = Floats::lanes;
constexpr int64_t block_queries = 64;

constexpr int64_t whole(int64_t count, int64_t unit) { return ceil_div(count, unit) * unit; }

// A right-hand side B[k, n] in panels of pairs, packed once.
class PackedPairs {
 public:
  static int64_t room(int64_t k, int64_t n) { return whole(n, half_panel) * ((k + 1) / 2); }

  PackedPairs(int64_t k, int64_t n, const uint16_t* b, int64_t b_row, int64_t b_col, HalfPair* to) : pairs_((k + 1) / 2), data_(to) {
    if (b_col == 1) pack_pairs_along_n(k, n, b, b_row, to);
    for (int64_t j = 0; b_col != 1 && j < n; j += half_panel)
      pack_pairs_b(k, int(min_of(half_panel, n - j)), b + j * b_col, b_row, b_col, to + j * pairs_);
  }

  // C[rows, columns] (+)= A[rows, :2 pairs] B[from:, columns] for as many rows as a tile has at most. Packed, A is a panel.
  void multiply(int rows, int64_t from, int64_t pairs, int64_t columns, const void* a, int64_t a_row, bool packed_a, float* c, int64_t c_row,
                bool accumulate) const {
    HalfTile<HalfPair> tile{};
    tile.steps = pairs, tile.a = static_cast<const HalfPair*>(a), tile.a_row = a_row, tile.rows = rows;
    tile.first = !accumulate, tile.last = true, tile.wide_c = true, tile.c_row = tile.sums_row = c_row;
    for (int64_t j = 0; j < columns; j += half_panel) {
      tile.b = data_ + j * pairs_ + from * half_panel;
      tile.columns = int(min_of(half_panel, columns - j));
      tile.c = tile.sums = c + j;
      multiply_pairs(tile, packed_a);
    }
  }

 private:
  int64_t pairs_;
  const HalfPair* data_;
};

// body(first, rows): `count` rows in tiles of nearly equal heights.
template <class Body>
void for_each_tile(int64_t count, const Body& body) {
  const int64_t parts = ceil_div(count, max_rows);
  for (int64_t t = 0; t < parts; ++t) body(t * count / parts, (t + 1) * count / parts - t * count / parts);
}

// Dense copies of rows, with a 0 behind an odd length: pairs.
void copy_rows(const Matrices<const uint16_t>& x, int64_t batch, int64_t start, int64_t rows, int64_t length, uint16_t* to) {
  const int64_t row = whole(length, 2);
  for (int64_t r = 0; r < rows; ++r) {
    __builtin_memcpy(to + r * row, x.at(batch, start + r), size_t(length) * 2);
    if (row > length) to[r * row + length] = 0;
  }
}

// Some queries, and the keys that the last of them sees.
struct Block {
  int64_t batch, start, rows;
  int64_t visible(const Operands& a, int64_t row) const { return a.causal ? min_of(start + row + 1, a.keys) : a.keys; }
};

struct Largest {
  template <class T>
  static EXTENSOR_INLINE Vec<T> combine(Vec<T> x, Vec<T> y) { return at_least(x, y); }
  static EXTENSOR_INLINE float combine(float x, float y) { return x > y ? x : y; }
};

template <class Step>
EXTENSOR_INLINE float folded(Floats x) {
  float lane[lanes];
  store(lane, x);
  for (int half = lanes / 2; half > 0; half /= 2)
    for (int i = 0; i < half; ++i) lane[i] = Step::combine(lane[i], lane[i + half]);
  return lane[0];
}

struct Sum {
  static EXTENSOR_INLINE float combine(float x, float y) { return x + y; }
};

EXTENSOR_INLINE Floats as_floats(Integers<float> words) { return from_bits(words << 16); }

// The scores of one query become exp(scale score + mask - largest), 0 for what is hidden up to `wide` keys. Rounded into `halves`, and
// into `scores` as they are if they are `kept`. The sum of what was written to the one or the other.
float exponentiate(const Operands& a, const Block& block, int64_t row, float* scores, uint16_t* halves, int64_t wide, bool kept) {
  const int64_t visible = block.visible(a, row), filled = whole(visible, lanes);
  const float hidden = -__builtin_inff();
  float factor = float(a.scale);
  if (a.mask_offsets != nullptr || factor <= 0) {
    for (int64_t j = 0; j < visible; ++j) scores[j] *= factor;
    factor = 1;
    const int64_t mask = a.mask_offsets == nullptr ? 0 : a.mask_offsets[block.batch] + (block.start + row) * a.mask_row;
    if (a.allowed != nullptr)
      for (int64_t j = 0; j < visible; ++j) scores[j] = a.allowed[mask + j * a.mask_column] ? scores[j] : hidden;
    else if (a.added != nullptr)
      for (int64_t j = 0; j < visible; ++j) scores[j] += widen_bfloat16_bits(a.added[mask + j * a.mask_column]);
  }
  const int64_t last = filled - lanes;
  Floats top = load_first(scores + last, visible - last, hidden);
  store(scores + last, top);
  for (int64_t j = 0; j < last; j += lanes) top = at_least(top, load(scores + j));
  float largest = folded<Largest>(top) * factor;
  if (largest == hidden) largest = 0;  // a query that sees nothing: every weight is 0
  const Floats scale(double{factor}), shift(double{largest});
  Floats total(0.0);
  int64_t j = 0;
  for (; j < filled; j += lanes) {
    const Floats e = exp(load(scores + j) * scale - shift);
    if (kept) {
      store(scores + j, e);
      total = total + e;
    } else {
      const Integers<float> words = rounded_to_bfloat16(e);
      store_words(halves + j, words);
      total = total + as_floats(words);
    }
  }
  for (; j < wide; j += lanes) {
    if (kept) store(scores + j, Floats(0.0));
    else store_words(halves + j, Integers<float>(0));
  }
  const float sum = folded<Sum>(total);
  return sum == 0 ? 1 : sum;
}

// 1. for a block of queries that lie in `q`.
void score(const Operands& a, const Block& block, const PackedPairs& k, const uint16_t* q, float* scores, int64_t wide) {
  const int64_t pairs = (a.features + 1) / 2;
  for_each_tile(block.rows, [&](int64_t first, int64_t rows) {
    const int64_t seen = block.visible(a, first + rows - 1);
    k.multiply(int(rows), 0, pairs, whole(seen, half_panel), q + first * 2 * pairs, pairs, false, scores + first * wide, wide, false);
  });
}

// Rows of sums, each times its factor, rounded. False if one of them is not finite.
bool store_rows(const float* sums, int64_t row, const float* factors, int64_t rows, int64_t columns, const Matrices<uint16_t>& out,
                int64_t batch, int64_t start) {
  const Floats zero(0.0);
  Floats zeros = zero;  // 0 times an inf or a nan is a nan, and stays
  for (int64_t r = 0; r < rows; ++r) {
    const Floats factor = broadcast(factors == nullptr ? 1.0f : factors[r]);
    uint16_t* const to = out.at(batch, start + r);
    for (int64_t j = 0; j < columns; j += lanes) {
      const int count = int(min_of(lanes, columns - j));
      const Floats value = load_first(sums + r * row + j, count) * factor;
      zeros = fma(value, zero, zeros);
      store_bfloat16(to + j, value, count);
    }
  }
  return !any(isnan(zeros));
}

bool forward(const Operands& a, const Matrices<uint16_t>& out) {
  const int64_t height = min_of(a.queries, block_queries), blocks = ceil_div(a.queries, height);
  const int64_t wide = whole(a.keys, half_panel), row = whole(a.features, 2);
  const int64_t of_k = PackedPairs::room(a.features, a.keys), of_v = PackedPairs::room(a.keys, a.values);
  std::atomic<bool> finite{true};
  parallel_for(a.batch * blocks, attention_ns(a) / double(a.batch * blocks), [&](int64_t begin, int64_t end) {
    Workspace<HalfPair> packed(of_k + of_v);
    Workspace<float> floats(height * (wide + a.values));
    Workspace<uint16_t> halves(height * (wide + row));
    float *const scores = floats.data(), *const sums = scores + height * wide;
    uint16_t *const weights = halves.data(), *const q = weights + height * wide;
    for (int64_t i = begin; i < end;) {
      const int64_t batch = i / blocks;
      const PackedPairs k(a.features, a.keys, a.k.at(batch, 0), 1, a.k.row, packed.data());
      const PackedPairs v(a.keys, a.values, a.v.at(batch, 0), a.v.row, 1, packed.data() + of_k);
      for (; i < end && i / blocks == batch; ++i) {
        const int64_t start = i % blocks * height;
        const Block block{batch, start, min_of(height, a.queries - start)};
        copy_rows(a.q, batch, start, block.rows, a.features, q);
        score(a, block, k, q, scores, wide);
        float factors[block_queries];
        const int64_t seen = whole(block.visible(a, block.rows - 1), half_panel);
        for (int64_t r = 0; r < block.rows; ++r)
          factors[r] = 1 / exponentiate(a, block, r, scores + r * wide, weights + r * wide, seen, false);
        for_each_tile(block.rows, [&](int64_t first, int64_t rows) {
          const int64_t pairs = (block.visible(a, first + rows - 1) + 1) / 2;
          v.multiply(int(rows), 0, pairs, a.values, weights + first * wide, wide / 2, false, sums + first * a.values, a.values, false);
        });
        if (!store_rows(sums, a.values, factors, block.rows, a.values, out, batch, start)) finite = false;
      }
    }
  });
  return finite;
}

struct Gradients {
  Matrices<uint16_t> q, k, v;
};

// Where the parts of the working memory of a backward begin.
struct Room {
  int64_t wide, row, g_row;
  int64_t pairs = 0, k_across, v_across, k, q, g, panel;
  int64_t floats = 0, scores, dp, dq, dk, dv;
  int64_t halves = 0, p, ds, q_rows, g_rows;

  Room(const Operands& a, int64_t height) : wide(whole(a.keys, half_panel)), row(whole(a.features, 2)), g_row(whole(a.values, 2)) {
    const auto take = [](int64_t& end, int64_t count) { return end += whole(count, 32), end - whole(count, 32); };
    k_across = take(pairs, PackedPairs::room(a.features, a.keys)), v_across = take(pairs, PackedPairs::room(a.values, a.keys));
    k = take(pairs, PackedPairs::room(a.keys, a.features)), q = take(pairs, PackedPairs::room(height, a.features));
    g = take(pairs, PackedPairs::room(height, a.values)), panel = take(pairs, max_rows * height / 2 + 64);
    scores = take(floats, height * wide), dp = take(floats, height * wide), dq = take(floats, height * a.features);
    dk = take(floats, a.keys * a.features), dv = take(floats, a.keys * a.values);
    p = take(halves, height * wide), ds = take(halves, height * wide), q_rows = take(halves, height * row);
    g_rows = take(halves, height * g_row);
  }
};

// 5. for one query: e in `scores`, dp in `dp`; p and ds, rounded.
void score_gradient(const Operands& a, int64_t wide, float sum, const float* scores, const float* dp, uint16_t* p, uint16_t* ds) {
  const Floats factor = broadcast(1 / sum), scale(a.scale);
  Floats total(0.0);
  for (int64_t j = 0; j < wide; j += lanes) {
    const Floats weight = load(scores + j) * factor;
    store_words(p + j, rounded_to_bfloat16(weight));
    if (ds != nullptr) total = fma(weight, keep(weight != 0.0, load(dp + j)), total);
  }
  if (ds == nullptr) return;
  const Floats mean = broadcast(folded<Sum>(total));
  for (int64_t j = 0; j < wide; j += lanes) {
    const Floats weight = load(scores + j) * factor;
    store_words(ds + j, rounded_to_bfloat16(keep(weight != 0.0, weight * (load(dp + j) - mean) * scale)));
  }
}

// 7. for a block of queries: to[keys, columns] += weights[queries, keys]^T x[queries, columns]
void collect(const Operands& a, const Block& block, const uint16_t* weights, int64_t wide, const PackedPairs& x, int64_t columns, HalfPair* panel,
             float* to) {
  for_each_tile(block.visible(a, block.rows - 1), [&](int64_t first, int64_t keys) {
    const int64_t from = a.causal ? max_of(first - block.start, 0) / 2 * 2 : 0;  // the first pair of queries that sees one of these keys
    pack_pairs_a(block.rows - from, int(keys), wide - first, weights + from * wide + first, 1, wide, panel);
    x.multiply(int(keys), from / 2, (block.rows - from + 1) / 2, columns, panel, 0, true, to + first * columns, columns, true);
  });
}

// All gradients of one batch element; false if one is not finite.
bool backward_batch(const Operands& a, int64_t batch, const Matrices<const uint16_t>& g, const Gradients& grads, int64_t height, const Room& at,
                    HalfPair* packed, float* floats, uint16_t* halves) {
  const bool wants_q = grads.q.data != nullptr, wants_k = grads.k.data != nullptr, wants_v = grads.v.data != nullptr;
  const int64_t wide = at.wide;
  const PackedPairs k_across(a.features, a.keys, a.k.at(batch, 0), 1, a.k.row, packed + at.k_across);
  const PackedPairs v_across(a.values, a.keys, a.v.at(batch, 0), 1, a.v.row, packed + at.v_across);
  const PackedPairs k(a.keys, a.features, a.k.at(batch, 0), a.k.row, 1, packed + at.k);
  float *const scores = floats + at.scores, *const dp = floats + at.dp, *const dq = floats + at.dq;
  uint16_t *const p = halves + at.p, *const ds = halves + at.ds, *const q_rows = halves + at.q_rows, *const g_rows = halves + at.g_rows;
  if (wants_k) __builtin_memset(floats + at.dk, 0, size_t(a.keys * a.features) * sizeof(float));
  if (wants_v) __builtin_memset(floats + at.dv, 0, size_t(a.keys * a.values) * sizeof(float));
  bool finite = true;
  for (int64_t start = 0; start < a.queries; start += height) {
    const Block block{batch, start, min_of(height, a.queries - start)};
    const int64_t seen = whole(block.visible(a, block.rows - 1), half_panel);
    copy_rows(a.q, batch, start, block.rows, a.features, q_rows);
    copy_rows(g, batch, start, block.rows, a.values, g_rows);
    score(a, block, k_across, q_rows, scores, wide);
    const bool wants_scores = wants_q || wants_k;
    if (wants_scores)
      for_each_tile(block.rows, [&](int64_t first, int64_t rows) {
        v_across.multiply(int(rows), 0, at.g_row / 2, whole(block.visible(a, first + rows - 1), half_panel), g_rows + first * at.g_row,
                          at.g_row / 2, false, dp + first * wide, wide, false);
      });
    for (int64_t r = 0; r < block.rows; ++r) {
      const float sum = exponentiate(a, block, r, scores + r * wide, nullptr, seen, true);
      score_gradient(a, seen, sum, scores + r * wide, dp + r * wide, p + r * wide, wants_scores ? ds + r * wide : nullptr);
    }
    if (wants_q) {
      for_each_tile(block.rows, [&](int64_t first, int64_t rows) {
        k.multiply(int(rows), 0, (block.visible(a, first + rows - 1) + 1) / 2, a.features, ds + first * wide, wide / 2, false,
                   dq + first * a.features, a.features, false);
      });
      finite = store_rows(dq, a.features, nullptr, block.rows, a.features, grads.q, batch, start) && finite;
    }
    if (wants_v) {
      const PackedPairs x(block.rows, a.values, g.at(batch, start), g.row, 1, packed + at.g);
      collect(a, block, p, wide, x, a.values, packed + at.panel, floats + at.dv);
    }
    if (wants_k) {
      const PackedPairs x(block.rows, a.features, a.q.at(batch, start), a.q.row, 1, packed + at.q);
      collect(a, block, ds, wide, x, a.features, packed + at.panel, floats + at.dk);
    }
  }
  if (wants_k) finite = store_rows(floats + at.dk, a.features, nullptr, a.keys, a.features, grads.k, batch, 0) && finite;
  if (wants_v) finite = store_rows(floats + at.dv, a.values, nullptr, a.keys, a.values, grads.v, batch, 0) && finite;
  return finite;
}

bool backward(const Operands& a, const Matrices<const uint16_t>& g, const Matrices<uint16_t>& grad_q, const Matrices<uint16_t>& grad_k,
              const Matrices<uint16_t>& grad_v) {
  const int64_t height = min_of(a.queries, block_queries);
  const Room room(a, height);
  std::atomic<bool> finite{true};
  parallel_for(a.batch, 3 * attention_ns(a) / double(a.batch), [&](int64_t begin, int64_t end) {
    Workspace<HalfPair> packed(room.pairs);
    Workspace<float> floats(room.floats);
    Workspace<uint16_t> halves(room.halves);
    for (int64_t b = begin; b < end; ++b)
      if (!backward_batch(a, b, g, {grad_q, grad_k, grad_v}, height, room, packed.data(), floats.data(), halves.data())) finite = false;
  });
  return finite;
}

}  // namespace

const AttentionFunctions<uint16_t>& half_attention_functions() {
  static constexpr AttentionFunctions<uint16_t> functions = {forward, backward};
  return functions;
}

}  // namespace extensor::EXTENSOR_ISA
