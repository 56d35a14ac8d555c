// Convolution as a matrix product that never sees its right-hand side as a matrix.
//
//   out[outputs, pixels] = weight[outputs, inputs * taps] @ seen[inputs * taps, pixels]
//
//   1. pack the weight in panels of the register tile's height
//   2. for each image, group and block of rows:
//      a. copy what the block sees (window.hpp)
//      b. for each panel of the weight, for each few vectors of pixels: one register tile; row k of `seen` is the
//         window at an offset that depends on k alone
//
// Vectors lie along the pixels of a row. Where those leave much of a vector empty, map_by_outputs.hpp or map_folded.hpp need
// fewer multiplications; the sizes decide. Channels of their own go to map_depthwise.hpp.
//
// An element of the output is always the same chain of multiply-adds, so the bits do not depend on how the work is cut.
// Compiled once per instruction set.
#include "core/partial.hpp"
#include "core/threads.hpp"
#include "kernels/conv/map_by_outputs.hpp"
#include "kernels/conv/map_depthwise.hpp"
#include "kernels/conv/map_folded.hpp"
#include "kernels/conv/pack_weight.hpp"
#include "kernels/conv/steps.hpp"
#include "kernels/conv/window.hpp"
#include "kernels/matmul/microkernel.hpp"

namespace extensor::EXTENSOR_ISA {
namespace {

// A window of this size and the packed weight share the second-level cache.
constexpr int64_t window_bytes = 160 * 1024;

// A tile has as many sums as there are registers for: three vectors wide for panels of this height and less, two for
// higher ones.
constexpr int panel_rows = vector_bytes == 64 ? 8 : 4;

// The height of the next panel: full ones, a first one that is somewhat higher rather than a last one that is thin.
inline int next_rows(int64_t remaining) {
  const int64_t rest = remaining % panel_rows;
  if (remaining <= max_rows) return int(remaining);
  return int(panel_rows + rest <= max_rows ? panel_rows + rest : panel_rows);
}

// A vector of neighbouring pixels: where it is seen, where it goes and which steps matter to it.
template <class T>
struct Pixels {
  const T* seen;
  T* out;
  int count, begin, end;
};

template <class T>
struct TileJob {
  int64_t depth;           // of a piece of the k steps
  const T* weight;         // packed: `Rows` values for each of the k steps
  const int64_t* offsets;  // of each step in the window
  const T* bias;           // of the panel's first row, or null
  int64_t plane, step;     // distance of two rows of the panel, and of two pixels, in the output
  bool relu;
};

template <class T, int Rows, int Vectors>
EXTENSOR_INLINE void multiply_steps(const TileJob<T>& job, int64_t begin, int64_t end, const Pixels<T>* pixels,
                                    Vec<T> (&acc)[Rows][Vectors]) {
#pragma GCC unroll 16
  for (int i = 0; i < Rows; ++i)
#pragma GCC unroll 8
    for (int v = 0; v < Vectors; ++v) acc[i][v] = Vec<T>(0.0);
  const T* seen[Vectors];
  for (int v = 0; v < Vectors; ++v) seen[v] = pixels[v].seen;
  const T* a = job.weight + begin * Rows;
  for (int64_t p = begin; p < end; ++p, a += Rows) {
    const int64_t offset = job.offsets[p];
    Vec<T> b[Vectors];
    for (int v = 0; v < Vectors; ++v) b[v] = load(seen[v] + offset);
    for (int i = 0; i < Rows; ++i) {
      const Vec<T> w = broadcast(a[i]);
      for (int v = 0; v < Vectors; ++v) acc[i][v] = fma(w, b[v], acc[i][v]);
    }
  }
}

template <class T, int Rows, int Vectors>
EXTENSOR_INLINE void store_tile(const TileJob<T>& job, const Pixels<T>* pixels, Vec<T> (&sums)[Rows][Vectors]) {
  constexpr int lanes = Vec<T>::lanes;
#pragma GCC unroll 16
  for (int i = 0; i < Rows; ++i) {
    const Vec<T> bias = broadcast(job.bias ? positive_zero(job.bias[i]) : T(0));
#pragma GCC unroll 8
    for (int v = 0; v < Vectors; ++v) sums[i][v] = relu_if(job.relu, sums[i][v] + bias);
  }
#pragma GCC unroll 8
  for (int v = 0; v < Vectors; ++v) {
    const int64_t count = pixels[v].count;
    T* out = pixels[v].out;
    if (job.step != 1) {
      alignas(vector_bytes) T room[Rows * lanes];
#pragma GCC unroll 16
      for (int i = 0; i < Rows; ++i) store(room + i * lanes, sums[i][v]);
      store_rows_apart(out, room, Rows, count, job.plane, job.step);
    } else if (count >= lanes) {
#pragma GCC unroll 16
      for (int i = 0; i < Rows; ++i, out += job.plane) store(out, sums[i][v]);
    } else {
#pragma GCC unroll 16
      for (int i = 0; i < Rows; ++i, out += job.plane) store_some(out, sums[i][v], count);
    }
  }
}

template <class T, int Rows, int Vectors>
void multiply_pixels(const TileJob<T>& job, const Pixels<T>* pixels) {
  Steps s{pixels[0].begin, pixels[0].end, job.depth};
  for (int v = 1; v < Vectors; ++v) s.begin = min_of(s.begin, pixels[v].begin), s.end = max_of(s.end, pixels[v].end);
  Vec<T> sums[Rows][Vectors];
  add_pieces(s, sums, [&](int64_t begin, int64_t end) EXTENSOR_INLINE_LAMBDA { multiply_steps<T, Rows, Vectors>(job, begin, end, pixels, sums); });
  store_tile<T, Rows, Vectors>(job, pixels, sums);
}

template <class T>
using TileFunction = void (*)(const TileJob<T>&, const Pixels<T>*);
template <class T, int Vectors, int... Rows>
struct TileTable {
  static constexpr TileFunction<T> of_rows[] = {nullptr, multiply_pixels<T, Rows, Vectors>...};
};
#if defined(__AVX512F__)
template <class T, int Vectors>
using Tiles = TileTable<T, Vectors, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12>;
template <class T>
using WideTiles = TileTable<T, 3, 1, 2, 3, 4, 5, 6, 7, 8>;
#else
template <class T, int Vectors>
using Tiles = TileTable<T, Vectors, 1, 2, 3, 4, 5, 6>;
template <class T>
using WideTiles = TileTable<T, 3, 1, 2, 3, 4>;
#endif

template <class T>
void multiply_panel(const TileJob<T>& job, int rows, const Pixels<T>* pixels, int64_t count) {
  int64_t i = 0;
  if (rows <= panel_rows)
    for (; i + 3 <= count; i += 3) WideTiles<T>::of_rows[rows](job, pixels + i);
  for (; i + 2 <= count; i += 2) Tiles<T, 2>::of_rows[rows](job, pixels + i);
  if (i < count) Tiles<T, 1>::of_rows[rows](job, pixels + i);
}

// Panels of all groups, one behind the other: the panel that starts with row i of group g begins at (g * outputs + i) * k. There
// is room for a vector behind the last.
template <class T>
void pack_weight(const ConvMap<T>& m, int64_t k, T* to) {
  for (int64_t group = 0; group < m.groups; ++group) {
    for (int64_t i = 0; i < m.outputs;) {
      const int height = next_rows(m.outputs - i);
      pack_steps(m, m.weight + group * m.weight_group + i * m.weight_output, height, height, to);
      to += height * k;
      i += height;
    }
  }
}

// The multiplications of this way, with the empty lanes (`whole` says how many lanes there are to so many numbers) and those of
// tiles whose rows see different taps.
template <class T>
double pixels_cost(const ConvMap<T>& m, const SeenSteps<T>& seen, int64_t (*whole)(int64_t)) {
  // Sorting the columns by their phase costs about half as much again.
  return (m.columns.step == 1 ? 1.1 : 1.6) * double(seen.all()) * double(m.outputs * whole(m.columns.count));
}

template <class T>
void convolve(const ConvMap<T>& m) {
  constexpr int lanes = Vec<T>::lanes;
  const int64_t k = m.inputs * m.rows.taps * m.columns.taps;
  const int64_t source_plane = m.rows.source * m.columns.source, out_plane = m.out_height * m.out_width;
  if (m.images * m.groups * m.outputs == 0 || m.rows.count * m.columns.count == 0) return;
  if (is_depthwise(m)) return convolve_depthwise(m);
  const SeenSteps<T> seen_steps(m);
  // The folded way adds up in another order than the others, so wide vectors decide; between those two, the registers.
  const double folded = folded_cost(m, seen_steps), by_outputs = outputs_cost(m, seen_steps, whole_wides<T>);
  if (folded < pixels_cost(m, seen_steps, whole_wides<T>) && folded < by_outputs) return convolve_folded(m, seen_steps);
  if (outputs_cost(m, seen_steps, whole_vectors<T>) < pixels_cost(m, seen_steps, whole_vectors<T>)) return convolve_by_outputs(m, seen_steps);

  // Rows per block: as many as the window has room for.
  const Window one_row(m.inputs, m.rows, m.columns, 1, lanes);
  const int64_t row_bytes = max_of(1, m.inputs * one_row.row_length() * m.rows.step) * int64_t(sizeof(T));
  const int64_t shared = (one_row.rows - m.rows.step) * row_bytes / m.rows.step;
  const int64_t most_rows = max_of(1, min_of(m.rows.count, (window_bytes - shared) / row_bytes));
  const int64_t blocks = ceil_div(m.rows.count, most_rows), block_rows = ceil_div(m.rows.count, blocks);
  const Window window(m.inputs, m.rows, m.columns, block_rows, lanes);

  const int64_t across = ceil_div(m.columns.count, lanes);
  WeightRoom<T> weight(m.kept, m.groups * m.outputs * k + lanes);
  Workspace<int64_t> offsets(max_of(1, k));
  if (!weight.is_filled()) pack_weight(m, k, weight.data());
  weight.set_filled();
  fill_offsets(m, window, offsets.data());
  Workspace<Steps> row_steps(m.rows.count);
  for (int64_t row = 0; row < m.rows.count; ++row) row_steps.data()[row] = seen_steps(row);

  const double ns = 200 + double(m.outputs * k) * double(block_rows * across * lanes) * sizeof(T) / 180.0;
  parallel_for(m.images * m.groups * blocks, ns, [&](int64_t begin, int64_t end) {
    Workspace<T> seen(max_of(1, window.size()));
    Workspace<Pixels<T>> pixels(block_rows * across);
    for (int64_t task = begin; task < end; ++task) {
      const int64_t image = task / (m.groups * blocks), group = task / blocks % m.groups;
      const int64_t first = task % blocks * block_rows, rows = min_of(block_rows, m.rows.count - first);
      if (rows <= 0) continue;
      const int64_t source = (image * m.groups + group) * m.inputs * source_plane;
      if (k > 0) copy_window(m.source + source, m.rows, m.columns.source, first, window, seen.data());
      T* out = m.out + (image * m.groups + group) * m.outputs * out_plane;
      int64_t count = 0;
      for (int64_t row = 0; row < rows; ++row) {
        const Steps steps = row_steps.data()[first + row];
        T* line = out + (m.rows.out_first + (first + row) * m.rows.out_step) * m.out_width + m.columns.out_first;
        for (int64_t x = 0; x < m.columns.count; x += lanes)
          pixels.data()[count++] = {seen.data() + row * m.rows.step * window.row_length() + x, line + x * m.columns.out_step,
                                    int(min_of(lanes, m.columns.count - x)), int(steps.begin), int(steps.end)};
      }
      TileJob<T> job;
      job.depth = piece_depth(k);
      job.offsets = offsets.data();
      job.plane = out_plane, job.step = m.columns.out_step, job.relu = m.relu;
      for (int64_t i = 0; i < m.outputs;) {
        const int height = next_rows(m.outputs - i);
        job.weight = weight.data() + (group * m.outputs + i) * k;
        job.bias = m.bias ? m.bias + group * m.outputs + i : nullptr;
        multiply_panel(job, height, pixels.data(), count);
        for (int64_t v = 0; v < count; ++v) pixels.data()[v].out += height * out_plane;
        i += height;
      }
    }
  });
}

}  // namespace

const ConvTable& conv_table() {
  static constexpr ConvTable table = {convolve<float>, convolve<double>};
  return table;
}

}  // namespace extensor::EXTENSOR_ISA
