// The gradient of the weight of a convolution of bfloat16.
//
//   out[outputs, taps * inputs] = sum over images of  grad[outputs, pixels] @ seen[pixels, taps * inputs]
//
// The pairs are two neighbouring pixels of a row of outputs.
//
//   1. the images, or blocks of rows of large ones, are cut into slices; each slice has sums of its own
//   2. a slice takes a few of them at a time: copies what they see, each pixel with its partner and the channels innermost, so that
//      what a row of the kernel sees is one piece of memory; then for each few outputs and vectors of taps one register tile
//   3. the slices are added in order
//
// Where the cuts are depends on the sizes alone, so the bits do not depend on the threads.
// Compiled once, for AVX512-BF16.
#include "core/threads.hpp"
#include "kernels/conv/half.hpp"
#include "kernels/conv/half_pixels.hpp"
#include "kernels/matmul/half_pairs_tile.hpp"

namespace extensor::EXTENSOR_ISA {
namespace {

constexpr int lanes = Floats::lanes;
constexpr int64_t batch_bytes = 384 * 1024, most_slices = 8;
constexpr int tile_outputs = 8, tile_vectors = 3;

// Some blocks of rows of images of one group.
struct Blocks {
  int64_t count, lines, pairs;  // pairs of pixels in a line
  const HalfPair* grad;
  int64_t grad_block, grad_plane;  // a plane is a line after the other
  const HalfPair* seen;
  int64_t seen_block, seen_line, seen_step;
};

template <int Outputs, int Vectors>
void add_products(const Blocks& x, const HalfPair* grad, const int64_t* offsets, float* sums, int64_t row) {
  Floats acc[Outputs][Vectors];
  clear_sums(acc);
  int64_t offset[Vectors];
  for (int v = 0; v < Vectors; ++v) offset[v] = offsets[v];
  for (int64_t block = 0; block < x.count; ++block) {
    RowsOfA<HalfPair, Outputs> a(grad + block * x.grad_block, x.grad_plane, 1);
    for (int64_t line = 0; line < x.lines; ++line) {
      const HalfPair* b = x.seen + block * x.seen_block + line * x.seen_line;
      for (int64_t p = x.pairs; p > 0; --p, b += x.seen_step) {
        __m512i bv[Vectors];
#pragma GCC unroll 8
        for (int v = 0; v < Vectors; ++v) bv[v] = load_pairs(b + offset[v]);
        add_dot_pairs(a, bv, acc);
        a.step();
      }
    }
  }
#pragma GCC unroll 8
  for (int o = 0; o < Outputs; ++o)
#pragma GCC unroll 8
    for (int v = 0; v < Vectors; ++v) store(sums + o * row + v * lanes, load(sums + o * row + v * lanes) + acc[o][v]);
}

using ProductFunction = void (*)(const Blocks&, const HalfPair*, const int64_t*, float*, int64_t);
template <int Vectors, int... Outputs>
struct ProductTable {
  static constexpr ProductFunction of_outputs[] = {nullptr, add_products<Outputs, Vectors>...};
};
template <int Vectors>
using Products = ProductTable<Vectors, 1, 2, 3, 4, 5, 6, 7, 8>;

inline int64_t share(int64_t remaining, int64_t most) { return ceil_div(remaining, ceil_div(remaining, most)); }

}  // namespace

bool half_weight_gradient(const ConvWeightMap<uint16_t>& m) {
  const int64_t taps = m.rows.taps * m.columns.taps, size = m.groups * m.outputs * m.inputs * taps;
  if (size == 0) return true;
  const int64_t height = m.rows.count, width = m.columns.count, pairs = (width + 1) / 2;
  if (m.images * height * width == 0) {
    for (int64_t i = 0; i < size; ++i) m.out[i] = 0;
    return true;
  }
  // A piece of taps in a row of the kernel, one behind the other: the whole row, or single ones where they lie apart.
  bool together_in_row = true;
  for (int64_t q = 1; q < m.columns.taps; ++q) together_in_row = together_in_row && m.columns.shift[q] == m.columns.shift[q - 1] + 1;
  const int64_t piece_taps = together_in_row ? m.columns.taps : 1, pieces = taps / piece_taps;
  const int64_t piece_vectors = ceil_div(piece_taps * m.inputs, lanes), vectors = pieces * piece_vectors, row = vectors * lanes;

  PixelWindow window{m.inputs, m.rows.source, m.columns.source, least_shift(m.columns), 0, 0};
  window.columns = (2 * pairs - 1) * m.columns.step + shift_span(m.columns) + 1;
  // Rows per block: whole images if what they see fits.
  const int64_t line_bytes = (window.columns * m.inputs * m.rows.step + m.outputs * pairs) * int64_t(sizeof(HalfPair));
  const int64_t parts = ceil_div(height, max_of(1, batch_bytes / line_bytes)), block_rows = ceil_div(height, parts);
  window.rows = (block_rows - 1) * m.rows.step + shift_span(m.rows) + 1;
  Workspace<int64_t, 1024> offsets(vectors);
  for (int64_t v = 0; v < vectors; ++v) {
    const int64_t first = v / piece_vectors * piece_taps, p = first / m.columns.taps, q = first % m.columns.taps;
    offsets.data()[v] = ((m.rows.shift[p] - least_shift(m.rows)) * window.columns + m.columns.shift[q] - window.first_column) * m.inputs +
                        v % piece_vectors * lanes;
  }

  const int64_t window_size = window.rows * window.columns * m.inputs, grad_plane = height * width;
  const bool in_place = width % 2 == 0 && reinterpret_cast<uintptr_t>(m.grad) % sizeof(HalfPair) == 0;
  const int64_t grad_size = m.outputs * block_rows * pairs, blocks = m.images * parts;
  const int64_t together = parts > 1 ? 1 : max_of(1, min_of(blocks, batch_bytes / ((window_size + grad_size) * int64_t(sizeof(HalfPair)))));
  const int64_t slices = min_of(most_slices, ceil_div(blocks, together)), slice_blocks = ceil_div(blocks, slices);

  Workspace<float> sums(slices * m.groups * m.outputs * row);
  const double ns = double(m.outputs * row) * double(slice_blocks * block_rows * pairs) * sizeof(HalfPair) / 180.0;
  parallel_for(slices * m.groups, 1000 + ns, [&](int64_t begin, int64_t end) {
    Workspace<HalfPair> seen(together * window_size + lanes), lines(m.inputs * window.pitch());
    Workspace<HalfPair> copied(in_place ? 0 : together * grad_size);
    for (int64_t i = 0; i < lanes; ++i) seen.data()[together * window_size + i] = 0;
    for (int64_t task = begin; task < end; ++task) {
      const int64_t slice = task / m.groups, group = task % m.groups;
      float* const total = sums.data() + (slice * m.groups + group) * m.outputs * row;
      __builtin_memset(total, 0, size_t(m.outputs * row) * sizeof(float));
      const int64_t stop = min_of(blocks, (slice + 1) * slice_blocks);
      for (int64_t first = slice * slice_blocks; first < stop; first += together) {
        const int64_t start = first % parts * block_rows, rows = min_of(block_rows, height - start);  // of all of them: more have one part
        if (rows <= 0) continue;
        Blocks some{min_of(together, stop - first), rows, pairs, nullptr, 0, 0, seen.data(), window_size,
                    m.rows.step * window.columns * m.inputs, 2 * m.columns.step * m.inputs};
        for (int64_t i = 0; i < some.count; ++i) {
          const int64_t place = (first + i) / parts * m.groups + group;
          copy_pixel_pairs(m.source + place * m.inputs * m.rows.source * m.columns.source, window, start * m.rows.step + least_shift(m.rows),
                           m.columns.step, lines.data(), seen.data() + i * window_size);
          if (in_place) continue;
          HalfPair* to = copied.data() + i * grad_size;
          for (int64_t o = 0; o < m.outputs; ++o) {
            const uint16_t* from = m.grad + (place * m.outputs + o) * grad_plane + start * width;
            for (int64_t line = 0; line < rows; ++line, from += width)
              for (int64_t p = 0; p < pairs; ++p) *to++ = pair_of(from + 2 * p, 1, 2 * p + 1 < width);
          }
        }
        const uint16_t* const grad = m.grad + (first / parts * m.groups + group) * m.outputs * grad_plane + start * width;
        some.grad = in_place ? reinterpret_cast<const HalfPair*>(grad) : copied.data();
        some.grad_block = in_place ? m.groups * m.outputs * grad_plane / 2 : m.outputs * rows * pairs;
        some.grad_plane = in_place ? grad_plane / 2 : rows * pairs;
        for (int64_t o = 0; o < m.outputs;) {
          const int64_t outputs = share(m.outputs - o, tile_outputs);
          for (int64_t v = 0; v < vectors;) {
            const int64_t wide = share(vectors - v, tile_vectors);
            const ProductFunction* const functions =
                wide == 1 ? Products<1>::of_outputs : wide == 2 ? Products<2>::of_outputs : Products<3>::of_outputs;
            functions[outputs](some, some.grad + o * some.grad_plane, offsets.data() + v, total + o * row + v * lanes, row);
            v += wide;
          }
          o += outputs;
        }
      }
    }
  });

  // 3., and from [taps, inputs] to [inputs, taps]
  bool finite = true;
  const int64_t slice_size = m.groups * m.outputs * row;
  for (int64_t o = 0; o < m.groups * m.outputs; ++o)
    for (int64_t t = 0; t < taps; ++t)
      for (int64_t c = 0; c < m.inputs; ++c) {
        const int64_t place = o * row + t / piece_taps * piece_vectors * lanes + t % piece_taps * m.inputs + c;
        double total = 0;
        for (int64_t s = 0; s < slices; ++s) total += double(sums.data()[s * slice_size + place]);
        finite = finite && __builtin_isfinite(total);
        m.out[(o * m.inputs + c) * taps + t] = narrow_bfloat16_bits(float(total));
      }
  return finite || width % 2 == 0;
}

}  // namespace extensor::EXTENSOR_ISA
