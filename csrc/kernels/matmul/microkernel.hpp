// The register tile of the matrix product.
//
//   C[rows, columns] = A[rows, k] @ B[k, columns]          rows <= max_rows, columns <= Vectors * lanes, and so many that each vector has some
//
// One element of C is always the same chain of fused multiply-adds over k, whatever the tile it falls into,
// so the bits of a product depend on its size alone, never on how C is cut up between threads.
#pragma once

#include "core/partial.hpp"
#include "kernels/matmul/product.hpp"

namespace extensor::EXTENSOR_ISA {

// Two vectors wide and as high as the registers allow: accumulators, the two vectors of B and one of A.
constexpr int max_rows = vector_bytes == 64 ? 12 : 6;
template <class T>
constexpr int panel_width = 2 * Vec<T>::lanes;

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
  const T* soon = nullptr;  // rows, each as wide as the tile, that later tiles will read: fetched meanwhile
  int64_t soon_row = 0, soon_rows = 0;
};

// max(x, 0); a nan stays.
template <class T>
EXTENSOR_INLINE Vec<T> relu(Vec<T> x) {
  return keep(!(x < 0.0), x);
}

// The same value, of which the compiler knows nothing. It would keep what it can derive from it in registers.
template <class X>
EXTENSOR_INLINE X opaque(X value) {
  asm("" : "+r"(value));
  return value;
}

// The rows of A in threes: from a pointer to the first, a load reaches the second and the third with the stride alone.
// Left to itself the compiler keeps the distance to every row, more of them than there are registers.
template <class T, int Rows>
class RowsOfA {
 public:
  EXTENSOR_INLINE RowsOfA(const T* a, int64_t row, int64_t column)
      : row_(row * int64_t(sizeof(T))), column_(opaque(column * int64_t(sizeof(T)))) {
#pragma GCC unroll 8
    for (int q = 0; q < triples; ++q) from_[q] = opaque(reinterpret_cast<const char*>(a + 3 * q * row));
  }
  EXTENSOR_INLINE T operator[](int i) const { return *reinterpret_cast<const T*>(from_[i / 3] + i % 3 * row_); }
  EXTENSOR_INLINE void step() {
#pragma GCC unroll 8
    for (int q = 0; q < triples; ++q) from_[q] += column_;
  }

 private:
  static constexpr int triples = (Rows + 2) / 3;
  const char* from_[triples];
  int64_t row_, column_;
};

// A packed panel of A holds Rows values per step of k.
template <class T, int Rows>
class PackedRowsOfA {
 public:
  EXTENSOR_INLINE PackedRowsOfA(const T* a, int64_t, int64_t) : from_(a) {}
  EXTENSOR_INLINE T operator[](int i) const { return from_[i]; }
  EXTENSOR_INLINE void step() { from_ += Rows; }

 private:
  const T* from_;
};

// The accumulators on their way to C. They stay in registers because every loop over them is unrolled.
template <class T, int Rows, int Vectors>
EXTENSOR_INLINE void store_tile(const Tile<T>& tile, Vec<T> (&acc)[Rows][Vectors]) {
  constexpr int lanes = Vec<T>::lanes;
  T* const c = opaque(tile.c);
  const int64_t c_row = opaque(tile.c_row);
  const int in_last = tile.columns - (Vectors - 1) * lanes;
  const auto for_each = [&](auto&& body) EXTENSOR_INLINE_LAMBDA {
#pragma GCC unroll 16
    for (int i = 0; i < Rows; ++i)
#pragma GCC unroll 8
      for (int j = 0; j < Vectors; ++j) body(acc[i][j], i, j);
  };
  // What passes between C and the accumulators: whole vectors, but for the last one of a row.
  const auto for_each_in_c = [&](auto&& whole, auto&& partial) EXTENSOR_INLINE_LAMBDA {
#pragma GCC unroll 8
    for (int j = 0; j < Vectors - 1; ++j)
#pragma GCC unroll 16
      for (int i = 0; i < Rows; ++i) whole(acc[i][j], c + i * c_row + j * lanes);
    T* const last = c + (Vectors - 1) * lanes;
    if (in_last == lanes) {
#pragma GCC unroll 16
      for (int i = 0; i < Rows; ++i) whole(acc[i][Vectors - 1], last + i * c_row);
    } else {
#pragma GCC unroll 16
      for (int i = 0; i < Rows; ++i) partial(acc[i][Vectors - 1], last + i * c_row);
    }
  };
  if (tile.add_to_c)
    for_each_in_c([](Vec<T>& sum, const T* from) EXTENSOR_INLINE_LAMBDA { sum = sum + load(from); },
                  [&](Vec<T>& sum, const T* from) EXTENSOR_INLINE_LAMBDA { sum = sum + load_some(from, in_last, T(0)); });
  if (tile.last) {
    if (tile.column_bias) {
      Vec<T> bias[Vectors];
#pragma GCC unroll 8
      for (int j = 0; j < Vectors - 1; ++j) bias[j] = load(tile.column_bias + j * lanes);
      bias[Vectors - 1] = load_first(tile.column_bias + (Vectors - 1) * lanes, in_last);
      for_each([&](Vec<T>& sum, int, int j) EXTENSOR_INLINE_LAMBDA { sum = sum + bias[j]; });
    }
    if (tile.row_bias) for_each([&](Vec<T>& sum, int i, int) EXTENSOR_INLINE_LAMBDA { sum = sum + broadcast(tile.row_bias[i]); });
    if (tile.activation == Activation::relu) for_each([](Vec<T>& sum, int, int) EXTENSOR_INLINE_LAMBDA { sum = relu(sum); });
  }
  for_each_in_c([](Vec<T> sum, T* to) EXTENSOR_INLINE_LAMBDA { store(to, sum); },
                [&](Vec<T> sum, T* to) EXTENSOR_INLINE_LAMBDA { store_some(to, sum, in_last); });
}

template <class T, int Rows, int Vectors, bool PackedA>
void multiply_tile(const Tile<T>& tile) {
  constexpr int lanes = Vec<T>::lanes;
  Vec<T> acc[Rows][Vectors];
#pragma GCC unroll 16
  for (int i = 0; i < Rows; ++i)
#pragma GCC unroll 8
    for (int j = 0; j < Vectors; ++j) acc[i][j] = Vec<T>(0.0);
  std::conditional_t<PackedA, PackedRowsOfA<T, Rows>, RowsOfA<T, Rows>> a(tile.a, tile.a_row, tile.a_col);
  const T* b = tile.b;
  const int64_t b_row = tile.b_row;
  const auto step = [&]() EXTENSOR_INLINE_LAMBDA {
    Vec<T> bv[Vectors];
#pragma GCC unroll 8
    for (int j = 0; j < Vectors; ++j) bv[j] = load(b + j * lanes);
#pragma GCC unroll 16
    for (int i = 0; i < Rows; ++i) {
      const Vec<T> av = broadcast(a[i]);
#pragma GCC unroll 8
      for (int j = 0; j < Vectors; ++j) acc[i][j] = fma(av, bv[j], acc[i][j]);
    }
    a.step();
    b += b_row;
  };
  // C is needed when the sums are done; asked for all at once it would hold up A and B.
  const T* c = tile.c;
  const int64_t last_column = tile.columns - 1;
  int64_t p = tile.k;
  for (const int64_t rest = p > 2 * Rows ? p - Rows : p; p > rest; --p) {
    __builtin_prefetch(c, 1);
    __builtin_prefetch(c + last_column, 1);
    c += tile.c_row;
    step();
  }
  const T* soon = tile.soon;
  for (const int64_t rest = p > tile.soon_rows ? p - tile.soon_rows : 0; p > rest; --p) {
    for (int j = 0; j < Vectors; ++j) __builtin_prefetch(soon + j * lanes, 0, 2);
    soon += tile.soon_row;
    step();
  }
  for (; p > 0; --p) step();
  store_tile(tile, acc);
}

}  // namespace extensor::EXTENSOR_ISA
