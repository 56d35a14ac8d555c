// The product of map.cpp with vectors along the outputs and the columns of the kernel together: few outputs fill them,
// and no pixel of the source is multiplied with a column of the kernel that looks beyond the edge. For the way back
// through a small image.
//
//   products[j, (q, output)] = sum over rows p of the kernel and inputs of  source[input, i + p, j] * weight[output, input, p, q]
//   out[i, j, output]        = bias + sum over columns q of the kernel of   products[j + q, (q, output)]
//
//   1. pack the weight in panels of one or two vectors of (q, output)
//   2. for each image and group, row by row:
//      a. register tiles of a few pixels of the source; only rows of the kernel that see a row of the source
//      b. add up the columns of the kernel; products beyond the edge are zeros
//   3. transpose the sums into the planes of the output
#pragma once

#include "kernels/conv/map_by_outputs.hpp"

namespace extensor::EXTENSOR_ISA {

// The multiplications of this way, with the empty lanes, and what adding up and the transpose cost.
template <class T>
double folded_cost(const ConvMap<T>& m, const SeenSteps<T>& seen) {
  if (m.rows.step != 1 || m.columns.step != 1 || m.columns.taps < 2 || !seen.finite()) return HUGE_VAL;
  const double products = double(seen.all() / m.columns.taps) * double(m.columns.source * whole_wides<T>(m.outputs * m.columns.taps));
  return products + double(m.rows.count * m.columns.count) * double(whole_wides<T>(m.outputs)) * double(3 * m.columns.taps + 16);
}

// The panel that starts with lane i of group g begins at (g * padded + i) * k. Lanes that do not exist are 0.
template <class T>
void pack_folded(const ConvMap<T>& m, int64_t padded, T* to) {
  constexpr int64_t most = panel_vectors * Vec<T>::lanes;
  Workspace<int64_t, 2048> places(padded);  // of each lane from the first output and element of a row on
  for (int64_t lane = 0; lane < padded; ++lane) {
    const int64_t q = lane / m.outputs, o = lane % m.outputs;
    places.data()[lane] = q < m.columns.taps ? o * m.weight_output + m.columns.element[q] : -1;
  }
  for (int64_t group = 0; group < m.groups; ++group)
    for (int64_t first = 0; first < padded; first += most)
      for (int64_t p = 0; p < m.rows.taps; ++p)
        for (int64_t c = 0; c < m.inputs; ++c) {
          const T* from = m.weight + group * m.weight_group + c * m.weight_input + m.rows.element[p] * m.weight_row;
          for (int64_t lane = first; lane < min_of(first + most, padded); ++lane)
            *to++ = places.data()[lane] < 0 ? T(0) : from[places.data()[lane]];
        }
}

template <class T>
void convolve_folded(const ConvMap<T>& m, const SeenSteps<T>& seen_steps) {
  constexpr int64_t lanes = Vec<T>::lanes, most = panel_vectors * lanes;
  const int64_t k = m.inputs * m.rows.taps, columns = m.columns.source, plane = m.rows.source * columns;
  const int64_t padded = whole_vectors<T>(m.outputs * m.columns.taps), width = whole_vectors<T>(m.outputs);
  const int64_t out_plane = m.out_height * m.out_width, count = m.columns.count;
  const int64_t tiles = ceil_div(columns, most_neighbours);

  // Rows of zeros for what lies beyond the edges.
  const int64_t least = least_shift(m.columns), before = max_of(0, -least);
  const int64_t behind = max_of(0, count + least + shift_span(m.columns) - columns);
  const int64_t product_size = (before + columns + behind) * padded + lanes;

  WeightRoom<T> weight(m.kept, m.groups * padded * k);
  Workspace<T> bias(m.groups * width);
  Workspace<int64_t> offsets(k), places(m.columns.taps);
  if (!weight.is_filled()) pack_folded(m, padded, weight.data());
  weight.set_filled();
  for (int64_t i = 0; i < m.groups * width; ++i)
    bias.data()[i] = m.bias && i % width < m.outputs ? m.bias[i / width * m.outputs + i % width] : T(0);
  for (int64_t p = 0; p < m.rows.taps; ++p)
    for (int64_t c = 0; c < m.inputs; ++c) offsets.data()[p * m.inputs + c] = c * plane + m.rows.shift[p] * columns;
  for (int64_t q = 0; q < m.columns.taps; ++q)
    places.data()[q] = (before + m.columns.shift[q]) * padded + q * m.outputs;
  // Whether the rows of an image lie in one piece in the output.
  const bool dense = m.columns.out_step == 1 && m.rows.out_step == 1 && m.out_width == count;

  const double ns = 200 + folded_cost(m, seen_steps) * sizeof(T) / 180.0;
  parallel_for(m.images * m.groups, ns, [&](int64_t begin, int64_t end) {
    Workspace<T> products(product_size), sums(m.rows.count * count * width);
    for (int64_t i = 0; i < product_size; ++i) products.data()[i] = T(0);
    for (int64_t task = begin; task < end; ++task) {
      const int64_t group = task % m.groups;
      const T* source = m.source + task * m.inputs * plane;
      for (int64_t row = 0; row < m.rows.count; ++row) {
        const Steps steps = seen_steps(row);
        NeighboursJob<T> job;
        job.steps = {steps.begin / m.columns.taps, steps.end / m.columns.taps, piece_depth(k)};
        job.offsets = offsets.data();
        job.bias = nullptr;
        job.pixel = padded;
        for (int64_t lane = 0; lane < padded; lane += most) {
          const int vectors = int(min_of(most, padded - lane) / lanes);
          job.weight = weight.data() + (group * padded + lane) * k;
          int64_t x = 0;
          for (int64_t left = tiles; left > 0; --left) {  // equal shares instead of full ones and a rest
            const int64_t share = ceil_div(columns - x, left);
            neighbours_of<T>(share, vectors, 1)(job, source + row * columns + x, products.data() + (before + x) * padded + lane);
            x += share;
          }
        }
        for (int64_t j = 0; j < count; ++j)
          for (int64_t v = 0; v < width; v += lanes) {
            Vec<T> sum = load(bias.data() + group * width + v);
            for (int64_t q = 0; q < m.columns.taps; ++q) sum = sum + load(products.data() + j * padded + places.data()[q] + v);
            store(sums.data() + (row * count + j) * width + v, sum);
          }
      }
      const int64_t lines = dense ? 1 : m.rows.count, length = dense ? m.rows.count * count : count;
      for (int64_t line = 0; line < lines; ++line)
        store_transposed(sums.data() + line * length * width, length, width, m.outputs,
                         m.out + task * m.outputs * out_plane + (m.rows.out_first + line * m.rows.out_step) * m.out_width +
                             m.columns.out_first,
                         out_plane, m.columns.out_step, m.relu);
    }
  });
}

}  // namespace extensor::EXTENSOR_ISA
