// The packed, cache-blocked product of half precision, for any engine.
//
//   for each block of rows of A that stays in the second-level cache
//     for each block of k
//       1. pack the block of A in panels of the tile's height, where the engine cannot read it as it lies
//       2. for each panel of B: pack it, if no earlier block of rows did; for each panel of A: one tile
//
// An engine says what a packed element is, how A and B are packed and how a tile is computed; row i of a packed block of A begins at
// i * a_row. Between blocks of k the sums wait
// in float32: in C, or where C is of half precision in working memory.
// Included only by sources that are compiled once per instruction set.
#pragma once

#include "core/partial.hpp"
#include "core/threads.hpp"
#include "core/whole.hpp"
#include "core/workspace.hpp"
#include "kernels/elementwise/convert.hpp"
#include "kernels/matmul/half.hpp"
#include "kernels/matmul/microkernel.hpp"

namespace extensor::EXTENSOR_ISA {

constexpr int half_panel = panel_width<float>;

// One tile: rows x columns of C over the steps of one block of k.
template <class Packed>
struct HalfTile {
  int64_t steps;  // packed elements of one column
  const Packed* a;
  int64_t a_row, a_col;  // where A is not a panel
  const Packed* b;
  int rows, columns;
  float* sums;  // between the blocks of k
  int64_t sums_row;
  bool first, last;  // the first and the last block of k
  void* c;
  int64_t c_row;
  bool wide_c;
  const float* column_bias;  // at the tile's first column, or null
  const float* row_bias;     // at the tile's first row, or null
  Activation activation;
};

// Equal heights instead of full ones and a thin rest.
inline int half_rows(int64_t remaining) {
  return int(remaining <= max_rows ? remaining : ceil_div(remaining, ceil_div(remaining, max_rows)));
}

// C[i0:i1, j0:j1] of the product.
template <class Engine>
void multiply_half_rectangle(const HalfProduct& x, int64_t i0, int64_t i1, int64_t j0, int64_t j1) {
  using Packed = typename Engine::Packed;
  constexpr int64_t panel = half_panel, block_bytes = (vector_bytes == 64 ? 640 : 320) * 1024, group_bytes = block_bytes * 2 / 5;
  constexpr int64_t kept_bytes = 8 * 1024 * 1024;
  const int64_t depth = half_depth(x.k), most_steps = Engine::steps(min_of(depth, x.k));
  const bool pack_a = Engine::must_pack_a(x, j1 - j0), one_block = depth >= x.k;
  const int64_t step_bytes = most_steps * int64_t(sizeof(Packed));
  const int64_t fitting = max_of(max_rows, block_bytes / max_of(1, step_bytes) / max_rows * max_rows);
  const int64_t parts = ceil_div(i1 - i0, fitting), block_rows = ceil_div(ceil_div(i1 - i0, parts), max_rows) * max_rows;
  const int64_t rows = min_of(i1 - i0, block_rows);
  // What several blocks of rows read of B is packed once, as much at a time as the third-level cache has room for.
  const int64_t width = ceil_div(j1 - j0, panel) * panel, column_bytes = max_of(1, Engine::steps(x.k) * int64_t(sizeof(Packed)));
  const bool keep = parts > 1 && min_of(width, 8 * panel) * column_bytes <= kept_bytes;
  const int64_t kept = keep ? kept_bytes / column_bytes / panel * panel : width;
  if (width > kept) {
    const int64_t share = ceil_div(ceil_div(width, ceil_div(width, kept)), panel) * panel;
    for (int64_t j = j0; j < j1; j += share) multiply_half_rectangle<Engine>(x, i0, i1, j, min_of(j1, j + share));
    return;
  }
  const int64_t a_room = pack_a ? ceil_div(Engine::room_for_a(rows, most_steps), 16) * 16 + 64 : 0;
  // Rows of B that lie along n are far apart: each visit takes several panels with it.
  const int64_t group = x.b_col == 1 ? max_of(1, min_of(4, group_bytes / (panel * max_of(1, step_bytes)))) : 1;
  Workspace<Packed, 20 * 1024> packed(a_room + (keep ? width * Engine::steps(x.k) : group * panel * most_steps));
  Packed* const packed_a = packed.data();
  Packed* const packed_b = packed.data() + a_room;
  const bool own_sums = !one_block && !x.wide_c;
  Workspace<float> waiting(own_sums ? rows * (j1 - j0) : 0);
  const int64_t c_size = x.wide_c ? 4 : 2;

  for (int64_t i_block = i0; i_block < i1; i_block += block_rows) {
    const int64_t i_end = min_of(i1, i_block + block_rows);
    for (int64_t p = 0; p == 0 || p < x.k; p += depth) {
      const int64_t k = min_of(x.k - p, depth);
      HalfTile<Packed> tile;
      tile.steps = Engine::steps(k);
      tile.first = p == 0;
      tile.last = p + k == x.k;
      tile.c_row = x.c_row;
      tile.wide_c = x.wide_c;
      tile.activation = x.activation;
      tile.sums_row = own_sums ? j1 - j0 : x.c_row;
      if (pack_a) Engine::pack_a(k, i_end - i_block, x.m - i_block, x.a + i_block * x.a_row + p * x.a_col, x.a_row, x.a_col, packed_a, tile);
      else tile.a_row = x.a_row / Engine::per_packed, tile.a_col = 1;
      Packed* const panels = packed_b + (keep ? width * Engine::steps(p) : 0);
      for (int64_t j = j0; j < j1; j += panel) {
        const int64_t place = (j - j0) / panel % group;
        Packed* const b = panels + (keep ? j - j0 : place * panel) * tile.steps;
        if (place == 0 && (!keep || i_block == i0))
          Engine::pack_b(k, min_of(group * panel, j1 - j), x.b + p * x.b_row + j * x.b_col, x.b_row, x.b_col, b);
        tile.b = b;
        tile.columns = int(min_of(panel, j1 - j));
        tile.column_bias = x.column_bias ? x.column_bias + j : nullptr;
        for (int64_t i = i_block; i < i_end;) {
          tile.rows = half_rows(i_end - i);
          tile.c = static_cast<char*>(x.c) + (i * x.c_row + j) * c_size;
          tile.sums = own_sums ? waiting.data() + (i - i_block) * (j1 - j0) + (j - j0) : x.wide_c ? static_cast<float*>(tile.c) : nullptr;
          tile.row_bias = x.row_bias ? x.row_bias + i : nullptr;
          tile.a = pack_a ? packed_a + (i - i_block) * tile.a_row : reinterpret_cast<const Packed*>(x.a + i * x.a_row + p);
          Engine::multiply(tile, pack_a);
          i += tile.rows;
        }
      }
    }
  }
}

// C is cut into a grid of rectangles, several per thread. The bits do not depend on the cut.
template <class Engine, class Body>
void for_each_half_rectangle(const HalfProduct& x, const Body& body) {
  constexpr double worth_sharing_ns = 50e3, task_ns = 25e3;
  const double ns = Engine::ns(x.m, x.n, x.k);
  const int threads = ns < worth_sharing_ns ? 1 : get_num_threads();
  int64_t rows = 1, columns = 1;
  const int64_t wanted = threads == 1 ? 1 : min_of(int64_t(ns / task_ns), 4 * threads);
  while (rows * columns < wanted) {
    const bool can_rows = x.m / (rows * 2) >= 4 * max_rows, can_columns = x.n / (columns * 2) >= 2 * half_panel;
    if (!can_rows && !can_columns) break;
    // Each rectangle packs its own part of B, and of A where that must be packed.
    if (can_columns && (!can_rows || x.n / columns * 2 >= x.m / rows)) columns *= 2;
    else rows *= 2;
  }
  const int64_t row_step = ceil_div(ceil_div(x.m, rows), max_rows) * max_rows;
  const int64_t column_step = ceil_div(ceil_div(x.n, columns), half_panel) * half_panel;
  const int64_t across = ceil_div(x.n, column_step), count = across * ceil_div(x.m, row_step);
  if (count == 1) return body(0, x.m, 0, x.n);
  parallel_chunks(count, Chunks{1, count}, [&](int64_t begin, int64_t end) {
    for (int64_t task = begin; task < end; ++task) {
      const int64_t i = task / across * row_step, j = task % across * column_step;
      body(i, min_of(x.m, i + row_step), j, min_of(x.n, j + column_step));
    }
  });
}

// Finished sums on their way to C.
template <class S>
void finish_half_rows(const HalfTile<float>& tile, const float* sums, int64_t sums_row) {
  constexpr int lanes = Floats::lanes;
  if constexpr (converts_halves) {
    if (!tile.wide_c && tile.columns % lanes == 0 && !tile.column_bias && !tile.row_bias && tile.activation == Activation::none) {
      S* to = static_cast<S*>(tile.c);
      for (int i = 0; i < tile.rows; ++i, sums += sums_row, to += tile.c_row)
        for (int j = 0; j < tile.columns; j += lanes) store_narrowed(to + j, load(sums + j));
      return;
    }
  }
  for (int i = 0; i < tile.rows; ++i, sums += sums_row) {
    for (int j = 0; j < tile.columns; j += lanes) {
      const int count = int(min_of(lanes, tile.columns - j));
      Floats sum = load_first(sums + j, count);
      if (tile.column_bias) sum = sum + load_first(tile.column_bias + j, count);
      if (tile.row_bias) sum = sum + broadcast(tile.row_bias[i]);
      if (tile.activation == Activation::relu) sum = relu(sum);
      if (tile.wide_c) {
        store_first(static_cast<float*>(tile.c) + i * tile.c_row + j, sum, count);
        continue;
      }
      S* const to = static_cast<S*>(tile.c) + i * tile.c_row + j;
      if (converts_halves && count == lanes) {
        if constexpr (converts_halves) store_narrowed(to, sum);
      } else {
        float wide[lanes];
        store(wide, sum);
        if constexpr (std::is_same_v<S, Float16>) narrow_float16(wide, to, count);
        else narrow_bfloat16(wide, to, count);
      }
    }
  }
}

// A small C and a long k, as in the gradient of a weight: blocks of k are shared between the threads, each with sums of its own,
// and added in order. How many depends on the size alone.
template <class Engine>
bool multiply_half_slices(const HalfProduct& x) {
  constexpr int64_t most_slices = 16;
  const int64_t size = x.m * x.n, depth = half_depth(x.k), blocks = ceil_div(x.k, depth);
  if (blocks < 2 || size > 128 * 128 || Engine::ns(x.m, x.n, x.k) < 50e3) return false;
  const int64_t slice_depth = ceil_div(blocks, min_of(most_slices, blocks)) * depth, slices = ceil_div(x.k, slice_depth);
  Workspace<float> sums(blocks * size);
  parallel_chunks(slices, Chunks{1, slices}, [&](int64_t begin, int64_t end) {
    for (int64_t s = begin; s < end; ++s)
      for (int64_t p = s * slice_depth; p < min_of(x.k, (s + 1) * slice_depth); p += depth) {
        HalfProduct block = x;
        block.k = min_of(depth, x.k - p);
        block.a += p * x.a_col, block.b += p * x.b_row;
        block.c = sums.data() + p / depth * size, block.c_row = x.n, block.wide_c = true;
        block.column_bias = block.row_bias = nullptr, block.activation = Activation::none;
        multiply_half_rectangle<Engine>(block, 0, x.m, 0, x.n);
      }
  });
  float* const total = sums.data();
  for (int64_t s = 1; s < blocks; ++s)
    for (int64_t i = 0; i < size; ++i) total[i] += total[s * size + i];
  HalfTile<float> tile{};
  tile.rows = int(x.m), tile.columns = int(x.n), tile.c = x.c, tile.c_row = x.c_row, tile.wide_c = x.wide_c;
  tile.column_bias = x.column_bias, tile.row_bias = x.row_bias, tile.activation = x.activation;
  finish_half_rows<typename Engine::Half>(tile, total, x.n);
  return true;
}

}  // namespace extensor::EXTENSOR_ISA
