// Copies of A and B in the order in which the register tile reads them.
#pragma once

#include "kernels/matmul/microkernel.hpp"

namespace extensor::EXTENSOR_ISA {

#if defined(__clang__)
#define EXTENSOR_SHUFFLE(a, b, ...) __builtin_shufflevector(a, b, __VA_ARGS__)
#else
#define EXTENSOR_SHUFFLE(a, b, ...) __builtin_shuffle(a, b, decltype(a == b){__VA_ARGS__})
#endif

// low: a0 b0 a1 b1 ... of the lower halves; high: of the upper halves.
template <class T, class Raw = typename Vec<T>::Raw>
EXTENSOR_INLINE void interleave(Raw a, Raw b, Raw& low, Raw& high) {
  constexpr int lanes = Vec<T>::lanes;
  if constexpr (lanes == 2) {
    low = EXTENSOR_SHUFFLE(a, b, 0, 2);
    high = EXTENSOR_SHUFFLE(a, b, 1, 3);
  } else if constexpr (lanes == 4) {
    low = EXTENSOR_SHUFFLE(a, b, 0, 4, 1, 5);
    high = EXTENSOR_SHUFFLE(a, b, 2, 6, 3, 7);
  } else if constexpr (lanes == 8) {
    low = EXTENSOR_SHUFFLE(a, b, 0, 8, 1, 9, 2, 10, 3, 11);
    high = EXTENSOR_SHUFFLE(a, b, 4, 12, 5, 13, 6, 14, 7, 15);
  } else {
    low = EXTENSOR_SHUFFLE(a, b, 0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23);
    high = EXTENSOR_SHUFFLE(a, b, 8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31);
  }
}

// Transposes a square block held in registers: log2(lanes) rounds of a perfect shuffle of its rows.
template <class T>
EXTENSOR_INLINE void transpose_block(Vec<T> (&rows)[Vec<T>::lanes]) {
  constexpr int lanes = Vec<T>::lanes;
  Vec<T> next[lanes];
  for (int step = 1; step < lanes; step *= 2) {
    for (int i = 0; i < lanes / 2; ++i) interleave<T>(rows[i].v, rows[i + lanes / 2].v, next[2 * i].v, next[2 * i + 1].v);
    for (int i = 0; i < lanes; ++i) rows[i] = next[i];
  }
}

// One panel of B: to[p * panel_width + j] = b[p, j] for j < columns, 0 for the columns that do not exist.
template <class T>
void pack_panel_b(int64_t k, int columns, const T* b, int64_t b_row, int64_t b_col, T* to) {
  constexpr int lanes = Vec<T>::lanes, panel = panel_width<T>;
  if (b_col == 1 && columns == panel) {
    for (int64_t p = 0; p < k; ++p, b += b_row, to += panel) {
      store(to, load(b));
      store(to + lanes, load(b + lanes));
    }
    return;
  }
  if (b_row == 1) {
    for (int half = 0; half < 2; ++half) {
      const int first = half * lanes;
      const int count = columns - first < 0 ? 0 : columns - first < lanes ? columns - first : lanes;
      int64_t p = 0;
      for (; p + lanes <= k; p += lanes) {
        Vec<T> rows[lanes] = {};
        if (count == lanes)
          for (int j = 0; j < lanes; ++j) rows[j] = load(b + (first + j) * b_col + p);
        else
          for (int j = 0; j < count; ++j) rows[j] = load(b + (first + j) * b_col + p);
        transpose_block<T>(rows);
        for (int i = 0; i < lanes; ++i) store(to + (p + i) * panel + first, rows[i]);
      }
      for (; p < k; ++p)
        for (int j = 0; j < lanes; ++j) to[p * panel + first + j] = j < count ? b[(first + j) * b_col + p] : T(0);
    }
    return;
  }
  for (int64_t p = 0; p < k; ++p, b += b_row, to += panel) {
    for (int j = 0; j < columns; ++j) to[j] = b[j * b_col];
    for (int j = columns; j < panel; ++j) to[j] = T(0);
  }
}

// One panel of A: to[p * rows + i] = a[i, p]. Writes up to one vector beyond the panel's end.
template <class T>
void pack_panel_a(int64_t k, int rows, const T* a, int64_t a_row, int64_t a_col, T* to) {
  constexpr int lanes = Vec<T>::lanes, groups = (max_rows + lanes - 1) / lanes;
  int64_t p = 0;
  if (a_col == 1) {
    for (; p + lanes <= k; p += lanes) {
      Vec<T> block[groups][lanes] = {};
      for (int g = 0; g < groups; ++g) {
        for (int i = 0; i < lanes; ++i)
          if (g * lanes + i < rows) block[g][i] = load(a + (g * lanes + i) * a_row + p);
        transpose_block<T>(block[g]);
      }
      // The lanes beyond `rows` spill into the next step's place, which is written after them.
      for (int i = 0; i < lanes; ++i)
        for (int g = 0; g < groups; ++g)
          if (g * lanes < rows) store(to + (p + i) * rows + g * lanes, block[g][i]);
    }
  }
  for (; p < k; ++p)
    for (int i = 0; i < rows; ++i) to[p * rows + i] = a[i * a_row + p * a_col];
}

}  // namespace extensor::EXTENSOR_ISA
