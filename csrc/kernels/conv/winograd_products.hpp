// The products of Winograd's method: at each of the points, a matrix of tiles times one of weights or gradients.
#pragma once

#include "core/whole.hpp"
#include "kernels/matmul/microkernel.hpp"

namespace extensor::EXTENSOR_ISA {

// Register tiles of the products at one point: C[rows, vectors] = sum over k of A[row, k] * B[k, vectors], where A is read
// element by element, its rows one behind the other (a_row 1) if they are `Together`. Rows come in fours. B is a matrix with
// rows b_step apart, or lies in panels of the width of a tile (point_panel), which are read from begin to end.
struct PointProduct {
  int64_t k;
  const float* a;
  int64_t a_row, a_step;
  const float* b;
  int64_t b_step;
  bool panels = false;
};

// Where row k and the vector from column j on of B[rows, columns] lie in panels: as many columns as a tile has, row by row.
inline int64_t point_panel(int64_t rows, int64_t columns, int64_t k, int64_t j) {
  constexpr int64_t most = 2 * Floats::lanes;
  const int64_t first = j / most * most;
  return first * rows + k * min_of(most, columns - first) + j - first;
}

template <int Rows, int Vectors, bool Together, class Finish>
EXTENSOR_INLINE void multiply_point_tile(const PointProduct& x, const Finish& finish) {
  constexpr int lanes = Floats::lanes;
  const int64_t a_row = Together ? 1 : x.a_row;
  Floats acc[Rows][Vectors];
#pragma GCC unroll 24
  for (int i = 0; i < Rows; ++i)
#pragma GCC unroll 4
    for (int v = 0; v < Vectors; ++v) acc[i][v] = Floats(0.0);
  const float* a = x.a;
  const float* b = x.b;
  for (int64_t p = x.k; p > 0; --p, a += x.a_step, b += x.b_step) {
    Floats bv[Vectors];
    for (int v = 0; v < Vectors; ++v) bv[v] = load(b + v * lanes);
#pragma GCC unroll 24
    for (int i = 0; i < Rows; ++i) {
      const Floats av = broadcast(a[i * a_row]);
      for (int v = 0; v < Vectors; ++v) acc[i][v] = fma(av, bv[v], acc[i][v]);
    }
  }
#pragma GCC unroll 24
  for (int i = 0; i < Rows; ++i)
#pragma GCC unroll 4
    for (int v = 0; v < Vectors; ++v) finish(i, v, acc[i][v]);
}

// As many sums as there are registers for.
constexpr int sums_in_registers = vector_bytes == 64 ? 24 : 12;

// C[rows, columns], tile by tile; `finish(row, column, sums)` takes each vector of it. Rows and columns beyond the last
// ones must be readable up to the next multiple of four and of a vector; a tile of
// six rows reads up to two more, whose sums nobody takes.
template <bool Together, class Finish>
void multiply_point(const PointProduct& x, int64_t rows, int64_t columns, const Finish& finish) {
  constexpr int lanes = Floats::lanes;
  for (int64_t j = 0; j < columns;) {
    PointProduct tile = x;
    const bool pair = j + lanes < columns;
    if (x.panels) tile.b += point_panel(x.k, columns, 0, j), tile.b_step = pair ? 2 * lanes : lanes;
    else tile.b += j;
    for (int64_t i = 0; i < rows;) {
      tile.a = x.a + i * x.a_row;
      const auto finish_tile = [&](int row, int vector, Floats sums) EXTENSOR_INLINE_LAMBDA {
        finish(i + row, j + vector * lanes, sums);
      };
      const int64_t rest = rows - i;
      if (pair) {
        if (sums_in_registers == 24 && rest > 8) multiply_point_tile<12, 2, Together>(tile, finish_tile), i += 12;
        else if (sums_in_registers == 24 && rest > 4) multiply_point_tile<8, 2, Together>(tile, finish_tile), i += 8;
        else if (sums_in_registers == 12 && Together && rest > 4) multiply_point_tile<6, 2, Together>(tile, finish_tile), i += 6;
        else multiply_point_tile<4, 2, Together>(tile, finish_tile), i += 4;
      } else {
        if (sums_in_registers == 24 && rest > 20) multiply_point_tile<24, 1, Together>(tile, finish_tile), i += 24;
        else if (sums_in_registers == 24 && rest > 16) multiply_point_tile<20, 1, Together>(tile, finish_tile), i += 20;
        else if (sums_in_registers == 24 && rest > 12) multiply_point_tile<16, 1, Together>(tile, finish_tile), i += 16;
        else if (rest > 8) multiply_point_tile<12, 1, Together>(tile, finish_tile), i += 12;
        else if (rest > 4) multiply_point_tile<8, 1, Together>(tile, finish_tile), i += 8;
        else multiply_point_tile<4, 1, Together>(tile, finish_tile), i += 4;
      }
    }
    j += pair ? 2 * lanes : lanes;
  }
}

}  // namespace extensor::EXTENSOR_ISA
