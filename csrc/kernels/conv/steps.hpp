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

// Call body(channel, row, column) for each step, in order.
template <class T, class Body>
void for_steps(const ConvMap<T>& m, const Body& body) {
  for (int64_t p = 0; p < m.rows.taps; ++p)
    for (int64_t c = 0; c < m.inputs; ++c)
      for (int64_t q = 0; q < m.columns.taps; ++q) body(c, p, q);
}

// Outside of these steps, output row i sees nothing but the zeros beyond the source: half of the rows of a small image
// on the way back. A zero times an inf or nan is not 0, so a weight that is not finite takes all steps.
template <class T>
class SeenSteps {
 public:
  explicit SeenSteps(const ConvMap<T>& m)
      : rows_(m.rows), row_steps_(m.inputs * m.columns.taps), depth_(piece_depth(row_steps_ * m.rows.taps)) {
    finite_ = true;
    if (stays_inside(m.rows) && stays_inside(m.columns)) return;  // nothing sees a zero, so it does not matter
    T zero = 0;
    for (int64_t group = 0; group < m.groups; ++group)
      for (int64_t o = 0; o < m.outputs; ++o)
        for_steps(m, [&](int64_t c, int64_t p, int64_t q) {
          zero += T(0) * m.weight[group * m.weight_group + o * m.weight_output + c * m.weight_input +
                                  m.rows.element[p] * m.weight_row + m.columns.element[q]];
        });
    finite_ = zero == 0;
  }

  bool finite() const { return finite_; }
  // Of all output rows.
  int64_t all() const {
    int64_t sum = 0;
    for (int64_t i = 0; i < rows_.count; ++i) {
      const Steps steps = (*this)(i);
      sum += steps.end - steps.begin;
    }
    return sum;
  }

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
  ConvAxis rows_;
  int64_t row_steps_, depth_;
  bool finite_;
};

// What is added to a sum at its end. One that underflowed is -0, and 0 once a zero beyond the edge is added: how many of those a
// tile sees depends on the registers, so that every sum gets a bias, and none is -0.
template <class T>
EXTENSOR_INLINE T positive_zero(T bias) {
  return bias + T(0);
}

// The first `count` lanes, `step` apart.
template <class T>
EXTENSOR_INLINE void store_apart(T* to, Vec<T> value, int64_t count, int64_t step) {
  if (step == 1) return store_first(to, value, count);
  T lanes[Vec<T>::lanes];
  store(lanes, value);
  for (int64_t x = 0; x < count; ++x) to[x * step] = lanes[x];
}

}  // namespace extensor::EXTENSOR_ISA
