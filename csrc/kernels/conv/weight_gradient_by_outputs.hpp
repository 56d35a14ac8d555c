// The gradient of the weight with vectors along the outputs, for images whose rows leave much of a vector empty.
//
//   sums[inputs * taps, outputs] = sum over images of  seen[inputs * taps, pixels] @ grad.T[pixels, outputs]
//
//   1. the images, or blocks of rows of large ones, are cut into slices; each slice has sums of its own, in float64
//   2. a slice takes a few blocks at a time: transposes their gradients, finds what they see (sight.hpp), then for each
//      vector of outputs and a few taps adds up the products pixel by pixel
//   3. the slices are added in order
#pragma once

#include "core/threads.hpp"
#include "kernels/conv/sight.hpp"

namespace extensor::EXTENSOR_ISA {

// Vectors of outputs and taps whose sums are in registers.
constexpr int tap_vectors = vector_bytes == 64 ? 1 : 2, most_taps = vector_bytes == 64 ? 10 : 6;
constexpr int64_t most_pixels = 256;  // added up before they go into a float64

// to[pixel, 0 ... width] = grad[output, pixel]. Outputs that do not exist repeat the last one.
template <class T>
void transpose_gradient(const T* grad, int64_t plane, int64_t pixels, int64_t outputs, int64_t width, T* to) {
  constexpr int lanes = Vec<T>::lanes, strip = part_lanes<T>;
  for (int64_t o = 0; o < width; o += lanes) {
    const T* rows[lanes];
    for (int i = 0; i < lanes; ++i) rows[i] = grad + min_of(o + i, outputs - 1) * plane;
    int64_t x = 0;
    for (; x + strip <= pixels; x += strip) {
      Vec<T> columns[strip];
      load_transposed(rows, x, columns);
      for (int c = 0; c < strip; ++c) store(to + (x + c) * width + o, columns[c]);
    }
    for (; x < pixels; ++x)
      for (int i = 0; i < lanes; ++i) to[x * width + o + i] = rows[i][x];
  }
}

template <class T>
struct TapsBatch {
  int64_t blocks, lines, count, step;  // blocks of `lines` rows of `count` pixels that are `step` apart
  const T* grad;                       // of the first vector of outputs; `width` for each pixel
  int64_t width;
  const T* const* seen;  // of each block
  int64_t seen_line;
};

template <class T, int Taps, int Vectors>
void add_taps(const TapsBatch<T>& batch, const int64_t* offsets, double* sums) {
  constexpr int lanes = Vec<T>::lanes;
  Vec<T> acc[Taps][Vectors];
#pragma GCC unroll 16
  for (int t = 0; t < Taps; ++t)
#pragma GCC unroll 2
    for (int v = 0; v < Vectors; ++v) acc[t][v] = Vec<T>(0.0);
  const T* g = batch.grad;
  for (int64_t block = 0; block < batch.blocks; ++block) {
    for (int64_t line = 0; line < batch.lines; ++line) {
      const T* x[Taps];
      for (int t = 0; t < Taps; ++t) x[t] = batch.seen[block] + line * batch.seen_line + offsets[t];
      for (int64_t at = 0; at < batch.count * batch.step; at += batch.step, g += batch.width) {
        Vec<T> gv[Vectors];
        for (int v = 0; v < Vectors; ++v) gv[v] = load(g + v * lanes);
        for (int t = 0; t < Taps; ++t) {
          const Vec<T> xv = broadcast(x[t][at]);
          for (int v = 0; v < Vectors; ++v) acc[t][v] = fma(xv, gv[v], acc[t][v]);
        }
      }
    }
  }
#pragma GCC unroll 16
  for (int t = 0; t < Taps; ++t)
#pragma GCC unroll 2
    for (int v = 0; v < Vectors; ++v) add_to_sums(sums + t * batch.width + v * lanes, acc[t][v]);
}

template <class T>
using TapsFunction = void (*)(const TapsBatch<T>&, const int64_t*, double*);

template <class T, int Vectors, int... Index>
TapsFunction<T> taps_of(int64_t taps, std::integer_sequence<int, Index...>) {
  static constexpr TapsFunction<T> of_taps[] = {add_taps<T, Index + 1, Vectors>...};
  return of_taps[taps - 1];
}

template <class T>
bool fills_outputs_better(const ConvWeightMap<T>& m) {
  // outputs / whole(outputs) > columns / whole(columns), by a tenth
  if (m.columns.step > 1) return m.outputs * whole_wides<T>(m.columns.count) >= m.columns.count * whole_wides<T>(m.outputs);
  return 10 * m.outputs * whole_wides<T>(m.columns.count) > 11 * m.columns.count * whole_wides<T>(m.outputs);
}

template <class T>
void weight_gradient_by_outputs(const ConvWeightMap<T>& m) {
  constexpr int64_t lanes = Vec<T>::lanes;
  constexpr auto all_taps = std::make_integer_sequence<int, most_taps>();
  const int64_t k = m.inputs * m.rows.taps * m.columns.taps, width = whole_vectors<T>(m.outputs);
  const int64_t source_plane = m.rows.source * m.columns.source, grad_plane = m.rows.count * m.columns.count;

  // Blocks of rows, and how many of them at a time.
  const int64_t most_rows = max_of(1, most_pixels / m.columns.count);
  const int64_t parts = ceil_div(m.rows.count, most_rows), block_rows = ceil_div(m.rows.count, parts);
  const int64_t block_pixels = block_rows * m.columns.count;
  const int64_t together = parts > 1 ? 1 : max_of(1, most_pixels / block_pixels);
  const Sight sight(m.inputs, m.rows, m.columns, block_rows);
  const int64_t blocks = m.images * parts, slices = min_of(8, ceil_div(blocks, together));
  const int64_t slice_blocks = ceil_div(blocks, slices), size = m.groups * k * width;

  Workspace<int64_t> offsets(k);
  int64_t step = 0;
  for (int64_t c = 0; c < m.inputs; ++c)
    for (int64_t p = 0; p < m.rows.taps; ++p)
      for (int64_t q = 0; q < m.columns.taps; ++q)
        offsets.data()[step++] = sight.offset(c, m.rows.shift[p], m.columns.shift[q]);

  Workspace<double> sums(slices * size);
  const double ns = 1000 + double(width * k) * double(slice_blocks * block_pixels) * sizeof(T) / 180.0;
  parallel_for(slices * m.groups, ns, [&](int64_t begin, int64_t end) {
    Workspace<T> room(max_of(1, together * sight.copied())), grads(together * block_pixels * width);
    Workspace<const T*> seen(together);
    for (int64_t task = begin; task < end; ++task) {
      const int64_t slice = task / m.groups, group = task % m.groups;
      double* total = sums.data() + slice * size + group * k * width;
      for (int64_t i = 0; i < k * width; ++i) total[i] = 0;
      const int64_t stop = min_of(blocks, (slice + 1) * slice_blocks);
      for (int64_t first = slice * slice_blocks; first < stop; first += together) {
        TapsBatch<T> batch;
        batch.blocks = min_of(together, stop - first);
        batch.count = m.columns.count, batch.step = m.columns.step;
        batch.width = width;
        batch.seen = seen.data(), batch.seen_line = m.rows.step * sight.row_length();
        for (int64_t b = 0; b < batch.blocks; ++b) {
          const int64_t image = (first + b) / parts, row = (first + b) % parts * block_rows;
          const int64_t channels = image * m.groups + group;
          batch.lines = max_of(0, min_of(block_rows, m.rows.count - row));
          seen.data()[b] = sight.look(m.source + channels * m.inputs * source_plane, row, room.data() + b * sight.copied());
          transpose_gradient(m.grad + channels * m.outputs * grad_plane + row * m.columns.count, grad_plane,
                             batch.lines * m.columns.count, m.outputs, width, grads.data() + b * block_pixels * width);
        }
        for (int64_t o = 0; o < width;) {
          const int vectors = int(min_of(tap_vectors, (width - o) / lanes));
          batch.grad = grads.data() + o;
          for (int64_t t = 0; t < k;) {
            const int64_t taps = ceil_div(k - t, ceil_div(k - t, most_taps));
            const auto add = vectors == 1 ? taps_of<T, 1>(taps, all_taps) : taps_of<T, 2>(taps, all_taps);
            add(batch, offsets.data() + t, total + t * width + o);
            t += taps;
          }
          o += vectors * lanes;
        }
      }
    }
  });
  for (int64_t group = 0; group < m.groups; ++group)
    for (int64_t t = 0; t < k; ++t)
      for (int64_t o = 0; o < m.outputs; ++o) {
        const double* sum = sums.data() + (group * k + t) * width + o;
        double total = 0;
        for (int64_t s = 0; s < slices; ++s) total += sum[s * size];
        m.out[(group * m.outputs + o) * k + t] = T(total);
      }
}

}  // namespace extensor::EXTENSOR_ISA
