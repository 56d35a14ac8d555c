// Copies of A and B in the order in which the register tile reads them.
#pragma once

#include "kernels/matmul/microkernel.hpp"

namespace extensor::EXTENSOR_ISA {

#if defined(__clang__)
#define EXTENSOR_SHUFFLE(a, b, ...) __builtin_shufflevector(a, b, __VA_ARGS__)
#else
#define EXTENSOR_SHUFFLE(a, b, ...) __builtin_shuffle(a, b, decltype(a == b){__VA_ARGS__})
#endif

// A vector is made of parts of 16 bytes, four floats or two doubles; shuffles within parts are the cheap ones.
template <class T>
constexpr int part_lanes = 16 / int(sizeof(T));

// a0 b0 a1 b1 of the lower (or upper) halves of each part, and the halves themselves side by side.
template <class T>
EXTENSOR_INLINE void interleave_parts(Vec<T> a, Vec<T> b, Vec<T>& low, Vec<T>& high) {
  if constexpr (Vec<T>::lanes == 2) {
    low = EXTENSOR_SHUFFLE(a.v, b.v, 0, 2);
    high = EXTENSOR_SHUFFLE(a.v, b.v, 1, 3);
  } else if constexpr (sizeof(T) == 8 && Vec<T>::lanes == 4) {
    low = EXTENSOR_SHUFFLE(a.v, b.v, 0, 4, 2, 6);
    high = EXTENSOR_SHUFFLE(a.v, b.v, 1, 5, 3, 7);
  } else if constexpr (sizeof(T) == 8) {
    low = EXTENSOR_SHUFFLE(a.v, b.v, 0, 8, 2, 10, 4, 12, 6, 14);
    high = EXTENSOR_SHUFFLE(a.v, b.v, 1, 9, 3, 11, 5, 13, 7, 15);
  } else if constexpr (Vec<T>::lanes == 4) {
    low = EXTENSOR_SHUFFLE(a.v, b.v, 0, 4, 1, 5);
    high = EXTENSOR_SHUFFLE(a.v, b.v, 2, 6, 3, 7);
  } else if constexpr (Vec<T>::lanes == 8) {
    low = EXTENSOR_SHUFFLE(a.v, b.v, 0, 8, 1, 9, 4, 12, 5, 13);
    high = EXTENSOR_SHUFFLE(a.v, b.v, 2, 10, 3, 11, 6, 14, 7, 15);
  } else {
    low = EXTENSOR_SHUFFLE(a.v, b.v, 0, 16, 1, 17, 4, 20, 5, 21, 8, 24, 9, 25, 12, 28, 13, 29);
    high = EXTENSOR_SHUFFLE(a.v, b.v, 2, 18, 3, 19, 6, 22, 7, 23, 10, 26, 11, 27, 14, 30, 15, 31);
  }
}

// columns[c][i] = rows[i][offset + c] for every lane i and c < part_lanes: a strip of a transpose.
template <class T>
EXTENSOR_INLINE void load_transposed(const T* const* rows, int64_t offset, Vec<T> (&columns)[part_lanes<T>]) {
  constexpr int step = part_lanes<T>;
  if constexpr (sizeof(T) == 8) {
    interleave_parts(load_parts(rows, 0, step, offset), load_parts(rows, 1, step, offset), columns[0], columns[1]);
  } else {
    Vec<T> from[4], pairs[4];
    for (int i = 0; i < 4; ++i) from[i] = load_parts(rows, i, step, offset);
    interleave_parts(from[0], from[2], pairs[0], pairs[1]);
    interleave_parts(from[1], from[3], pairs[2], pairs[3]);
    interleave_parts(pairs[0], pairs[2], columns[0], columns[1]);
    interleave_parts(pairs[1], pairs[3], columns[2], columns[3]);
  }
}

// Several whole panels of a B that lies along its rows, one after the other. Pieces of one cache line taken from
// rows far apart are slow to come by, so each visit to a row fetches more.
template <class T, int Panels>
void pack_panels_b(int64_t k, const T* b, int64_t b_row, T* to) {
  constexpr int lanes = Vec<T>::lanes, panel = panel_width<T>;
  for (int64_t p = 0; p < k; ++p, b += b_row, to += panel) {
    for (int j = 0; j < Panels; ++j) {
      store(to + j * k * panel, load(b + j * panel));
      store(to + j * k * panel + lanes, load(b + j * panel + lanes));
    }
  }
}

// One panel of B: to[p * panel_width + j] = b[p, j]. Columns from `columns` on do not exist: the panel has
// something there, and the tile computes with it, but never stores the result.
template <class T>
void pack_panel_b(int64_t k, int columns, const T* b, int64_t b_row, int64_t b_col, T* to) {
  constexpr int lanes = Vec<T>::lanes, panel = panel_width<T>, strip = part_lanes<T>;
  if (b_col == 1 && columns == panel) return pack_panels_b<T, 1>(k, b, b_row, to);
  int64_t p = 0;
  if (b_col == 1) {
    const int second = columns > lanes ? columns - lanes : 0;
    for (; p < k; ++p, b += b_row, to += panel) {
      store(to, load_first(b, columns));
      store(to + lanes, second > 0 ? load_first(b + lanes, second) : Vec<T>(0.0));
    }
    return;
  }
  if (b_row == 1) {
    const T* rows[panel];
    for (int j = 0; j < panel; ++j) rows[j] = b + (j < columns ? j : columns - 1) * b_col;
    for (; p + strip <= k; p += strip) {
      for (int first = 0; first < panel; first += lanes) {
        Vec<T> part[strip];
        if (first < columns) load_transposed(rows + first, p, part);
        else for (Vec<T>& none : part) none = Vec<T>(0.0);
        for (int i = 0; i < strip; ++i) store(to + (p + i) * panel + first, part[i]);
      }
    }
  }
  for (; p < k; ++p) {
    for (int j = 0; j < columns; ++j) to[p * panel + j] = b[p * b_row + j * b_col];
    for (int j = columns; j < panel; ++j) to[p * panel + j] = T(0);
  }
}

// One panel of A: to[p * rows + i] = a[i, p]. `available` counts the rows of A from the panel's first one on.
// May write up to one vector behind the panel.
template <class T>
void pack_panel_a(int64_t k, int rows, int64_t available, const T* a, int64_t a_row, int64_t a_col, T* to) {
  constexpr int lanes = Vec<T>::lanes, strip = part_lanes<T>, groups = (max_rows + lanes - 1) / lanes;
  int64_t p = 0;
  // Lanes beyond the panel spill into the place of the next step, which is written after them.
  if (a_row == 1 && available >= groups * lanes) {
    for (; p < k; ++p)
      for (int g = 0; g < groups; ++g)
        if (g * lanes < rows) store(to + p * rows + g * lanes, load(a + p * a_col + g * lanes));
  } else if (a_col == 1) {
    const T* from[groups * lanes];
    for (int i = 0; i < groups * lanes; ++i) from[i] = a + (i < rows ? i : rows - 1) * a_row;
    for (; p + strip <= k; p += strip) {
      Vec<T> part[groups][strip];
      for (int g = 0; g < groups; ++g) load_transposed(from + g * lanes, p, part[g]);
      for (int i = 0; i < strip; ++i)
        for (int g = 0; g < groups; ++g)
          if (g * lanes < rows) store(to + (p + i) * rows + g * lanes, part[g][i]);
    }
  }
  for (; p < k; ++p)
    for (int i = 0; i < rows; ++i) to[p * rows + i] = a[i * a_row + p * a_col];
}

}  // namespace extensor::EXTENSOR_ISA
