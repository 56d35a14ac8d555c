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
#include "kernels/conv/window.hpp"
#include "kernels/matmul/dot.hpp"

namespace extensor::EXTENSOR_ISA {
namespace {

constexpr int64_t batch_bytes = 160 * 1024;  // what a slice looks at, at a time
constexpr int64_t longest_chain = 256;       // vectors added up before they go into a float64
constexpr int64_t most_slices = 8;
constexpr int tile_outputs = 3, tile_taps = 4;

template <class T>
struct Batch {
  int64_t blocks, rows, across;  // across: vectors in a row of pixels
  const T* grad;
  int64_t grad_block, grad_plane, grad_row;
  const T* seen;
  int64_t seen_block, seen_row;
  Mask<T> last;  // which lanes of a row's last vector exist
};

template <class T, int Outputs, int Taps, bool Partial>
void add_products(const Batch<T>& batch, const T* grad, const int64_t* offsets, double* sums, int64_t row) {
  constexpr int lanes = Vec<T>::lanes;
  Vec<T> acc[Outputs][Taps];
  for (auto& line : acc)
    for (auto& sum : line) sum = Vec<T>(0.0);
  for (int64_t block = 0; block < batch.blocks; ++block) {
    const T* g_line = grad + block * batch.grad_block;
    const T* x_line = batch.seen + block * batch.seen_block;
    for (int64_t r = 0; r < batch.rows; ++r, g_line += batch.grad_row, x_line += batch.seen_row) {
      const T* g = g_line;
      const T* x = x_line;
      for (int64_t v = Partial ? 1 : 0; v < batch.across; ++v, g += lanes, x += lanes) {
        Vec<T> gv[Outputs];
        for (int o = 0; o < Outputs; ++o) gv[o] = load(g + o * batch.grad_plane);
        for (int t = 0; t < Taps; ++t) {
          const Vec<T> xv = load(x + offsets[t]);
          for (int o = 0; o < Outputs; ++o) acc[o][t] = fma(gv[o], xv, acc[o][t]);
        }
      }
      if (Partial) {  // the gradient is 0 in the lanes that do not exist; what is seen there must not be inf or nan
        Vec<T> gv[Outputs];
        for (int o = 0; o < Outputs; ++o) gv[o] = load(g + o * batch.grad_plane);
        for (int t = 0; t < Taps; ++t) {
          const Vec<T> xv = keep(batch.last, load(x + offsets[t]));
          for (int o = 0; o < Outputs; ++o) acc[o][t] = fma(gv[o], xv, acc[o][t]);
        }
      }
    }
  }
  for (int o = 0; o < Outputs; ++o)
    for (int t = 0; t < Taps; ++t) sums[o * row + t] += double(sum_lanes(acc[o][t]));
}

template <class T>
using ProductFunction = void (*)(const Batch<T>&, const T*, const int64_t*, double*, int64_t);
template <class T, bool Partial, int Outputs, int... Taps>
struct ProductRow {
  static constexpr ProductFunction<T> of_taps[] = {nullptr, add_products<T, Outputs, Taps, Partial>...};
};

template <class T, bool Partial>
ProductFunction<T> product_of(int outputs, int taps) {
  if (outputs == 1) return ProductRow<T, Partial, 1, 1, 2, 3, 4>::of_taps[taps];
  if (outputs == 2) return ProductRow<T, Partial, 2, 1, 2, 3, 4>::of_taps[taps];
  return ProductRow<T, Partial, 3, 1, 2, 3, 4>::of_taps[taps];
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
    if (count > 0) std::memcpy(to, from + r * length, size_t(length) * sizeof(T));
    for (int64_t i = count; i < padded; ++i) to[i] = T(0);
  }
}

template <class T>
void weight_gradient(const ConvWeightMap<T>& m) {
  constexpr int lanes = Vec<T>::lanes;
  const int64_t k = m.inputs * m.rows.taps * m.columns.taps, size = m.groups * m.outputs * k;
  if (size == 0) return;
  if (m.images == 0) {
    for (int64_t i = 0; i < size; ++i) m.out[i] = T(0);
    return;
  }
  const int64_t source_plane = m.rows.source * m.columns.source, grad_plane = m.rows.count * m.columns.count;
  const int64_t across = ceil_div(m.columns.count, lanes), grad_row = across * lanes;
  const int rest = int(m.columns.count % lanes);

  // Blocks of rows, and how many of them at a time.
  const Window one_row(m.inputs, m.rows, m.columns, 1, lanes);
  const int64_t row_bytes = (m.inputs * one_row.row_length() * m.rows.step + m.outputs * grad_row) * int64_t(sizeof(T));
  const int64_t fitting = max_of(1, min_of(batch_bytes / row_bytes, longest_chain / across));
  const int64_t parts = ceil_div(m.rows.count, fitting), block_rows = ceil_div(m.rows.count, parts);
  const Window window(m.inputs, m.rows, m.columns, block_rows, lanes);
  const int64_t block_bytes = (window.size() + m.outputs * block_rows * grad_row) * int64_t(sizeof(T));
  const int64_t together = max_of(1, min_of(batch_bytes / block_bytes, longest_chain / (block_rows * across)));
  const int64_t blocks = m.images * parts;
  const int64_t slices = min_of(most_slices, ceil_div(blocks, together));
  const int64_t slice_blocks = ceil_div(blocks, slices);

  Scratch<int64_t> offsets(k);
  int64_t step = 0;
  for (int64_t c = 0; c < m.inputs; ++c)
    for (int64_t p = 0; p < m.rows.taps; ++p)
      for (int64_t q = 0; q < m.columns.taps; ++q)
        offsets.data()[step++] = window.offset(c, m.rows.shift[p], m.columns.shift[q]);

  Scratch<double> sums(slices * size);
  const double ns = double(m.outputs * k) * double(slice_blocks * block_rows * grad_row) * sizeof(T) / 180.0;
  // With whole vectors and whole images the gradient is read where it lies.
  const bool in_place = rest == 0 && parts == 1;
  parallel_for(slices * m.groups, 1000 + ns, [&](int64_t begin, int64_t end) {
    Scratch<T> seen(together * window.size());
    Scratch<T> copied(in_place ? 1 : together * m.outputs * block_rows * grad_row);
    for (int64_t task = begin; task < end; ++task) {
      const int64_t slice = task / m.groups, group = task % m.groups;
      double* total = sums.data() + slice * size + group * m.outputs * k;
      for (int64_t i = 0; i < m.outputs * k; ++i) total[i] = 0;
      const int64_t stop = min_of(blocks, (slice + 1) * slice_blocks);
      for (int64_t first = slice * slice_blocks; first < stop; first += together) {
        Batch<T> batch;
        batch.blocks = min_of(together, stop - first);
        batch.rows = block_rows, batch.across = across;
        batch.seen = seen.data(), batch.seen_block = window.size(), batch.seen_row = m.rows.step * window.row_length();
        if (in_place) {
          batch.grad = m.grad + (first * m.groups + group) * m.outputs * grad_plane;
          batch.grad_block = m.groups * m.outputs * grad_plane;
        } else {
          batch.grad = copied.data();
          batch.grad_block = m.outputs * block_rows * grad_row;
        }
        batch.grad_row = grad_row, batch.grad_plane = block_rows * grad_row;
        for (int lane = 0; lane < lanes; ++lane) batch.last.v[lane] = rest == 0 || lane < rest ? -1 : 0;
        for (int64_t b = 0; b < batch.blocks; ++b) {
          const int64_t image = (first + b) / parts, row = (first + b) % parts * block_rows;
          const int64_t channels = image * m.groups + group;
          copy_window(m.source + channels * m.inputs * source_plane, m.rows.source, m.columns.source, row * m.rows.step, window,
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
