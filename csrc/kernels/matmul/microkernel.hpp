// The register tile of the matrix product.
//
//   C[rows, columns] = A[rows, k] @ B[k, columns]          rows <= max_rows, columns <= Vectors * lanes
//
// One element of C is always the same chain of fused multiply-adds over k, whatever the tile it falls into,
// so the bits of a product depend on its size alone, never on how C is cut up between threads.
#pragma once

#include "core/partial.hpp"
#include "kernels/matmul/matmul.hpp"

namespace extensor::EXTENSOR_ISA {

// Two vectors wide and as high as the registers allow: accumulators, the two vectors of B and one of A.
constexpr int max_rows = vector_bytes == 64 ? 12 : 6;
template <class T>
constexpr int panel_width = 2 * Vec<T>::lanes;

template <class T>
EXTENSOR_INLINE Vec<T> broadcast(T value) {
  return value - typename Vec<T>::Raw{};  // x - 0 is x for every x, -0 and nan included
}

template <class T>
struct Tile {
  int64_t k;
  const T* a;  // any strides: A is read element by element
  int64_t a_row, a_col;
  const T* b;  // each of the k rows can be read up to the full width of the tile
  int64_t b_row;
  T* c;
  int64_t c_row;
  int columns;            // how many of the tile's columns exist in C
  bool add_to_c;          // C holds the sum of earlier K-blocks
  bool last;              // this is the last K-block: bias and activation follow
  const T* column_bias;   // at the tile's first column, or null
  const T* row_bias;      // at the tile's first row, or null
  Activation activation;
};

// What happens to the accumulators on their way to C, for one vector of one row.
template <class T>
EXTENSOR_INLINE Vec<T> finish(Vec<T> sum, const Tile<T>& tile, Vec<T> column_bias, T row_bias) {
  if (tile.column_bias) sum = sum + column_bias;
  if (tile.row_bias) sum = sum + broadcast(row_bias);
  if (tile.activation == Activation::relu) sum = keep(!(sum < 0.0), sum);  // a nan stays
  return sum;
}

// A packed panel of A holds Rows values per step of k; its strides are then known when compiling.
template <class T, int Rows, int Vectors, bool PackedA>
void multiply_tile(const Tile<T>& tile) {
  constexpr int lanes = Vec<T>::lanes;
  Vec<T> acc[Rows][Vectors];
#pragma GCC unroll 16
  for (int i = 0; i < Rows; ++i)
#pragma GCC unroll 8
    for (int j = 0; j < Vectors; ++j) acc[i][j] = Vec<T>(0.0);
  const int64_t a_row = PackedA ? 1 : tile.a_row;
  const int64_t a_col = PackedA ? Rows : tile.a_col;
  const int64_t b_row = tile.b_row;
  const T* a = tile.a;
  const T* b = tile.b;
  for (int i = 0; i < Rows; ++i) {  // C is needed when the sums are done
    __builtin_prefetch(tile.c + i * tile.c_row, 1);
    __builtin_prefetch(tile.c + i * tile.c_row + tile.columns - 1, 1);
  }
  for (int64_t p = tile.k; p > 0; --p) {
    Vec<T> bv[Vectors];
    for (int j = 0; j < Vectors; ++j) bv[j] = load(b + j * lanes);
    for (int i = 0; i < Rows; ++i) {
      const Vec<T> av = broadcast(a[i * a_row]);
      for (int j = 0; j < Vectors; ++j) acc[i][j] = fma(av, bv[j], acc[i][j]);
    }
    a += a_col;
    b += b_row;
  }

  const bool plain = !tile.last || (!tile.column_bias && !tile.row_bias && tile.activation == Activation::none);
  if (plain && tile.columns == Vectors * lanes) {
#pragma GCC unroll 16
    for (int i = 0; i < Rows; ++i) {
      T* c = tile.c + i * tile.c_row;
#pragma GCC unroll 8
      for (int j = 0; j < Vectors; ++j) store(c + j * lanes, tile.add_to_c ? acc[i][j] + load(c + j * lanes) : acc[i][j]);
    }
    return;
  }
  Vec<T> sums[Rows][Vectors];  // what is counted through lies in memory; the accumulators themselves need not
#pragma GCC unroll 16
  for (int i = 0; i < Rows; ++i)
#pragma GCC unroll 8
    for (int j = 0; j < Vectors; ++j) sums[i][j] = acc[i][j];
  if (tile.columns == Vectors * lanes) {
    for (int i = 0; i < Rows; ++i) {
      T* c = tile.c + i * tile.c_row;
      for (int j = 0; j < Vectors; ++j) {
        Vec<T> sum = sums[i][j];
        if (tile.add_to_c) sum = sum + load(c + j * lanes);
        if (!plain)
          sum = finish(sum, tile, tile.column_bias ? load(tile.column_bias + j * lanes) : Vec<T>(0.0),
                       tile.row_bias ? tile.row_bias[i] : T(0));
        store(c + j * lanes, sum);
      }
    }
    return;
  }
  for (int i = 0; i < Rows; ++i) {
    T* c = tile.c + i * tile.c_row;
    for (int j = 0; j < Vectors && j * lanes < tile.columns; ++j) {
      const int count = tile.columns - j * lanes < lanes ? tile.columns - j * lanes : lanes;
      Vec<T> sum = sums[i][j];
      if (tile.add_to_c) sum = sum + load_first(c + j * lanes, count);
      if (!plain)
        sum = finish(sum, tile, tile.column_bias ? load_first(tile.column_bias + j * lanes, count) : Vec<T>(0.0),
                     tile.row_bias ? tile.row_bias[i] : T(0));
      store_first(c + j * lanes, sum, count);
    }
  }
}

}  // namespace extensor::EXTENSOR_ISA
