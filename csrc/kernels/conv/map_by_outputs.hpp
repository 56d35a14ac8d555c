// The product of map.cpp with vectors along the outputs, for images whose rows leave much of a vector empty.
//
//   sums[pixels, outputs] = seen[pixels, inputs * taps] @ weight.T[inputs * taps, outputs]
//
//   1. pack the weight in panels of one or two vectors of outputs
//   2. for each image, group and block of rows:
//      a. find what the block sees (sight.hpp)
//      b. for each panel and each few neighbouring pixels: one register tile, a pixel times a vector of outputs
//      c. transpose the sums into the planes of the output
#pragma once

#include <cmath>

#include "core/threads.hpp"
#include "kernels/conv/pack_weight.hpp"
#include "kernels/conv/sight.hpp"
#include "kernels/conv/steps.hpp"

namespace extensor::EXTENSOR_ISA {

constexpr int panel_vectors = 2;
// Neighbouring pixels whose sums are in registers.
constexpr int most_neighbours = vector_bytes == 64 ? 14 : 6;
constexpr int64_t sums_bytes = 64 * 1024;

template <class T>
struct NeighboursJob {
  Steps steps;
  const T* weight;         // packed: a panel's vectors for each of the k steps
  const int64_t* offsets;  // of each step in what is seen
  const T* bias;           // of the panel, or null
  int64_t pixel;           // distance of the sums of two pixels
};

template <class T, int Count, int Vectors, int Step>
EXTENSOR_INLINE void multiply_outputs(const NeighboursJob<T>& job, int64_t begin, int64_t end, const T* seen,
                                      Vec<T> (&acc)[Count][Vectors]) {
  constexpr int lanes = Vec<T>::lanes;
#pragma GCC unroll 16
  for (int i = 0; i < Count; ++i)
#pragma GCC unroll 8
    for (int v = 0; v < Vectors; ++v) acc[i][v] = Vec<T>(0.0);
  const T* w = job.weight + begin * Vectors * lanes;
  for (int64_t p = begin; p < end; ++p, w += Vectors * lanes) {
    const T* x = seen + job.offsets[p];
    Vec<T> wv[Vectors];
    for (int v = 0; v < Vectors; ++v) wv[v] = load(w + v * lanes);
    for (int i = 0; i < Count; ++i) {
      const Vec<T> xv = broadcast(x[i * Step]);
      for (int v = 0; v < Vectors; ++v) acc[i][v] = fma(xv, wv[v], acc[i][v]);
    }
  }
}

template <class T, int Count, int Vectors>
EXTENSOR_INLINE void store_sums(const NeighboursJob<T>& job, const Vec<T> (&acc)[Count][Vectors], T* sums) {
  constexpr int lanes = Vec<T>::lanes;
#pragma GCC unroll 16
  for (int i = 0; i < Count; ++i)
#pragma GCC unroll 8
    for (int v = 0; v < Vectors; ++v)
      store(sums + i * job.pixel + v * lanes, acc[i][v] + (job.bias ? load(job.bias + v * lanes) : Vec<T>(0.0)));
}

template <class T, int Count, int Vectors, int Step>
void multiply_neighbours(const NeighboursJob<T>& job, const T* seen, T* sums) {
  Vec<T> acc[Count][Vectors];
  add_pieces(job.steps, acc, [&](int64_t begin, int64_t end) EXTENSOR_INLINE_LAMBDA {
    multiply_outputs<T, Count, Vectors, Step>(job, begin, end, seen, acc);
  });
  store_sums<T, Count, Vectors>(job, acc, sums);
}

template <class T>
using NeighboursFunction = void (*)(const NeighboursJob<T>&, const T*, T*);

template <class T, int Vectors, int Step, int... Index>
NeighboursFunction<T> neighbours_of(int64_t count, std::integer_sequence<int, Index...>) {
  static constexpr NeighboursFunction<T> of_count[] = {multiply_neighbours<T, Index + 1, Vectors, Step>...};
  return of_count[count - 1];
}

template <class T>
NeighboursFunction<T> neighbours_of(int64_t count, int vectors, int64_t step) {
  constexpr auto all = std::make_integer_sequence<int, most_neighbours>();
  if (step == 1) return vectors == 1 ? neighbours_of<T, 1, 1>(count, all) : neighbours_of<T, 2, 1>(count, all);
  return vectors == 1 ? neighbours_of<T, 1, 2>(count, all) : neighbours_of<T, 2, 2>(count, all);
}

// out[o * plane + x * step] = sums[x, o], where a row of sums has whole vectors; relu may follow.
template <class T>
void store_transposed(const T* sums, int64_t pixels, int64_t width, int64_t outputs, T* out, int64_t plane, int64_t step, bool relu) {
  constexpr int lanes = Vec<T>::lanes, strip = part_lanes<T>;
  for (int64_t x = 0; x < pixels; x += lanes) {
    const int64_t count = min_of(lanes, pixels - x);
    const T* rows[lanes];
    for (int i = 0; i < lanes; ++i) rows[i] = sums + (x + min_of(i, count - 1)) * width;
    for (int64_t o = 0; o < outputs; o += strip) {
      Vec<T> columns[strip];
      load_transposed(rows, o, columns);
      for (int c = 0; c < strip && o + c < outputs; ++c) store_apart(out + (o + c) * plane + x * step, relu_if(relu, columns[c]), count, step);
    }
  }
}

// Panels of all groups, one behind the other: the one that starts with output o of group g begins at (g * padded + o) * k.
// Outputs that do not exist are 0.
template <class T>
void pack_outputs(const ConvMap<T>& m, int64_t k, int64_t padded, T* weight) {
  constexpr int64_t most = panel_vectors * Vec<T>::lanes;
  for (int64_t group = 0; group < m.groups; ++group) {
    for (int64_t first = 0; first < padded; first += most) {
      const int64_t width = min_of(most, padded - first), count = min_of(width, m.outputs - first);
      const T* panel = m.weight + group * m.weight_group + first * m.weight_output;
      pack_steps(m, panel, count, width, weight + (group * padded + first) * k);
    }
  }
}

template <class T>
void pack_bias(const ConvMap<T>& m, int64_t padded, T* bias) {
  for (int64_t group = 0; group < m.groups; ++group)
    for (int64_t o = 0; o < padded; ++o) *bias++ = m.bias && o < m.outputs ? positive_zero(m.bias[group * m.outputs + o]) : T(0);
}

// The multiplications of this way, with the empty lanes, and what the transpose costs.
template <class T>
double outputs_cost(const ConvMap<T>& m, const SeenSteps<T>& seen, int64_t (*whole)(int64_t)) {
  if (m.columns.step > 2) return HUGE_VAL;
  return double(whole(m.outputs) * m.columns.count) * double(seen.all() + 16 * m.rows.count);
}

template <class T>
void convolve_by_outputs(const ConvMap<T>& m, const SeenSteps<T>& seen_steps) {
  constexpr int64_t lanes = Vec<T>::lanes, most = panel_vectors * lanes;
  const int64_t k = m.inputs * m.rows.taps * m.columns.taps, padded = whole_vectors<T>(m.outputs);
  const int64_t source_plane = m.rows.source * m.columns.source, out_plane = m.out_height * m.out_width;

  // Rows per block: as many as their sums have room for.
  const int64_t most_rows = max_of(1, sums_bytes / (m.columns.count * most * int64_t(sizeof(T))));
  const int64_t blocks = ceil_div(m.rows.count, most_rows), block_rows = ceil_div(m.rows.count, blocks);
  const Sight sight(m.inputs, m.rows, m.columns, block_rows);
  const int64_t tiles = ceil_div(m.columns.count, most_neighbours);

  WeightRoom<T> weight(m.kept, m.groups * padded * k);
  Workspace<T> bias(m.groups * padded);
  Workspace<int64_t> offsets(k);
  if (!weight.is_filled()) pack_outputs(m, k, padded, weight.data());
  weight.set_filled();
  pack_bias(m, padded, bias.data());
  fill_offsets(m, sight, offsets.data());
  // Whether the pixels of a block lie in one piece in the output.
  const bool dense = m.columns.out_step == 1 && m.rows.out_step == 1 && m.out_width == m.columns.count;

  const double ns = 200 + double(padded * k) * double(block_rows * m.columns.count) * sizeof(T) / 180.0;
  parallel_for(m.images * m.groups * blocks, ns, [&](int64_t begin, int64_t end) {
    Workspace<T> room(max_of(1, sight.copied())), sums(block_rows * m.columns.count * most);
    for (int64_t task = begin; task < end; ++task) {
      const int64_t image = task / (m.groups * blocks), group = task / blocks % m.groups;
      const int64_t first = task % blocks * block_rows, rows = min_of(block_rows, m.rows.count - first);
      if (rows <= 0) continue;
      const T* seen = sight.look(m.source + (image * m.groups + group) * m.inputs * source_plane, first, room.data());
      T* out = m.out + (image * m.groups + group) * m.outputs * out_plane;
      for (int64_t o = 0; o < padded; o += most) {
        const int64_t width = min_of(most, padded - o), outputs = min_of(width, m.outputs - o);
        NeighboursJob<T> job;
        job.weight = weight.data() + (group * padded + o) * k;
        job.offsets = offsets.data();
        job.bias = m.bias ? bias.data() + group * padded + o : nullptr;
        job.pixel = width;
        T* to = sums.data();
        for (int64_t row = 0; row < rows; ++row) {
          job.steps = seen_steps(first + row);
          const T* line = seen + row * m.rows.step * sight.row_length();
          int64_t x = 0;
          for (int64_t left = tiles; left > 0; --left) {  // equal shares instead of full ones and a rest
            const int64_t count = ceil_div(m.columns.count - x, left);
            neighbours_of<T>(count, int(width / lanes), m.columns.step)(job, line + x * m.columns.step, to);
            x += count, to += count * width;
          }
        }
        const int64_t lines = dense ? 1 : rows, length = dense ? rows * m.columns.count : m.columns.count;
        for (int64_t line = 0; line < lines; ++line)
          store_transposed(sums.data() + line * length * width, length, width, outputs,
                           out + o * out_plane + (m.rows.out_first + (first + line) * m.rows.out_step) * m.out_width +
                               m.columns.out_first,
                           out_plane, m.columns.out_step, m.relu);
      }
    }
  });
}

}  // namespace extensor::EXTENSOR_ISA
