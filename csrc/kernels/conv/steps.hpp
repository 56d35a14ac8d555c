// The steps k = (row of the kernel, input, column of the kernel) of a sum, and what follows them.
#pragma once

#include "core/partial.hpp"
#include "kernels/conv/sight.hpp"
#include "kernels/conv/window.hpp"

namespace extensor::EXTENSOR_ISA {

// Longer sums of floats are made of pieces.
constexpr int64_t longest_chain = 128;

// The steps of a tile. Pieces begin at multiples of `depth`, wherever the tile begins.
struct Steps {
  int64_t begin, end, depth;
  int64_t first_piece() const { return min_of(end, (begin / depth + 1) * depth); }
};

inline int64_t piece_depth(int64_t k) { return ceil_div(max_of(1, k), ceil_div(max_of(1, k), longest_chain)); }

// sums = the sum of the pieces, each of which `multiply(begin, end)` leaves in `sums`.
template <class T, int Rows, int Vectors, class Multiply>
EXTENSOR_INLINE void add_pieces(const Steps& s, Vec<T> (&sums)[Rows][Vectors], const Multiply& multiply) {
  constexpr int lanes = Vec<T>::lanes;
  alignas(vector_bytes) T total[Rows * Vectors * lanes];
  for (int64_t begin = s.begin, end = s.first_piece();; begin = end, end = min_of(begin + s.depth, s.end)) {
    multiply(begin, end);
    if (begin > s.begin) {
#pragma GCC unroll 32
      for (int i = 0; i < Rows * Vectors; ++i) sums[i / Vectors][i % Vectors] = load(total + i * lanes) + sums[i / Vectors][i % Vectors];
    }
    if (end >= s.end) return;
#pragma GCC unroll 32
    for (int i = 0; i < Rows * Vectors; ++i) store(total + i * lanes, sums[i / Vectors][i % Vectors]);
    // The total stays in memory: in registers it would leave too few of them for the sums.
    asm volatile("" : : "r"(total) : "memory");
  }
}

// Call body(channel, row, column) for each step, in order.
template <class T, class Body>
void for_steps(const ConvMap<T>& m, const Body& body) {
  for (int64_t p = 0; p < m.rows.taps; ++p)
    for (int64_t c = 0; c < m.inputs; ++c)
      for (int64_t q = 0; q < m.columns.taps; ++q) body(c, p, q);
}

// Where each step of what is seen lies: seen.offset(channel, row shift, column shift), which is a sum of one part for each.
template <class T, class Seen>
void fill_offsets(const ConvMap<T>& m, const Seen& seen, int64_t* to) {
  if (m.inputs * m.rows.taps * m.columns.taps == 0) return;
  const int64_t row = m.rows.shift[0], column = m.columns.shift[0];
  const int64_t origin = seen.offset(0, row, column), channel = seen.offset(1, row, column) - origin;
  Workspace<int64_t, 512> columns(m.columns.taps);
  for (int64_t q = 0; q < m.columns.taps; ++q) columns.data()[q] = seen.offset(0, row, m.columns.shift[q]) - origin;
  for (int64_t p = 0; p < m.rows.taps; ++p) {
    int64_t from = seen.offset(0, m.rows.shift[p], column);
    for (int64_t c = 0; c < m.inputs; ++c, from += channel)
      for (int64_t q = 0; q < m.columns.taps; ++q) *to++ = from + columns.data()[q];
  }
}

// Whether no element is inf or nan.
template <class T>
bool are_finite(const T* values, int64_t count) {
  constexpr int lanes = Vec<T>::lanes, together = 4;
  Vec<T> zeros[together];
  for (Vec<T>& zero : zeros) zero = Vec<T>(0.0);
  int64_t i = 0;
  for (; i + together * lanes <= count; i += together * lanes)
    for (int part = 0; part < together; ++part) zeros[part] = fma(load(values + i + part * lanes), Vec<T>(0.0), zeros[part]);
  for (; i < count; i += lanes) zeros[0] = fma(load_first(values + i, int(min_of(lanes, count - i))), Vec<T>(0.0), zeros[0]);
  return !any(isnan((zeros[0] + zeros[1]) + (zeros[2] + zeros[3])));
}

// Outside of these steps, output row i sees nothing but the zeros beyond the source: half of the rows of a small image
// on the way back. A zero times an inf or nan is not 0, so a weight that is not finite takes all steps.
template <class T>
class SeenSteps {
 public:
  explicit SeenSteps(const ConvMap<T>& m)
      : rows_(m.rows), row_steps_(m.inputs * m.columns.taps), depth_(piece_depth(row_steps_ * m.rows.taps)) {
    finite_ = m.kept != nullptr && m.kept->is_filled ? m.kept->is_finite : is_finite(m);
    if (m.kept != nullptr && !m.kept->is_filled) m.kept->is_finite = finite_;
    for (int64_t i = 0; i < rows_.count; ++i) {
      const Steps steps = (*this)(i);
      all_ += steps.end - steps.begin;
    }
  }

  bool finite() const { return finite_; }
  int64_t all() const { return all_; }  // of all output rows

  Steps operator()(int64_t i) const {
    if (!finite_) return {0, rows_.taps * row_steps_, depth_};
    int64_t begin = rows_.taps, end = 0;
    for (int64_t t = 0; t < rows_.taps; ++t) {
      const int64_t row = i * rows_.step + rows_.shift[t];
      if (row >= 0 && row < rows_.source) begin = min_of(begin, t), end = t + 1;
    }
    return {min_of(begin, end) * row_steps_, end * row_steps_, depth_};
  }

 private:
  static bool is_finite(const ConvMap<T>& m) {
    if (stays_inside(m.rows) && stays_inside(m.columns)) return true;  // nothing sees a zero, so it does not matter
    if (m.inputs * m.outputs * m.rows.taps * m.columns.taps == m.weight_group)  // every element of a dense block
      return are_finite(m.weight, m.groups * m.weight_group);
    T zero = 0;
    for (int64_t group = 0; group < m.groups; ++group)
      for (int64_t o = 0; o < m.outputs; ++o)
        for_steps(m, [&](int64_t c, int64_t p, int64_t q) {
          zero += T(0) * m.weight[group * m.weight_group + o * m.weight_output + c * m.weight_input +
                                  m.rows.element[p] * m.weight_row + m.columns.element[q]];
        });
    return zero == 0;
  }

  ConvAxis rows_;
  int64_t row_steps_, depth_, all_ = 0;
  bool finite_;
};

// What is added to a sum at its end. One that underflowed is -0, and 0 once a zero beyond the edge is added: how many of those a
// tile sees depends on the registers, so that every sum gets a bias, and none is -0.
template <class T>
EXTENSOR_INLINE T positive_zero(T bias) {
  return bias + T(0);
}

// The first `count` lanes of each of `rows` vectors, `step` apart in rows of a plane each.
template <class T>
__attribute__((noinline)) void store_rows_apart(T* to, const T* vectors, int64_t rows, int64_t count, int64_t plane, int64_t step) {
  for (int64_t i = 0; i < rows; ++i, vectors += Vec<T>::lanes, to += plane)
    for (int64_t x = 0; x < count; ++x) to[x * step] = vectors[x];
}

// The first `count` lanes, `step` apart.
template <class T>
EXTENSOR_INLINE void store_apart(T* to, Vec<T> value, int64_t count, int64_t step) {
  if (step == 1) return store_first(to, value, count);
  alignas(vector_bytes) T lanes[Vec<T>::lanes];
  store(lanes, value);
  store_rows_apart(to, lanes, 1, count, 0, step);
}

}  // namespace extensor::EXTENSOR_ISA
