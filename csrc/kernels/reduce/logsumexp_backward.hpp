// g * exp(x) / sum(exp(x)) with one exponential per element: each piece of a slice is written shifted by its own largest
// element, and scaled once the pieces are joined.
#pragma once

#include "kernels/reduce/logsumexp.hpp"
#include "kernels/reduce/states.hpp"

namespace extensor::EXTENSOR_ISA {

// What is taken from the elements of a piece: a finite number, so that exp(inf) is inf and all others are finite.
template <class T>
EXTENSOR_INLINE T shift_of(T largest) {
  constexpr T most = sizeof(T) == 4 ? T(__FLT_MAX__) : T(__DBL_MAX__);
  return largest > most ? most : largest < -most ? -most : largest;
}

// What the exponentials of a piece are multiplied by. 0 beside an infinite sum, which leaves nan where the element is
// infinite; nan where there is one, or nothing but -inf.
EXTENSOR_INLINE double scale_of(State piece, State slice, double g) {
  if (slice.first == __builtin_inf()) return g * 0;
  if (slice.first - slice.first != 0) return __builtin_nan("");
  return g * (piece.first == slice.first ? 1 : __builtin_exp(piece.first - slice.first)) / slice.second;
}

template <class T>
EXTENSOR_INLINE State write_exp_row(const T* x, int64_t n, T* out) {
  constexpr int lanes = wide_lanes<T>, parts = lanes / wide_lanes<double>;
  const double largest = fold_row<Largest, T>(x, n);
  const Vec<T> shift = Vec<T>(static_cast<double>(shift_of(T(largest))));
  Wide<double> sums[parts];
  for (auto& sum : sums) sum = Wide<double>(0.0);
  const auto write = [&](int64_t i, int64_t count) EXTENSOR_INLINE_LAMBDA {
    const Wide<T> e = exp(load_wide(x + i, count, T(-__builtin_inf())) - shift);
    store_wide(out + i, e, count);
    for (int part = 0; part < parts; ++part) sums[part] = sums[part] + widened_part(e, part);
  };
  int64_t i = 0;
  for (; i + lanes <= n; i += lanes) write(i, lanes);
  if (i < n) write(i, n - i);
  for (int part = 1; part < parts; ++part) sums[0] = sums[0] + sums[part];
  return {largest, largest - largest == 0 ? fold_lanes<Add>(sums[0]) : 0};
}

template <class T>
EXTENSOR_INLINE void scale_row(T* out, int64_t n, double by) {
  const Vec<T> scale(by);
  int64_t i = 0;
  for (; i + Vec<T>::lanes <= n; i += Vec<T>::lanes) store(out + i, load(out + i) * scale);
  if (i < n) store_first(out + i, load_first(out + i, n - i) * scale, n - i);
}

template <class T>
void logsumexp_backward_rows(const ReduceLayout& layout, const T* g, const T* x, T* out, double element_ns) {
  const int64_t outer = layout.outer, length = layout.length;
  const int64_t size = outer >= enough_results ? length : shortest_stretch, parts = ceil_div(length, size);
  if (parts == 1) {
    parallel_for(outer, double(length) * element_ns + 10, [&](int64_t begin, int64_t end) {
      for (int64_t o = begin; o < end; ++o) {
        const State slice = write_exp_row(x + o * length, length, out + o * length);
        scale_row(out + o * length, length, scale_of(slice, slice, double(g[o])));
      }
    });
    return;
  }
  States states(outer * parts + outer);
  State* slices = states.data() + outer * parts;
  const auto for_each_piece = [&](double ns, const auto& body) {
    parallel_for(outer * parts, double(size) * ns, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        const int64_t start = i % parts * size;
        body(i, i / parts * length + start, min_of(size, length - start));
      }
    });
  };
  for_each_piece(element_ns, [&](int64_t i, int64_t at, int64_t n) { states.data()[i] = write_exp_row(x + at, n, out + at); });
  for (int64_t o = 0; o < outer; ++o) {
    slices[o] = states.data()[o * parts];
    for (int64_t p = 1; p < parts; ++p) slices[o] = LogSumExp<T>::merge(slices[o], 0, states.data()[o * parts + p], 0);
  }
  for_each_piece(element_ns / 4, [&](int64_t i, int64_t at, int64_t n) {
    scale_row(out + at, n, scale_of(states.data()[i], slices[i / parts], double(g[i / parts])));
  });
}

// A piece of a strip of columns.
template <class T>
EXTENSOR_INLINE void write_exp_columns(const T* x, int64_t row, int64_t rows, int64_t width, T* out, State* states) {
  constexpr int lanes = Vec<T>::lanes;
  T largest[strip_width + lanes], shifts[strip_width + lanes];
  double sums[strip_width + lanes];
  fold_columns<Largest>(x, row, rows, width, largest);
  for (int64_t c = 0; c < width; ++c) shifts[c] = shift_of(largest[c]);
  for (int64_t c = width; c < width + lanes; ++c) shifts[c] = 0;
  for (int64_t c = 0; c < width + lanes; ++c) sums[c] = 0;
  for (int64_t r = 0; r < rows; ++r) {
    for (int64_t c = 0; c < width; c += lanes) {
      const Vec<T> e = exp(load_first(x + r * row + c, width - c) - load(shifts + c));
      store_first(out + r * row + c, e, width - c);
      add_to_sums(sums + c, e);
    }
  }
  for (int64_t c = 0; c < width; ++c) states[c] = {double(largest[c]), largest[c] - largest[c] == 0 ? sums[c] : 0};
}

template <class T>
void logsumexp_backward_columns(const ReduceLayout& layout, const T* g, const T* x, T* out, double element_ns) {
  constexpr int lanes = Vec<T>::lanes;
  const int64_t length = layout.length, inner = layout.inner;
  const int64_t strips = ceil_div(inner, strip_width), slices = layout.outer * strips;
  const int64_t rows = max_of(8, 4 * shortest_stretch / min_of(inner, strip_width)), parts = ceil_div(length, rows);
  States pieces(slices * parts * strip_width), wholes(slices * strip_width);
  const auto for_each_piece = [&](double ns, const auto& body) {
    parallel_for(slices * parts, double(min_of(rows, length)) * double(min_of(inner, strip_width)) * ns + 20, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        const int64_t slice = i / parts, r = i % parts * rows, c = slice % strips * strip_width;
        body(i, slice, (slice / strips * length + r) * inner + c, min_of(rows, length - r), min_of(strip_width, inner - c));
      }
    });
  };
  for_each_piece(element_ns, [&](int64_t i, int64_t, int64_t at, int64_t count, int64_t width) {
    write_exp_columns(x + at, inner, count, width, out + at, pieces.data() + i * strip_width);
  });
  for (int64_t slice = 0; slice < slices; ++slice) {
    State* whole = wholes.data() + slice * strip_width;
    const int64_t width = min_of(strip_width, inner - slice % strips * strip_width);
    for (int64_t p = 0; p < parts; ++p) {
      const State* piece = pieces.data() + (slice * parts + p) * strip_width;
      for (int64_t c = 0; c < width; ++c) whole[c] = p == 0 ? piece[c] : LogSumExp<T>::merge(whole[c], 0, piece[c], 0);
    }
  }
  for_each_piece(element_ns / 4, [&](int64_t i, int64_t slice, int64_t at, int64_t count, int64_t width) {
    T scales[strip_width + lanes];
    const T* upstream = g + slice / strips * inner + slice % strips * strip_width;
    for (int64_t c = 0; c < width; ++c)
      scales[c] = T(scale_of(pieces.data()[i * strip_width + c], wholes.data()[slice * strip_width + c], double(upstream[c])));
    for (int64_t c = width; c < width + lanes; ++c) scales[c] = 0;
    for (int64_t r = 0; r < count; ++r) {
      T* to = out + at + r * inner;
      for (int64_t c = 0; c < width; c += lanes) store_first(to + c, load_first(to + c, width - c) * load(scales + c), width - c);
    }
  });
}

}  // namespace extensor::EXTENSOR_ISA
