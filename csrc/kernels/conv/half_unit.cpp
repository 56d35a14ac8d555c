// Convolution of bfloat16 as a matrix product that never sees its left-hand side as a matrix.
//
//   sums[pixels, outputs] = seen[pixels, taps * inputs] @ weight.T[taps * inputs, outputs]
//
//   1. pack the weight in panels of pairs of inputs
//   2. for each image, group and block of rows:
//      a. copy what the block sees, pairs of channels innermost: what a pixel sees of a row is one piece of memory
//      b. for each panel and each few neighbouring pixels: one register tile
//      c. transpose the sums into the planes of the output, rounded
//
// The steps k go by rows of the kernel, columns in the order in which they are seen, inputs; one chain of dot products.
// Compiled once, for AVX512-BF16.
#include "kernels/conv/half.hpp"

#include "core/threads.hpp"
#include "kernels/conv/half_pixels.hpp"
#include "kernels/matmul/half_pairs_tile.hpp"

namespace extensor::EXTENSOR_ISA {
namespace {

constexpr int lanes = Floats::lanes;
constexpr int64_t window_bytes = 160 * 1024, sums_bytes = 96 * 1024;

// A piece of what a pixel sees: taps that are neighbours in a row.
struct Run {
  int64_t offset, pairs;  // from the pixel's first place in the window, and how long
};

struct TapJob {
  const Run* runs;
  int64_t count;
  int64_t pixel;  // pairs between the places of two neighbouring outputs
  const HalfPair* weight;
};

template <int Rows, int Vectors>
void multiply_taps(const TapJob& job, const HalfPair* seen, float* sums) {
  Floats acc[Rows][Vectors];
  clear_sums(acc);
  const HalfPair* b = job.weight;
  for (int64_t run = 0; run < job.count; ++run) {
    RowsOfA<HalfPair, Rows> a(seen + job.runs[run].offset, job.pixel, 1);
    for (int64_t p = job.runs[run].pairs; p > 0; --p) {
      __m512i bv[Vectors];
#pragma GCC unroll 8
      for (int j = 0; j < Vectors; ++j) bv[j] = load_pairs(b + j * lanes);
      add_dot_pairs(a, bv, acc);
      a.step();
      b += Vectors * lanes;
    }
  }
#pragma GCC unroll 16
  for (int i = 0; i < Rows; ++i)
#pragma GCC unroll 8
    for (int j = 0; j < Vectors; ++j) store(sums + (i * Vectors + j) * lanes, acc[i][j]);
}

using TapFunction = void (*)(const TapJob&, const HalfPair*, float*);
template <int Vectors, int... Rows>
struct TapTable {
  static constexpr TapFunction of_rows[] = {nullptr, multiply_taps<Rows, Vectors>...};
};
template <int Vectors>
using Taps = TapTable<Vectors, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12>;

// The order of the columns of the kernel: by what they see.
void sort_taps(const ConvAxis& axis, int64_t* order) {
  for (int64_t t = 0; t < axis.taps; ++t) {
    int64_t place = t;
    for (; place > 0 && axis.shift[order[place - 1]] > axis.shift[t]; --place) order[place] = order[place - 1];
    order[place] = t;
  }
}

// Panels of `width` outputs of all groups: for each step, a pair of inputs of each output.
void pack_weight(const ConvMap<uint16_t>& m, const int64_t* order, int64_t width, int64_t panels, HalfPair* to) {
  const int64_t pairs = (m.inputs + 1) / 2;
  for (int64_t group = 0; group < m.groups; ++group)
    for (int64_t panel = 0; panel < panels; ++panel)
      for (int64_t p = 0; p < m.rows.taps; ++p)
        for (int64_t q = 0; q < m.columns.taps; ++q) {
          const uint16_t* const tap = m.weight + group * m.weight_group + panel * width * m.weight_output +
                                      m.rows.element[p] * m.weight_row + m.columns.element[order[q]];
          const int64_t count = min_of(width, m.outputs - panel * width);
          for (int64_t c = 0; c < pairs; ++c, to += width) {
            const uint16_t* const from = tap + 2 * c * m.weight_input;
            const bool whole = 2 * c + 1 < m.inputs;
            for (int64_t o = 0; o < count; ++o) to[o] = pair_of(from + o * m.weight_output, m.weight_input, whole);
            for (int64_t o = count; o < width; ++o) to[o] = 0;
          }
        }
}

// out[o * plane + x * step] = sums[x, o] + bias[o], rounded; a row of sums has `width` elements.
void store_planes(const float* sums, int64_t pixels, int64_t width, int64_t outputs, const uint16_t* bias, uint16_t* out, int64_t plane,
                  int64_t step) {
  constexpr int strip = part_lanes<float>;
  for (int64_t x = 0; x < pixels; x += lanes) {
    const int64_t count = min_of(lanes, pixels - x);
    const float* rows[lanes];
    for (int i = 0; i < lanes; ++i) rows[i] = sums + (x + min_of(i, count - 1)) * width;
    for (int64_t o = 0; o < outputs; o += strip) {
      Floats columns[strip];
      load_transposed(rows, o, columns);
      for (int c = 0; c < strip && o + c < outputs; ++c) {
        const Floats sum = bias == nullptr ? columns[c] : columns[c] + broadcast(widen_bfloat16_bits(bias[o + c]));
        uint16_t* const to = out + (o + c) * plane + x * step;
        if (step == 1) {
          store_bfloat16(to, sum, int(count));
          continue;
        }
        uint16_t words[lanes];
        store_bfloat16(words, sum, lanes);
        for (int64_t i = 0; i < count; ++i) to[i * step] = words[i];
      }
    }
  }
}

}  // namespace

void convolve_halves(const ConvMap<uint16_t>& m) {
  if (m.images * m.groups * m.outputs * m.rows.count * m.columns.count == 0) return;
  const int64_t pairs = (m.inputs + 1) / 2, taps = m.rows.taps * m.columns.taps, k = taps * pairs;
  const int64_t width = m.outputs <= lanes ? lanes : 2 * lanes, panels = ceil_div(m.outputs, width);
  const int64_t source_plane = m.rows.source * m.columns.source, out_plane = m.out_height * m.out_width;

  Workspace<int64_t, 256> order(m.columns.taps);
  sort_taps(m.columns, order.data());
  Workspace<HalfPair> weight(m.groups * panels * width * k);
  pack_weight(m, order.data(), width, panels, weight.data());

  // Rows per block: as many as the window and the sums have room for.
  PixelWindow window{m.inputs, m.rows.source, m.columns.source, least_shift(m.columns), 0, 0};
  window.columns = (m.columns.count - 1) * m.columns.step + shift_span(m.columns) + 1;
  const int64_t row_bytes = window.columns * pairs * int64_t(sizeof(HalfPair));
  const int64_t by_window = (window_bytes / row_bytes - shift_span(m.rows)) / m.rows.step;
  const int64_t by_sums = sums_bytes / (m.columns.count * width * int64_t(sizeof(float)));
  const int64_t most_rows = max_of(1, min_of(m.rows.count, min_of(by_window, by_sums)));
  const int64_t blocks = ceil_div(m.rows.count, most_rows), block_rows = ceil_div(m.rows.count, blocks);
  window.rows = (block_rows - 1) * m.rows.step + shift_span(m.rows) + 1;

  Workspace<Run, 1024> runs(taps);
  int64_t count = 0;
  for (int64_t p = 0; p < m.rows.taps; ++p)
    for (int64_t q = 0; q < m.columns.taps; ++q) {
      const int64_t column = m.columns.shift[order.data()[q]] - window.first_column;
      if (q > 0 && m.columns.shift[order.data()[q - 1]] + 1 == m.columns.shift[order.data()[q]]) {
        runs.data()[count - 1].pairs += pairs;
        continue;
      }
      runs.data()[count++] = {((m.rows.shift[p] - least_shift(m.rows)) * window.columns + column) * pairs, pairs};
    }
  // Whether the pixels of a block lie in one piece in the output.
  const bool dense = m.columns.out_step == 1 && m.rows.out_step == 1 && m.out_width == m.columns.count;
  const int64_t tiles = ceil_div(m.columns.count, max_rows);
  const TapFunction* const functions = width == lanes ? Taps<1>::of_rows : Taps<2>::of_rows;

  const double ns = 200 + double(panels * width * k) * double(block_rows * m.columns.count) * sizeof(HalfPair) / 180.0;
  parallel_for(m.images * m.groups * blocks, ns, [&](int64_t begin, int64_t end) {
    Workspace<HalfPair> seen(window.rows * window.columns * pairs + lanes), lines(pairs * window.pitch());
    Workspace<float> sums(block_rows * m.columns.count * width);
    for (int64_t task = begin; task < end; ++task) {
      const int64_t image = task / (m.groups * blocks), group = task / blocks % m.groups;
      const int64_t first = task % blocks * block_rows, rows = min_of(block_rows, m.rows.count - first);
      if (rows <= 0) continue;
      copy_channel_pairs(m.source + (image * m.groups + group) * m.inputs * source_plane, window, first * m.rows.step + least_shift(m.rows),
                         lines.data(), seen.data());
      uint16_t* const out = m.out + (image * m.groups + group) * m.outputs * out_plane;
      for (int64_t panel = 0; panel < panels; ++panel) {
        const TapJob job{runs.data(), count, m.columns.step * pairs, weight.data() + (group * panels + panel) * width * k};
        float* to = sums.data();
        for (int64_t row = 0; row < rows; ++row) {
          const HalfPair* const line = seen.data() + row * m.rows.step * window.columns * pairs;
          int64_t x = 0;
          for (int64_t left = tiles; left > 0; --left) {  // equal shares instead of full ones and a rest
            const int64_t share = ceil_div(m.columns.count - x, left);
            functions[share](job, line + x * job.pixel, to);
            x += share, to += share * width;
          }
        }
        const int64_t o = panel * width, outputs = min_of(width, m.outputs - o);
        const uint16_t* const bias = m.bias ? m.bias + group * m.outputs + o : nullptr;
        const int64_t all = dense ? 1 : rows, length = dense ? rows * m.columns.count : m.columns.count;
        for (int64_t line = 0; line < all; ++line)
          store_planes(sums.data() + line * length * width, length, width, outputs, bias,
                       out + o * out_plane + (m.rows.out_first + (first + line) * m.rows.out_step) * m.out_width + m.columns.out_first,
                       out_plane, m.columns.out_step);
      }
    }
  });
}

}  // namespace extensor::EXTENSOR_ISA
