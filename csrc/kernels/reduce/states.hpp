// Which elements are joined with which, in what order: by the sizes alone, so that any number of threads gives the
// same bits. What is known of each slice goes to a function of the caller.
#pragma once

#include "core/whole.hpp"
#include "core/threads.hpp"
#include "core/workspace.hpp"
#include "kernels/reduce/fold.hpp"
#include "kernels/reduce/reduce.hpp"

namespace extensor::EXTENSOR_ISA {

// Enough independent results are shared out as they are; few long ones are cut into stretches.
constexpr int64_t enough_results = 16, most_stretches = 64, shortest_stretch = 16 * 1024;
// Of columns, whose partial results are many: joining them takes time too.
constexpr int64_t smallest_part = 64 * 1024;

using States = Workspace<State>;

// Whether neighbours lie along `length`; else they lie along `inner`.
inline bool has_rows(const ReduceLayout& x) { return x.inner == 1 && (x.length_stride == 1 || x.length == 1); }

// Neighbours along `length`: each result is one row, or a row in several pieces. take(o, state) sees each once; when
// there are many, in the thread that has just read the row.
template <class Op, class T, class Take>
void for_each_row(const ReduceLayout& x, const T* from, double element_ns, const Take& take) {
  const int64_t count = x.pieces * x.length;
  const auto whole_row = [&](int64_t o) {
    State total = Op::row(from + o * x.outer_stride, x.length);
    for (int64_t piece = 1; piece < x.pieces; ++piece)
      total = Op::merge(total, piece * x.length, Op::row(from + o * x.outer_stride + piece * x.piece_stride, x.length), x.length);
    return total;
  };
  const int64_t stretches = x.outer >= enough_results || x.pieces > 1 ? 1 : min_of(most_stretches, x.length / shortest_stretch);
  if (stretches <= 1) {
    parallel_for(x.outer, double(count) * element_ns + 10, [&](int64_t begin, int64_t end) {
      for (int64_t o = begin; o < end; ++o) take(o, whole_row(o));
    });
    return;
  }
  const int64_t size = ceil_div(ceil_div(x.length, stretches), 64) * 64, parts = ceil_div(x.length, size);
  States states(x.outer * parts);
  parallel_for(x.outer * parts, double(size) * element_ns, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const int64_t start = i % parts * size;
      states.data()[i] = Op::row(from + i / parts * x.outer_stride + start, min_of(size, x.length - start));
    }
  });
  for (int64_t o = 0; o < x.outer; ++o) {
    State total = states.data()[o * parts];
    for (int64_t p = 1; p < parts; ++p)
      total = Op::merge(total, p * size, states.data()[o * parts + p], min_of(size, x.length - p * size));
    take(o, total);
  }
}

// Neighbours along `inner`: strips of columns, walked down row by row. take(o, c, width, states) sees the columns
// from c on.
template <class Op, class T, class Take>
void for_each_strip(const ReduceLayout& x, const T* from, double element_ns, const Take& take) {
  const int64_t strips = ceil_div(x.inner, strip_width), results = x.outer * strips;
  const int64_t wanted = results >= enough_results ? 1 : min_of(most_stretches, x.length * min_of(x.inner, strip_width) / smallest_part);
  const int64_t rows = ceil_div(x.length, max_of(1, min_of(wanted, x.length / 8))), parts = x.length == 0 ? 1 : ceil_div(x.length, rows);
  const auto strip_of = [&](int64_t result, int64_t part, State* states) {
    const int64_t c = result % strips * strip_width, r = part * rows;
    Op::columns(from + result / strips * x.outer_stride + r * x.length_stride + c, x.length_stride, min_of(rows, x.length - r),
                min_of(strip_width, x.inner - c), states);
  };
  const auto finish = [&](int64_t result, const State* states) {
    const int64_t c = result % strips * strip_width;
    take(result / strips, c, min_of(strip_width, x.inner - c), states);
  };
  const double strip_ns = double(min_of(x.inner, strip_width)) * double(rows) * element_ns + 20;
  if (parts == 1) {
    parallel_for(results, strip_ns, [&](int64_t begin, int64_t end) {
      State states[strip_width];
      for (int64_t i = begin; i < end; ++i) {
        strip_of(i, 0, states);
        finish(i, states);
      }
    });
    return;
  }
  States partial(results * parts * strip_width);
  parallel_for(results * parts, strip_ns, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) strip_of(i / parts, i % parts, partial.data() + i * strip_width);
  });
  for (int64_t i = 0; i < results; ++i) {
    State* total = partial.data() + i * parts * strip_width;
    const int64_t width = min_of(strip_width, x.inner - i % strips * strip_width);
    for (int64_t p = 1; p < parts; ++p)
      for (int64_t c = 0; c < width; ++c)
        total[c] = Op::merge(total[c], p * rows, total[p * strip_width + c], min_of(rows, x.length - p * rows));
    finish(i, total);
  }
}

}  // namespace extensor::EXTENSOR_ISA
