// Compiled once per instruction set.
#include "kernels/copy/transpose.hpp"

#include "core/simd.hpp"

namespace extensor::EXTENSOR_ISA {
namespace {

// A square of as many vectors as one has lanes. Of the number of an element, row before lane, each step moves the first
// digit to the end; when all digits of the row have moved, rows are lanes.
template <class T>
EXTENSOR_INLINE void transpose_square(const T* x, int64_t from, T* out, int64_t to) {
  constexpr int n = Vec<T>::lanes;
  Vec<T> lines[n], next[n];
#pragma GCC unroll 16
  for (int i = 0; i < n; ++i) lines[i] = load(x + i * from);
#pragma GCC unroll 4
  for (int step = 1; step < n; step *= 2) {
#pragma GCC unroll 8
    for (int i = 0; i < n / 2; ++i) join_pairs(lines[i], lines[i + n / 2], next[2 * i], next[2 * i + 1]);
#pragma GCC unroll 16
    for (int i = 0; i < n; ++i) lines[i] = next[i];
  }
#pragma GCC unroll 16
  for (int i = 0; i < n; ++i) store(out + i * to, lines[i]);
}

// Elements travel as floating numbers of their size; nothing is computed with them.
template <class T>
void transpose_items(int64_t rows, int64_t columns, const T* x, int64_t from, T* out, int64_t to) {
  constexpr int64_t n = Vec<T>::lanes;
  const int64_t whole = columns / n * n;
  int64_t r = 0;
  for (; r + n <= rows; r += n) {
    for (int64_t c = 0; c < whole; c += n) transpose_square(x + r + c * from, from, out + r * to + c, to);
    for (int64_t i = r; i < r + n; ++i)
      for (int64_t c = whole; c < columns; ++c) std::memcpy(out + i * to + c, x + i + c * from, sizeof(T));
  }
  for (; r < rows; ++r)
    for (int64_t c = 0; c < columns; ++c) std::memcpy(out + r * to + c, x + r + c * from, sizeof(T));
}

}  // namespace

void transpose(size_t item, int64_t rows, int64_t columns, const void* x, int64_t from, void* out, int64_t to) {
  if (item == 4) transpose_items(rows, columns, static_cast<const float*>(x), from, static_cast<float*>(out), to);
  else transpose_items(rows, columns, static_cast<const double*>(x), from, static_cast<double*>(out), to);
}

}  // namespace extensor::EXTENSOR_ISA
