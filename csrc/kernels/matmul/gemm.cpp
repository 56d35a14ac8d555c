// The packed, cache-blocked matrix product, and the choice between it and its relatives for thin shapes.
//
//   for each block of rows of A that stays in the second-level cache           (block_rows)
//     for each block of K                                                      (block_k)
//       1. pack the block of A in panels of the register tile's height, if it is read often enough to pay
//       2. for each panel of B: pack it, if it is read often or does not lie along its rows;
//            for each panel of A: one register tile
//
// Compiled once per instruction set.
#include "core/whole.hpp"
#include "core/threads.hpp"
#include "core/workspace.hpp"
#include "kernels/copy/transpose.hpp"
#include "kernels/matmul/dot.hpp"
#include "kernels/matmul/finish.hpp"
#include "kernels/matmul/matmul.hpp"
#include "kernels/matmul/pack.hpp"
#include "kernels/matmul/tiles.hpp"

namespace extensor::EXTENSOR_ISA {
namespace {

// A panel of B (block_k x panel) and one of A share the first-level cache; a block of A stays in the second.
constexpr int64_t block_k = 384, block_bytes = (vector_bytes == 64 ? 768 : 384) * 1024;
// Up to this many rows, scalar products beat transposing B.
constexpr int64_t dot_rows = 9;
constexpr int few = 3;

constexpr int group = 4;

// Equal heights instead of full ones and a thin rest: a tile of two rows leaves most of the machine idle.
inline int next_rows(int64_t remaining) {
  if (remaining <= max_rows) return int(remaining);
  return int(ceil_div(remaining, ceil_div(remaining, max_rows)));
}

// Rows of A that are multiplied with one panel of B after the other: as many as the cache holds, in equal blocks, for
// each block packs B anew.
template <class T>
int64_t choose_block_rows(int64_t rows, int64_t depth) {
  if (rows * depth * int64_t(sizeof(T)) <= block_bytes) return rows;
  const int64_t most = block_bytes / (depth * int64_t(sizeof(T))) / max_rows * max_rows;
  return ceil_div(ceil_div(rows, ceil_div(rows, most)), max_rows) * max_rows;
}

// One product as one thread computes it: a rectangle of a larger one, which decides what is packed.
template <class T>
struct Layout {
  bool pack_a, pack_b;
};

template <class T>
Layout<T> choose_layout(const Product<T>& x) {
  // Both are read where they lie as long as the first-level cache and its table of pages can follow: lines a page
  // apart fall on the same places of both, and lines far apart need an entry each. A lower tile reads more of them.
  constexpr bool high = vector_bytes == 64;
  constexpr int64_t page = 4096, far_a = high ? 5 * 1024 : 512, far_b = high ? 5 * 1024 : 1024;
  const int64_t a_step = (x.a_col == 1 ? x.a_row : x.a_col) * int64_t(sizeof(T)), b_step = x.b_row * int64_t(sizeof(T));
  const bool scattered_a = a_step % page == 0 || (x.a_col != 1 && (x.a_row != 1 || a_step >= far_a));
  const bool scattered_b = b_step >= far_b || (scattered_a && !high);  // both must fit
  Layout<T> layout;
  layout.pack_b = x.b_col != 1 || (x.m > (high ? 96 : 12) && b_step % page == 0) || (x.m > 96 && scattered_b);
  layout.pack_a = scattered_a && x.m > 10 * max_rows && x.n >= (x.a_col == 1 ? 24 : 12) * panel_width<T> && x.k > 16;
  return layout;
}

// K-blocks of equal depth. It decides how sums are rounded, so it depends on k alone.
inline int64_t choose_depth(int64_t k) {
  const int64_t blocks = k <= block_k ? 1 : ceil_div(k, block_k);
  return ceil_div(ceil_div(k, blocks), 8) * 8;
}

// B packed as a whole: for each block of k, the panels one after the other. Rows of A then pass by few at a time, near enough that
// what a panel of B makes of them is still in the first-level cache when the next panel comes.
struct PackedMatrix {
  static constexpr int64_t near_rows = 48;

  template <class T>
  static int64_t size(int64_t k, int64_t n) {
    return ceil_div(n, panel_width<T>) * panel_width<T> * k;
  }
  // Of the panel at column j of the block of `steps` rows at p.
  template <class T>
  static int64_t place(int64_t p, int64_t j, int64_t steps, int64_t n) {
    return ceil_div(n, panel_width<T>) * panel_width<T> * p + j * steps;
  }
};

template <class T>
void pack_matrix(int64_t k, int64_t n, const T* b, int64_t b_row, int64_t b_col, T* to) {
  constexpr int panel = panel_width<T>;
  const int64_t depth = choose_depth(k);
  for (int64_t p = 0; p < k; p += depth)
    for (int64_t j = 0; j < n; j += panel) {
      const int64_t steps = min_of(k - p, depth);
      pack_panel_b(steps, int(min_of(panel, n - j)), b + p * b_row + j * b_col, b_row, b_col, to + PackedMatrix::place<T>(p, j, steps, n));
    }
}

// Small products need no memory.
template <class T>
using PackedRoom = Workspace<T, 20 * 1024>;

// C[i0:i1, j0:j1] of the product.
template <class T>
void multiply_rectangle(const Product<T>& x, Layout<T> layout, int64_t i0, int64_t i1, int64_t j0, int64_t j1) {
  constexpr int panel = panel_width<T>;
  const int64_t depth = choose_depth(x.k);
  const int64_t block_rows = x.packed_b != nullptr ? PackedMatrix::near_rows : choose_block_rows<T>(i1 - i0, depth);
  const int64_t rows = min_of(i1 - i0, block_rows);
  const int64_t a_room = layout.pack_a ? ceil_div(rows * depth, 16) * 16 + 64 : 0;
  const bool groups = layout.pack_b && x.b_col == 1 && j1 - j0 >= group * panel;
  PackedRoom<T> workspace(a_room + (groups ? group : 1) * panel * depth);
  T* const packed_a = workspace.data();
  T* const packed_b = workspace.data() + a_room;

  for (int64_t i_block = i0; i_block < i1; i_block += block_rows) {
    const int64_t i_end = min_of(i1, i_block + block_rows);
    for (int64_t p = 0; p < x.k; p += depth) {
      Tile<T> tile;
      tile.k = min_of(x.k - p, depth);
      tile.c_row = x.c_row;
      tile.add_to_c = x.accumulate || p > 0;
      tile.last = p + tile.k == x.k;
      tile.activation = activation_of_tile(x);
      if (layout.pack_a) {
        T* to = packed_a;
        for (int64_t i = i_block; i < i_end;) {
          const int height = next_rows(i_end - i);
          pack_panel_a(tile.k, height, x.m - i, x.a + i * x.a_row + p * x.a_col, x.a_row, x.a_col, to);
          to += height * tile.k;
          i += height;
        }
      }
      int ready = 0;  // panels of the packed group that are used up
      for (int64_t j = j0; j < j1; j += panel) {
        tile.columns = int(min_of(panel, j1 - j));
        tile.b = x.b + p * x.b_row + j * x.b_col;
        tile.b_row = x.b_row;
        if (x.packed_b != nullptr) {
          tile.b = x.packed_b + PackedMatrix::place<T>(p, j, tile.k, x.n);
          tile.b_row = panel;
        } else if (layout.pack_b && x.b_col == 1 && j1 - (j - ready * panel) >= group * panel) {
          if (ready == 0) pack_panels_b<T, group>(tile.k, tile.b, x.b_row, packed_b);
          tile.b = packed_b + ready * panel * tile.k;
          tile.b_row = panel;
          ready = (ready + 1) % group;
        } else if (layout.pack_b || tile.columns < panel) {
          pack_panel_b(tile.k, tile.columns, tile.b, x.b_row, x.b_col, packed_b);
          tile.b = packed_b;
          tile.b_row = panel;
        }
        tile.column_bias = x.column_bias ? x.column_bias + j : nullptr;
        tile.a = packed_a;
        tile.a_row = x.a_row;
        tile.a_col = x.a_col;
        const TileFunction<T>* const tiles = tiles_for<T>(tile.columns, layout.pack_a);
        // The next panel of B, where it is read as it lies: its rows are too far apart for the processor to see them coming.
        const bool last_panel = j + panel >= j1;
        const T* const next = last_panel ? x.b + (p + tile.k) * x.b_row + j0 : x.b + p * x.b_row + j + panel;
        int64_t unseen = layout.pack_b || x.packed_b != nullptr || (last_panel && tile.last) ? 0 : last_panel ? min_of(x.k - p - tile.k, depth) : tile.k;
        tile.soon = next;
        tile.soon_row = x.b_row;
        tile.soon_rows = ceil_div(unseen, ceil_div(i_end - i_block, max_rows));
        for (int64_t i = i_block; i < i_end;) {
          const int height = next_rows(i_end - i);
          tile.soon_rows = min_of(tile.soon_rows, unseen);
          tile.c = x.c + i * x.c_row + j;
          tile.row_bias = x.row_bias ? x.row_bias + i : nullptr;
          if (!layout.pack_a) tile.a = x.a + i * x.a_row + p * x.a_col;
          tiles[height](tile);
          tile.soon += tile.soon_rows * x.b_row;
          unseen -= tile.soon_rows;
          tile.a += height * tile.k;  // the next packed panel
          i += height;
        }
      }
    }
    if (needs_finish(x)) finish(x, i_block, i_end, j0, j1 - j0);
  }
}

// One row: C[j0:j1] = a @ B. Rows of B are read in long pieces, several at a time, and the sums wait in a small
// buffer; each is the same chain of multiply-adds as in the register tile.
// sums += a[0] * b[0, :] + a[1] * b[1, :] + ..., in this order.
template <class T, int Rows>
void add_rows(const T* a, int64_t a_col, const T* b, int64_t b_row, int whole, int count, T* sums) {
  Vec<T> av[Rows];
  for (int r = 0; r < Rows; ++r) av[r] = broadcast(a[r * a_col]);
  for (int i = 0; i < whole; i += Vec<T>::lanes) {
    Vec<T> sum = load(sums + i);
    for (int r = 0; r < Rows; ++r) sum = fma(av[r], load(b + r * b_row + i), sum);
    store(sums + i, sum);
  }
  if (whole < count) {
    Vec<T> sum = load_first(sums + whole, count - whole);
    for (int r = 0; r < Rows; ++r) sum = fma(av[r], load_first(b + r * b_row + whole, count - whole), sum);
    store_first(sums + whole, sum, count - whole);
  }
}

// Bias and activation for one row of sums that lie in memory, then C.
template <class T>
void finish_row(const Tile<T>& tile, const T* sums) {
  constexpr int lanes = Vec<T>::lanes;
  for (int j = 0; j < tile.columns; j += lanes) {
    const int count = int(min_of(lanes, tile.columns - j));
    Vec<T> sum = load_first(sums + j, count);
    if (tile.add_to_c) sum = sum + load_first(tile.c + j, count);
    if (tile.column_bias) sum = sum + load_first(tile.column_bias + j, count);
    if (tile.row_bias) sum = sum + broadcast(*tile.row_bias);
    if (tile.activation == Activation::relu) sum = relu(sum);
    store_first(tile.c + j, sum, count);
  }
}

template <class T>
void multiply_one_row(const Product<T>& x, int64_t j0, int64_t j1) {
  constexpr int lanes = Vec<T>::lanes, together = 8;
  constexpr int64_t piece = 4096 / sizeof(T);
  const int64_t depth = choose_depth(x.k);
  T sums[piece];
  for (int64_t j = j0; j < j1; j += piece) {
    const int count = int(min_of(piece, j1 - j)), whole = count / lanes * lanes;
    for (int64_t p = 0; p < x.k; p += depth) {
      const int64_t end = min_of(x.k, p + depth);
      for (int i = 0; i < count; ++i) sums[i] = T(0);
      for (int64_t q = p; q < end;) {
        const T* a = x.a + q * x.a_col;
        const T* b = x.b + q * x.b_row + j;
        if (q + together <= end) {
          add_rows<T, together>(a, x.a_col, b, x.b_row, whole, count, sums);
          q += together;
        } else {
          add_rows<T, 1>(a, x.a_col, b, x.b_row, whole, count, sums);
          q += 1;
        }
      }
      Tile<T> tile;
      tile.c = x.c + j;
      tile.columns = count;
      tile.add_to_c = x.accumulate || p > 0;
      tile.column_bias = end == x.k && x.column_bias ? x.column_bias + j : nullptr;
      tile.row_bias = end == x.k ? x.row_bias : nullptr;
      tile.activation = end == x.k ? x.activation : Activation::none;
      finish_row(tile, sums);
    }
  }
}

// Few rows and a B that is read along its rows: wide tiles straight from B, which is read once.
template <class T>
void multiply_few_rows(const Product<T>& x, int64_t j0, int64_t j1) {
  static constexpr TileFunction<T> wide_tiles[] = {nullptr, multiply_tile<T, 1, 8, false>, multiply_tile<T, 2, 6, false>,
                                                   multiply_tile<T, 3, 4, false>};
  static constexpr int wide_vectors[] = {0, 8, 6, 4};
  if (x.m == 1 && x.n >= 32 * Vec<T>::lanes) return multiply_one_row(x, j0, j1);
  const int wide = wide_vectors[x.m] * Vec<T>::lanes;
  int64_t j = j0;
  const int64_t depth = choose_depth(x.k);
  for (; j + wide <= j1; j += wide) {
    for (int64_t p = 0; p < x.k; p += depth) {
      const int64_t steps = min_of(x.k - p, depth);
      wide_tiles[x.m]({steps, x.a + p * x.a_col, x.a_row, x.a_col, x.b + p * x.b_row + j, x.b_row, x.c + j, x.c_row, wide,
                       x.accumulate || p > 0, p + steps == x.k, x.column_bias ? x.column_bias + j : nullptr, x.row_bias,
                       x.activation});
    }
  }
  if (j < j1) multiply_rectangle(x, Layout<T>{false, false}, 0, x.m, j, j1);
}

// Stores a block of finished sums.
template <class T>
void store_sums(const Product<T>& x, const T* sums, int64_t i0, int rows, int64_t j0, int columns) {
  for (int i = 0; i < rows; ++i) {
    for (int j = 0; j < columns; ++j) {
      T* c = x.c + (i0 + i) * x.c_row + j0 + j;
      T sum = sums[i * columns + j];
      if (x.accumulate) sum += *c;
      if (x.column_bias) sum += x.column_bias[j0 + j];
      if (x.row_bias) sum += x.row_bias[i0 + i];
      if (x.activation == Activation::relu && sum < T(0)) sum = T(0);
      *c = sum;
    }
  }
}

template <class T, int Rows, int Columns>
void multiply_dots_tile(const Product<T>& x, int64_t i, int64_t j) {
  T sums[Rows * Columns];
  dot_tile<T, Rows, Columns>(x.k, x.a + i * x.a_row, x.a_row, x.b + j * x.b_col, x.b_col, sums);
  store_sums(x, sums, i, Rows, j, Columns);
}

template <class T, int Rows>
void multiply_dots_rows(const Product<T>& x, int64_t i, int64_t j0, int64_t j1) {
  constexpr int wide = Rows == 1 ? 8 : 4;
  int64_t j = j0;
  for (; j + wide <= j1; j += wide) multiply_dots_tile<T, Rows, wide>(x, i, j);
  if (Rows == 1 && j + 4 <= j1) {
    multiply_dots_tile<T, Rows, 4>(x, i, j);
    j += 4;
  }
  switch (j1 - j) {
    case 3: multiply_dots_tile<T, Rows, 3>(x, i, j); break;
    case 2: multiply_dots_tile<T, Rows, 2>(x, i, j); break;
    case 1: multiply_dots_tile<T, Rows, 1>(x, i, j); break;
  }
}

// Both operands dense along k. A stretch of columns of B stays in the cache while the rows of A pass by.
template <class T>
void multiply_dots(const Product<T>& x, int64_t i0, int64_t i1, int64_t j0, int64_t j1) {
  const int64_t stretch = 4 * ceil_div(16 * 1024, x.k * int64_t(sizeof(T)) * 4);
  for (int64_t j = j0; j < j1; j += stretch) {
    const int64_t j_end = min_of(j1, j + stretch);
    for (int64_t i = i0; i < i1;) {
      switch (i1 - i) {
        case 1: multiply_dots_rows<T, 1>(x, i, j, j_end); i += 1; break;
        case 2: case 4: multiply_dots_rows<T, 2>(x, i, j, j_end); i += 2; break;
        default: multiply_dots_rows<T, 3>(x, i, j, j_end); i += 3;
      }
    }
  }
}

// C is cut into a grid of rectangles, several per thread. The bits do not depend on the cut.
struct Grid {
  int64_t row_step, column_step, columns, count;
};

template <class T>
Grid choose_grid(int64_t m, int64_t n, int64_t k, bool whole_columns) {
  constexpr double worth_sharing_ns = 50e3, task_ns = 25e3;
  const double ns = product_ns<T>(m, n, k);
  const int threads = ns < worth_sharing_ns ? 1 : get_num_threads();
  if (threads == 1) return {m, n, 1, 1};
  const int64_t wanted = min_of(int64_t(ns / task_ns), 4 * threads);
  int64_t rows = 1, columns = 1;
  while (rows * columns < wanted) {
    const bool can_rows = m / (rows * 2) >= 2 * max_rows, can_columns = n / (columns * 2) >= panel_width<T>;
    if (!can_rows && !can_columns) break;
    // Near a square, with a liking for whole rows of A; but each rectangle packs its own part of B.
    if (can_columns && (!can_rows || whole_columns || n / columns * 2 >= m / rows)) columns *= 2;
    else rows *= 2;
  }
  const int64_t row_step = ceil_div(m, rows);  // in tiles of equal heights: see next_rows
  const int64_t column_step = ceil_div(ceil_div(n, columns), panel_width<T>) * panel_width<T>;
  const int64_t across = ceil_div(n, column_step);
  return {row_step, column_step, across, across * ceil_div(m, row_step)};
}

template <class T, class Body>
void for_each_rectangle(const Product<T>& x, bool whole_columns, const Body& body) {
  const Grid grid = choose_grid<T>(x.m, x.n, x.k, whole_columns);
  if (grid.count == 1) return body(0, x.m, 0, x.n);
  parallel_chunks(grid.count, Chunks{1, grid.count}, [&](int64_t begin, int64_t end) {
    for (int64_t task = begin; task < end; ++task) {
      const int64_t i = task / grid.columns * grid.row_step, j = task % grid.columns * grid.column_step;
      body(i, min_of(x.m, i + grid.row_step), j, min_of(x.n, j + grid.column_step));
    }
  });
}

template <class T>
void multiply_panels(const Product<T>& x) {
  const Layout<T> layout = choose_layout(x);
  for_each_rectangle(x, layout.pack_b && !layout.pack_a, [&](int64_t i0, int64_t i1, int64_t j0, int64_t j1) {
    multiply_rectangle(x, layout, i0, i1, j0, j1);
  });
}

// B is dense along k, as the weight of a linear map is, and would be packed for a few rows of A. Where A is less to pack, or fills
// vectors better, the two change places: C comes out with rows and columns exchanged, a block of its columns at a time. Each
// element is the same chain of multiply-adds, whichever operand its register tile reads along vectors.
template <class T>
bool suits_exchange(const Product<T>& x) {
  if (x.b_col == 1 || x.b_row != 1 || x.a_col != 1 || x.accumulate || x.row_bias != nullptr) return false;
  // Per step of k, in multiply-adds. To pack an element takes about as long as six of them, to turn one of C eight.
  constexpr int64_t pack = 6, turn = 8, lanes = Vec<T>::lanes;
  const int64_t as_it_is = x.m * (ceil_div(x.n, lanes) * lanes) + pack * x.n;
  const int64_t exchanged = x.n * (ceil_div(x.m, lanes) * lanes) + pack * x.m + turn * x.m * x.n / x.k;
  return exchanged + exchanged / 64 < as_it_is;
}

template <class T>
bool multiply_exchanged(const Product<T>& x) {
  if (!suits_exchange(x)) return false;
  constexpr int64_t block = 40 * max_rows;
  const Product<T> whole{x.n, x.m, x.k, x.b, x.b_col, x.b_row, x.a, x.a_col, x.a_row, nullptr, x.m};
  for_each_rectangle(whole, false, [&](int64_t i0, int64_t i1, int64_t j0, int64_t j1) {
    const int64_t columns = j1 - j0;
    PackedRoom<T> room(min_of(i1 - i0, block) * columns);
    for (int64_t i = i0; i < i1; i += block) {
      const int64_t rows = min_of(i1 - i, block);
      Product<T> part{rows, columns, x.k, x.b + i * x.b_col, x.b_col, 1, x.a + j0 * x.a_row, 1, x.a_row, room.data(), columns};
      part.row_bias = x.column_bias ? x.column_bias + i : nullptr;
      part.activation = x.activation;
      multiply_rectangle(part, choose_layout(part), 0, rows, 0, columns);
      transpose(sizeof(T), columns, rows, room.data(), columns, x.c + j0 * x.c_row + i, x.c_row);
    }
  });
  return true;
}

// A small C and a long k, as in the gradient of a weight: k is cut into slices, each slice has its own C, and
// the slices are added in order. How many depends on the size alone, so the bits do too.
constexpr int64_t most_slices = 16, shortest_slice = 4 * block_k;

template <class T>
bool suits_slices(int64_t m, int64_t n, int64_t k) {
  return k >= 2 * shortest_slice && m * n <= 128 * 128 && product_ns<T>(m, n, k) >= 50e3;
}

template <class T>
bool multiply_slices(const Product<T>& x) {
  if (!suits_slices<T>(x.m, x.n, x.k)) return false;
  const int64_t size = x.m * x.n;
  const int64_t depth = ceil_div(ceil_div(x.k, min_of(most_slices, x.k / shortest_slice)), block_k) * block_k;
  const int64_t slices = ceil_div(x.k, depth);
  PackedRoom<T> sums(slices * size);
  parallel_chunks(slices, Chunks{1, slices}, [&](int64_t begin, int64_t end) {
    for (int64_t s = begin; s < end; ++s) {
      Product<T> slice{x.m, x.n, min_of(depth, x.k - s * depth), x.a + s * depth * x.a_col, x.a_row, x.a_col,
                       x.b + s * depth * x.b_row, x.b_row, x.b_col, sums.data() + s * size, x.n};
      multiply_rectangle(slice, choose_layout(slice), 0, x.m, 0, x.n);
    }
  });
  T* total = sums.data();
  for (int64_t s = 1; s < slices; ++s)
    for (int64_t i = 0; i < size; ++i) total[i] += total[s * size + i];
  for (int64_t i = 0; i < x.m; ++i) store_sums(x, total + i * x.n, i, 1, 0, int(x.n));
  return true;
}

template <class T>
void multiply_one_dot(const Product<T>& x) {
  constexpr int64_t piece = 1 << 16;
  const int64_t pieces = ceil_div(x.k, piece);
  T sum;
  if (pieces == 1) {
    sum = dot_stretches(x.k, x.a, x.b);
  } else {
    PackedRoom<T> sums(pieces);
    parallel_for(pieces, product_ns<T>(1, 1, piece) * 4, [&](int64_t begin, int64_t end) {
      for (int64_t s = begin; s < end; ++s)
        sums.data()[s] = dot_stretches(min_of(piece, x.k - s * piece), x.a + s * piece, x.b + s * piece);
    });
    double total = 0;
    for (int64_t s = 0; s < pieces; ++s) total += double(sums.data()[s]);
    sum = T(total);
  }
  store_sums(x, &sum, 0, 1, 0, 1);
}

template <class T>
void copy_strided(int64_t rows, int64_t columns, const T* from, int64_t row, int64_t column, T* to) {
  for (int64_t i = 0; i < rows; ++i)
    for (int64_t j = 0; j < columns; ++j) to[i * columns + j] = from[i * row + j * column];
}

// k == 1 and nothing to add: every row of C is a multiple of the row of B.
template <class T>
void multiply_outer(const Product<T>& x) {
  constexpr int lanes = Vec<T>::lanes;
  parallel_for(x.m, double(x.n) * sizeof(T) / 20, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const Vec<T> a = broadcast(x.a[i * x.a_row]);
      T* c = x.c + i * x.c_row;
      int64_t j = 0;
      for (; j + lanes <= x.n; j += lanes) store(c + j, a * load(x.b + j));
      if (j < x.n) store_first(c + j, a * load_first(x.b + j, int(x.n - j)), int(x.n - j));
    }
  });
}

// C as far as the register tile goes: without gelu and the sum with another matrix.
template <class T>
void multiply(const Product<T>& x) {
  if (x.m == 0 || x.n == 0) return;
  if (x.k == 0) {
    for (int64_t i = 0; i < x.m; ++i) {
      for (int64_t j = 0; j < x.n; ++j) {
        const T zero = 0;
        store_sums(x, &zero, i, 1, j, 1);
      }
    }
    return;
  }
  if (x.n == 1 && x.m > 1 && x.c_row == 1) {  // a column is a row seen from the other side
    return multiply(Product<T>{1, x.m, x.k, x.b, 1, x.b_row, x.a, x.a_col, x.a_row, x.c, x.m, x.accumulate, x.row_bias,
                               x.column_bias, x.activation});
  }
  if (x.k == 1 && x.b_col == 1 && x.n >= wide_lanes<T> && !x.accumulate && !x.column_bias && !x.row_bias &&
      x.activation == Activation::none)
    return multiply_outer(x);
  const bool a_dense = x.a_col == 1 || x.k == 1, b_dense = x.b_row == 1 || x.k == 1;
  if (x.k > 1 && x.m <= few && b_dense && !a_dense) {
    PackedRoom<T> copy(x.m * x.k);
    copy_strided(x.m, x.k, x.a, x.a_row, x.a_col, copy.data());
    Product<T> y = x;
    y.a = copy.data(), y.a_row = x.k, y.a_col = 1;
    return multiply(y);
  }
  if (x.k > 1 && x.n <= few && a_dense && !b_dense) {
    PackedRoom<T> copy(x.n * x.k);
    copy_strided(x.n, x.k, x.b, x.b_col, x.b_row, copy.data());
    Product<T> y = x;
    y.b = copy.data(), y.b_col = x.k, y.b_row = 1;
    return multiply(y);
  }
  if (a_dense && b_dense && x.k >= wide_lanes<T>) {
    if (x.m == 1 && x.n == 1) return multiply_one_dot(x);
    if (x.m <= dot_rows || x.n <= few)
      return for_each_rectangle(x, false, [&](int64_t i0, int64_t i1, int64_t j0, int64_t j1) { multiply_dots(x, i0, i1, j0, j1); });
  }
  if (x.m <= few && x.b_col == 1)
    return for_each_rectangle(x, false, [&](int64_t, int64_t, int64_t j0, int64_t j1) { multiply_few_rows(x, j0, j1); });
  if (multiply_slices(x) || multiply_exchanged(x)) return;
  multiply_panels(x);
}

// Whether a product of this size goes by panels in any case, which may then be packed beforehand.
bool reads_packed(int64_t m, int64_t n, int64_t k) {
  return m > dot_rows && n > few && k > 1 && !suits_slices<float>(m, n, k);
}

template <class T>
void multiply_and_finish(const Product<T>& x) {
  if (x.packed_b != nullptr) return multiply_panels(x);
  if (!needs_finish(x)) return multiply(x);
  Product<T> sums = x;
  sums.activation = activation_of_tile(x), sums.added = nullptr;
  multiply(sums);
  parallel_for(x.m, 1.5 * double(x.n), [&](int64_t begin, int64_t end) { finish(x, begin, end, 0, x.n); });
}

template <class T>
void multiply_batch(const Product<T>& x, const Batch<T>& batch) {
  if (batch.count == 1) return multiply_and_finish(x);
  const auto run = [&](int64_t begin, int64_t end) {
    Product<T> y = x;
    for (int64_t i = begin; i < end; ++i) {
      y.a = x.a + i * batch.a;
      y.b = x.b + i * batch.b;
      y.c = x.c + i * batch.c;
      multiply(y);
    }
  };
  // Large members are shared one by one, small ones among each other.
  const double ns = product_ns<T>(x.m, x.n, x.k);
  if (ns > 1e6) return run(0, batch.count);
  parallel_for(batch.count, ns, run);
}

}  // namespace

const MatmulTable& matmul_table() {
  static constexpr MatmulTable table = {multiply_batch<float>, multiply_batch<double>, PackedMatrix::size<float>, pack_matrix<float>, reads_packed};
  return table;
}

}  // namespace extensor::EXTENSOR_ISA
