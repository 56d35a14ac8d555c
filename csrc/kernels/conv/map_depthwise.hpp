// Convolutions in which every channel has a kernel of its own and windows move by one pixel: too few multiplications for a
// product of matrices to be worth its packing.
//
//   for each image, channel and block of rows:
//     1. copy what the block sees, zeros around it
//     2. tiles of a few rows and one vector of columns. A vector of the source is loaded once for each column of the
//        kernel and used in all rows of the tile that see it; so a kernel of 3 x 3 or 5 x 5 without gaps is unrolled
//        whole. Any other is multiplied element by element.
#pragma once

#include "kernels/conv/steps.hpp"

namespace extensor::EXTENSOR_ISA {

template <class T>
bool is_depthwise(const ConvMap<T>& m) {
  return m.inputs == 1 && m.outputs == 1 && m.rows.step == 1 && m.columns.step == 1 && m.rows.out_step == 1 &&
         m.columns.out_step == 1 && m.rows.taps > 0 && m.columns.taps > 0 && m.rows.taps * m.columns.taps <= longest_chain;
}

// A kernel laid out as it is seen: weight[k] belongs to the element at offsets[k] of the window; by rows, then columns.
template <class T>
struct DepthwiseKernel {
  const T* weight;
  const int64_t* offsets;
  int64_t taps, pitch;
};

constexpr int depthwise_rows = vector_bytes == 64 ? 7 : 4;

template <class T, int Rows, int Side>
EXTENSOR_INLINE void multiply_square(const DepthwiseKernel<T>& kernel, const T* seen, Vec<T> (&sums)[Rows]) {
#pragma GCC unroll 16
  for (int row = 0; row < Rows + Side - 1; ++row) {
#pragma GCC unroll 8
    for (int q = 0; q < Side; ++q) {
      const Vec<T> value = load(seen + row * kernel.pitch + q);
#pragma GCC unroll 8
      for (int r = 0; r < Rows; ++r)
        if (row >= r && row - r < Side) sums[r] = fma(broadcast(kernel.weight[(row - r) * Side + q]), value, sums[r]);
    }
  }
}

template <class T, int Rows>
EXTENSOR_INLINE void multiply_elements(const DepthwiseKernel<T>& kernel, const T* seen, Vec<T> (&sums)[Rows]) {
  for (int64_t k = 0; k < kernel.taps; ++k) {
    const Vec<T> weight = broadcast(kernel.weight[k]);
#pragma GCC unroll 8
    for (int r = 0; r < Rows; ++r) sums[r] = fma(weight, load(seen + r * kernel.pitch + kernel.offsets[k]), sums[r]);
  }
}

// `Rows` rows of a plane from `seen` to `out`. Side 0 is any kernel.
template <class T, int Rows, int Side>
void depthwise_rows_of(const DepthwiseKernel<T>& kernel, const T* seen, T bias, bool relu, T* out, int64_t out_width, int64_t columns) {
  constexpr int lanes = Vec<T>::lanes;
  for (int64_t x = 0; x < columns; x += lanes) {
    Vec<T> sums[Rows];
    for (int r = 0; r < Rows; ++r) sums[r] = Vec<T>(0.0);
    if constexpr (Side > 0) multiply_square<T, Rows, Side>(kernel, seen + x, sums);
    else multiply_elements<T, Rows>(kernel, seen + x, sums);
    for (int r = 0; r < Rows; ++r) store_first(out + r * out_width + x, relu_if(relu, sums[r] + broadcast(bias)), columns - x);
  }
}

// All rows of a block: whole tiles, the last of which computes some rows of the one before again.
template <class T, int Side>
void depthwise_block(const DepthwiseKernel<T>& kernel, const T* seen, T bias, bool relu, T* out, int64_t out_width, int64_t columns, int64_t rows) {
  constexpr int most = depthwise_rows;
  if (rows < most) {
    for (int64_t r = 0; r < rows; ++r)
      depthwise_rows_of<T, 1, Side>(kernel, seen + r * kernel.pitch, bias, relu, out + r * out_width, out_width, columns);
    return;
  }
  for (int64_t r = 0; r < rows; r += most) {
    const int64_t first = min_of(r, rows - most);
    depthwise_rows_of<T, most, Side>(kernel, seen + first * kernel.pitch, bias, relu, out + first * out_width, out_width, columns);
  }
}

// The side of a square kernel without gaps for which there is code, else 0.
inline int64_t plain_side(const ConvAxis& rows, const ConvAxis& columns) {
  const bool plain = rows.taps == columns.taps && shift_span(rows) == rows.taps - 1 && shift_span(columns) == columns.taps - 1;
  return plain && (rows.taps == 3 || rows.taps == 5) ? rows.taps : 0;
}

// weights[group][k] and offsets[k] of the elements of the kernel.
template <class T>
void lay_out_kernels(const ConvMap<T>& m, int64_t pitch, T* weights, int64_t* offsets) {
  const int64_t first_row = least_shift(m.rows), first_column = least_shift(m.columns), side = plain_side(m.rows, m.columns);
  for (int64_t p = 0, k = 0; p < m.rows.taps; ++p) {
    for (int64_t q = 0; q < m.columns.taps; ++q, ++k) {
      const int64_t row = m.rows.shift[p] - first_row, column = m.columns.shift[q] - first_column;
      const int64_t place = side > 0 ? row * side + column : k;
      offsets[place] = row * pitch + column;
      const T* element = m.weight + m.rows.element[p] * m.weight_row + m.columns.element[q];
      for (int64_t group = 0; group < m.groups; ++group)
        weights[group * m.rows.taps * m.columns.taps + place] = element[group * m.weight_group];
    }
  }
}

template <class T>
void convolve_depthwise(const ConvMap<T>& m) {
  constexpr int64_t lanes = Vec<T>::lanes, most_bytes = 64 * 1024;
  const int64_t columns = m.columns.count, width = m.columns.source, side = plain_side(m.rows, m.columns);
  const int64_t taps = m.rows.taps * m.columns.taps, margin = shift_span(m.rows);
  const int64_t first_row = least_shift(m.rows), first_column = least_shift(m.columns);
  const int64_t before = max_of(0, -first_column), skipped = max_of(0, first_column), copied = max_of(0, width - skipped);
  const int64_t seen = whole_vectors<T>(columns) + shift_span(m.columns);
  const int64_t pitch = max_of(lanes, max_of(seen, before + whole_vectors<T>(copied)));
  const int64_t fitting = max_of(depthwise_rows, most_bytes / int64_t(sizeof(T)) / pitch - margin);
  const int64_t blocks = ceil_div(m.rows.count, fitting), block_rows = ceil_div(m.rows.count, blocks);
  const int64_t window_rows = block_rows + margin;
  const auto run = side == 3 ? depthwise_block<T, 3> : side == 5 ? depthwise_block<T, 5> : depthwise_block<T, 0>;

  Workspace<T> weights(m.groups * taps);
  int64_t offsets[longest_chain];
  lay_out_kernels(m, pitch, weights.data(), offsets);
  const double ns = 100 + double(block_rows * whole_vectors<T>(columns)) * double(taps + 4) * sizeof(T) / 180.0;
  parallel_for(m.images * m.groups * blocks, ns, [&](int64_t begin, int64_t end) {
    Workspace<T> seen(window_rows * pitch + lanes);
    clear_piece(window_rows * pitch + lanes, seen.data());
    for (int64_t task = begin; task < end; ++task) {
      const int64_t plane = task / blocks, first = task % blocks * block_rows, rows = min_of(block_rows, m.rows.count - first);
      const T* source = m.source + plane * m.rows.source * width + skipped;
      for (int64_t r = 0; r < rows + margin; ++r) {
        const int64_t row = first + r + first_row;
        T* to = seen.data() + r * pitch + before;
        if (row < 0 || row >= m.rows.source) clear_piece(copied, to);
        else for (int64_t x = 0; x < copied; x += lanes) store(to + x, load_first(source + row * width + x, copied - x));
      }
      T* out = m.out + plane * m.out_height * m.out_width + (m.rows.out_first + first) * m.out_width + m.columns.out_first;
      const int64_t group = plane % m.groups;
      const DepthwiseKernel<T> kernel = {weights.data() + group * taps, offsets, taps, pitch};
      run(kernel, seen.data(), m.bias ? m.bias[group] : T(0), m.relu, out, m.out_width, columns, rows);
    }
  });
}

}  // namespace extensor::EXTENSOR_ISA
