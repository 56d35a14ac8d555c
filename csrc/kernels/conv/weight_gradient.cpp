// The gradient of the weight: for every output and every element of the kernel, the scalar product of the gradient
// with what the element sees.
//
//   out[outputs, inputs * taps] = sum over images of  grad[outputs, pixels] @ seen[inputs * taps, pixels].T
//
// Both sides lie along the pixels, so nothing is packed: a few rows of each, one vector of pixels at a time.
//
//   1. the images, or blocks of rows of large ones, are cut into slices; each slice has sums of its own, in float64
//   2. a slice takes a few blocks at a time: copies what they see (window.hpp), then for each tile of outputs and taps
//      adds up their products
//   3. the slices are added in order
//
// Where the cuts are depends on the sizes alone, so the bits do not depend on the threads.
// Compiled once per instruction set.
#include "core/partial.hpp"
#include "core/threads.hpp"
#include "kernels/conv/weight_gradient_by_outputs.hpp"
#include "kernels/conv/window.hpp"
#include "kernels/matmul/dot.hpp"
#include "kernels/matmul/pack.hpp"

namespace extensor::EXTENSOR_ISA {
namespace {

// What a slice looks at, at a time, stays in the second-level cache, the gradients of a tile in the first.
constexpr int64_t batch_bytes = 320 * 1024, tile_bytes = 24 * 1024;
constexpr int64_t longest_chain = 256;  // vectors added up before they go into a float64
constexpr int64_t most_slices = 8;
// As many sums as there are registers for.
constexpr int tile_outputs = vector_bytes == 64 ? 6 : 4, tile_taps = vector_bytes == 64 ? 4 : 3;
constexpr int64_t tile_chain = min_of(longest_chain, tile_bytes / (6 * 64));  // of wide vectors; the same for every set

template <class T>
struct Batch {
  int64_t blocks, lines, across;  // `across` wide vectors in a line: a row of pixels, or a column
  const T* grad;
  int64_t grad_block, grad_plane, grad_line, grad_step;
  const T* seen;
  int64_t seen_block, seen_line, seen_step;
  int64_t rest;  // how many lanes of a row's last wide vector exist, if not all
};

// lanes[4 q + i] = the sum of the four lanes q of value i.
template <class T>
EXTENSOR_INLINE void add_within_parts(Vec<T> v0, Vec<T> v1, Vec<T> v2, Vec<T> v3, T* lanes) {
  Vec<T> low, high, first, second;
  interleave_parts(v0, v2, low, high);
  first = low + high;  // parts of v0 v2 v0 v2
  interleave_parts(v1, v3, low, high);
  second = low + high;  // v1 v3 v1 v3
  interleave_parts(first, second, low, high);
  store(lanes, low + high);  // v0 v1 v2 v3 in every part
}

// sums[i] += the sum of the lanes of value i, for up to four vectors of floats at once.
template <int Count, class T>
EXTENSOR_INLINE void add_four_sums(const Wide<T>& v0, const Wide<T>& v1, const Wide<T>& v2, const Wide<T>& v3, double* sums) {
  T lanes[wide_lanes<T>];
  for (int p = 0; p < wide_parts; ++p) add_within_parts(part_of(v0, p), part_of(v1, p), part_of(v2, p), part_of(v3, p), lanes + p * Vec<T>::lanes);
  for (int i = 0; i < Count; ++i) {
    T sum = lanes[i];
    for (int part = 4; part < wide_lanes<T>; part += 4) sum += lanes[part + i];
    sums[i] += double(sum);
  }
}

template <class T, int Outputs, int Taps>
struct Sums {
  Vec<T> acc[Outputs][Taps];

  // What is seen lies across the borders of cache lines: each vector of it is loaded once, the gradients in between.
  EXTENSOR_INLINE void add(const T* g, int64_t grad_plane, const Vec<T> (&seen)[Taps], int64_t count = Vec<T>::lanes) {
    for (int o = 0; o < Outputs; ++o) {
      const Vec<T> gv = load_first(g + o * grad_plane, count);
      for (int t = 0; t < Taps; ++t) acc[o][t] = fma(gv, seen[t], acc[o][t]);
    }
  }
};

// One part of the wide vectors: its sums, of which the lanes are still apart.
template <class T, int Outputs, int Taps, bool Partial>
EXTENSOR_INLINE void add_part(const Batch<T>& batch, int part, const T* grad, const int64_t* offsets, Sums<T, Outputs, Taps>& total) {
#pragma GCC unroll 8
  for (auto& line : total.acc)
#pragma GCC unroll 8
    for (auto& sum : line) sum = Vec<T>(0.0);
  const int64_t before = part * Vec<T>::lanes, rest = min_of(Vec<T>::lanes, batch.rest - before);  // of the last wide vector
  const Mask<T> last = lanes_below<T>(int(max_of(0, rest)));
  int64_t offset[Taps];
  for (int t = 0; t < Taps; ++t) offset[t] = offsets[t];
  for (int64_t block = 0; block < batch.blocks; ++block) {
    const T* g_line = grad + block * batch.grad_block + before;
    const T* x_line = batch.seen + block * batch.seen_block + before;
    for (int64_t line = 0; line < batch.lines; ++line, g_line += batch.grad_line, x_line += batch.seen_line) {
      const T* g = g_line;
      const T* x = x_line;
      Vec<T> seen[Taps];
      for (int64_t v = Partial ? 1 : 0; v < batch.across; ++v, g += batch.grad_step, x += batch.seen_step) {
        for (int t = 0; t < Taps; ++t) seen[t] = load(x + offset[t]);
        total.add(g, batch.grad_plane, seen);
      }
      if (Partial && rest > 0) {  // the gradient is 0 in the lanes that do not exist; what is seen there must not be inf or nan
        for (int t = 0; t < Taps; ++t) seen[t] = keep(last, load(x + offset[t]));
        total.add(g, batch.grad_plane, seen, rest);
      }
    }
  }
}

template <class T, int Outputs, int Taps, bool Partial>
void add_products(const Batch<T>& batch, const T* grad, const int64_t* offsets, double* sums, int64_t row) {
  Sums<T, Outputs, Taps> parts[wide_parts];
  if constexpr (wide_parts == 1) {
    add_part<T, Outputs, Taps, Partial>(batch, 0, grad, offsets, parts[0]);
  } else {
    for (int p = 0; p < wide_parts; ++p) {
      Sums<T, Outputs, Taps> total;
      add_part<T, Outputs, Taps, Partial>(batch, p, grad, offsets, total);
      parts[p] = total;
    }
  }
#pragma GCC unroll 8
  for (int o = 0; o < Outputs; ++o) {
    Wide<T> acc[Taps];
    for (int t = 0; t < Taps; ++t)
      for (int p = 0; p < wide_parts; ++p) part_of(acc[t], p) = parts[p].acc[o][t];
    if constexpr (Taps > 1 && part_lanes<T> == 4)
      add_four_sums<Taps, T>(acc[0], acc[1], acc[Taps > 2 ? 2 : 0], acc[Taps > 3 ? 3 : 0], sums + o * row);
    else
      for (int t = 0; t < Taps; ++t) sums[o * row + t] += double(sum_lanes<T>(acc[t]));
  }
}

template <class T>
using ProductFunction = void (*)(const Batch<T>&, const T*, const int64_t*, double*, int64_t);

template <class T, bool Partial, int Taps, int... Index>
ProductFunction<T> product_of(int outputs, std::integer_sequence<int, Index...>) {
  static constexpr ProductFunction<T> of_outputs[] = {add_products<T, Index + 1, Taps, Partial>...};
  return of_outputs[outputs - 1];
}

template <class T, bool Partial>
ProductFunction<T> product_of(int outputs, int taps) {
  constexpr auto all = std::make_integer_sequence<int, tile_outputs>();
  if (taps == 1) return product_of<T, Partial, 1>(outputs, all);
  if (taps == 2) return product_of<T, Partial, 2>(outputs, all);
  return taps == 3 ? product_of<T, Partial, 3>(outputs, all) : product_of<T, Partial, tile_taps>(outputs, all);
}

// Equal shares instead of full ones and a rest.
inline int share(int64_t remaining, int most) { return int(ceil_div(remaining, ceil_div(remaining, most))); }

template <class T, bool Partial>
void add_batch(const Batch<T>& batch, int64_t outputs, int64_t k, const int64_t* offsets, double* sums) {
  for (int64_t o = 0; o < outputs;) {
    const int height = share(outputs - o, tile_outputs);
    for (int64_t t = 0; t < k;) {
      const int width = share(k - t, tile_taps);
      product_of<T, Partial>(height, width)(batch, batch.grad + o * batch.grad_plane, offsets + t, sums + o * k + t, k);
      t += width;
    }
    o += height;
  }
}

// Rows of `length` elements, filled up with zeros to `padded`. Rows that do not exist are zero, too.
template <class T>
void copy_padded(const T* from, int64_t rows, int64_t length, int64_t all_rows, int64_t padded, T* to) {
  for (int64_t r = 0; r < all_rows; ++r, to += padded) {
    const int64_t count = r < rows ? length : 0;
    copy_piece(from + r * length, count, to);
    clear_piece(padded - count, to + count);
  }
}

template <class T>
void weight_gradient(const ConvWeightMap<T>& m) {
  constexpr int lanes = wide_lanes<T>;
  const int64_t k = m.inputs * m.rows.taps * m.columns.taps, size = m.groups * m.outputs * k;
  if (size == 0) return;
  if (m.images == 0) {
    for (int64_t i = 0; i < size; ++i) m.out[i] = T(0);
    return;
  }
  if (fills_outputs_better(m)) return weight_gradient_by_outputs(m);
  const int64_t source_plane = m.rows.source * m.columns.source, grad_plane = m.rows.count * m.columns.count;
  const int64_t across = ceil_div(m.columns.count, lanes), grad_row = across * lanes;
  const int rest = int(m.columns.count % lanes);

  // Blocks of rows, and how many of them at a time.
  const Window one_row(m.inputs, m.rows, m.columns, 1, lanes);
  const int64_t row_bytes = (m.inputs * one_row.row_length() * m.rows.step + m.outputs * grad_row) * int64_t(sizeof(T));
  const int64_t fitting = max_of(1, min_of(batch_bytes / row_bytes, tile_chain / across));
  const int64_t parts = ceil_div(m.rows.count, fitting), block_rows = ceil_div(m.rows.count, parts);
  const Window window(m.inputs, m.rows, m.columns, block_rows, lanes);
  const int64_t block_bytes = (window.size() + m.outputs * block_rows * grad_row) * int64_t(sizeof(T));
  const int64_t together = max_of(1, min_of(batch_bytes / block_bytes, tile_chain / (block_rows * across)));
  const int64_t blocks = m.images * parts;
  const int64_t slices = min_of(most_slices, ceil_div(blocks, together));
  const int64_t slice_blocks = ceil_div(blocks, slices);

  Workspace<int64_t> offsets(k);
  int64_t step = 0;
  for (int64_t c = 0; c < m.inputs; ++c)
    for (int64_t p = 0; p < m.rows.taps; ++p)
      for (int64_t q = 0; q < m.columns.taps; ++q)
        offsets.data()[step++] = window.offset(c, m.rows.shift[p], m.columns.shift[q]);

  Workspace<double> sums(slices * size);
  const double ns = double(m.outputs * k) * double(slice_blocks * block_rows * grad_row) * sizeof(T) / 180.0;
  // The gradient of whole images is read where it lies, if the rest of a row is cheap to read or there is none.
  const bool in_place = parts == 1 && (rest == 0 || vector_bytes > 16);
  parallel_for(slices * m.groups, 1000 + ns, [&](int64_t begin, int64_t end) {
    Workspace<T> seen(together * window.size());
    Workspace<T> copied(in_place ? 1 : together * m.outputs * block_rows * grad_row);
    for (int64_t task = begin; task < end; ++task) {
      const int64_t slice = task / m.groups, group = task % m.groups;
      double* total = sums.data() + slice * size + group * m.outputs * k;
      for (int64_t i = 0; i < m.outputs * k; ++i) total[i] = 0;
      const int64_t stop = min_of(blocks, (slice + 1) * slice_blocks);
      for (int64_t first = slice * slice_blocks; first < stop; first += together) {
        Batch<T> batch;
        batch.blocks = min_of(together, stop - first);
        batch.seen = seen.data(), batch.seen_block = window.size();
        batch.lines = block_rows, batch.across = across;
        batch.grad_line = grad_row, batch.seen_line = m.rows.step * window.row_length();
        batch.grad_step = batch.seen_step = lanes;
        if (rest == 0 && across <= 2 && block_rows > 2) {  // the inner loop is not to be too short
          batch.lines = across, batch.across = block_rows;
          batch.grad_step = batch.grad_line, batch.seen_step = batch.seen_line;
          batch.grad_line = batch.seen_line = lanes;
        }
        batch.rest = rest;
        if (in_place) {
          batch.grad_line = rest == 0 ? batch.grad_line : m.columns.count;
          batch.grad = m.grad + (first * m.groups + group) * m.outputs * grad_plane;
          batch.grad_block = m.groups * m.outputs * grad_plane;
        } else {
          batch.grad = copied.data();
          batch.grad_block = m.outputs * block_rows * grad_row;
        }
        batch.grad_plane = in_place ? grad_plane : block_rows * grad_row;
        for (int64_t b = 0; b < batch.blocks; ++b) {
          const int64_t image = (first + b) / parts, row = (first + b) % parts * block_rows;
          const int64_t channels = image * m.groups + group;
          copy_window(m.source + channels * m.inputs * source_plane, m.rows, m.columns.source, row, window,
                      seen.data() + b * window.size());
          if (in_place) continue;
          const T* grad = m.grad + channels * m.outputs * grad_plane + row * m.columns.count;
          for (int64_t o = 0; o < m.outputs; ++o)
            copy_padded(grad + o * grad_plane, min_of(block_rows, m.rows.count - row), m.columns.count, block_rows, grad_row,
                        copied.data() + b * batch.grad_block + o * batch.grad_plane);
        }
        if (rest == 0) add_batch<T, false>(batch, m.outputs, k, offsets.data(), total);
        else add_batch<T, true>(batch, m.outputs, k, offsets.data(), total);
      }
    }
  });
  for (int64_t i = 0; i < size; ++i) {
    double total = sums.data()[i];
    for (int64_t s = 1; s < slices; ++s) total += sums.data()[s * size + i];
    m.out[i] = T(total);
  }
}

}  // namespace

const ConvWeightTable& conv_weight_table() {
  static constexpr ConvWeightTable table = {weight_gradient<float>, weight_gradient<double>};
  return table;
}

}  // namespace extensor::EXTENSOR_ISA
