// A matrix that many products have in common: packed once, in the order in which the register tile reads it.
#pragma once

#include "kernels/matmul/pack.hpp"
#include "kernels/matmul/tiles.hpp"

namespace extensor::EXTENSOR_ISA {

// The right-hand side B[k, n] of products. For each block of k, the panels of B one after the other.
template <class T>
class PackedWeight {
 public:
  static int64_t room(int64_t k, int64_t n) { return panels(n) * panel * k; }

  // `to` has room(k, n) elements and outlives this.
  PackedWeight(int64_t k, int64_t n, const T* b, int64_t b_row, int64_t b_col, T* to) : k_(k), n_(n), data_(to) {
    const int64_t blocks = (k + deepest - 1) / deepest;
    depth_ = ((k + blocks - 1) / blocks + 7) / 8 * 8;
    for (int64_t p = 0; p < k; p += depth_)
      for (int64_t j = 0; j < panels(n); ++j)
        pack_panel_b(depth(p), columns(j), b + p * b_row + j * panel * b_col, b_row, b_col, to + place(p, j));
  }

  // C[rows, columns] (+)= A[rows, from:to] B[from:to, :columns] for as many rows as a tile has at most, A with any strides.
  // Where `c` has room for whole panels, they are written as a whole.
  void multiply_part(int64_t rows, int64_t from, int64_t to, int64_t columns, const T* a, int64_t a_row, int64_t a_col, T* c,
                     int64_t c_row, bool accumulate, bool whole_panels) const {
    for (int64_t start = from; start < to;) {
      const int64_t p = start / depth_ * depth_, end = p + depth(p) < to ? p + depth(p) : to;
      for (int64_t j = 0; j * panel < columns; ++j) {
        const int there = whole_panels || columns - j * panel >= panel ? panel : int(columns - j * panel);
        tiles_for<T>(there)[rows]({end - start, a + start * a_col, a_row, a_col, data_ + place(p, j) + (start - p) * panel, panel,
                                   c + j * panel, c_row, there, accumulate || start > from, true, nullptr, nullptr, Activation::none});
      }
      start = end;
    }
  }

  // C[rows, n] (+)= A[rows, k] B; the rows of A are dense.
  void multiply(int64_t rows, const T* a, int64_t a_row, T* c, int64_t c_row, bool accumulate) const {
    for (int64_t p = 0; p < k_; p += depth_) {
      for (int64_t j = 0; j < panels(n_); ++j) {
        const TileFunction<T>* const of_height = tiles_for<T>(columns(j));
        for (int64_t i = 0; i < rows;) {
          const int64_t tiles = (rows - i + max_rows - 1) / max_rows;
          const int64_t height = (rows - i + tiles - 1) / tiles;  // equal heights: a thin tile leaves most of the machine idle
          of_height[height]({depth(p), a + i * a_row + p, a_row, 1, data_ + place(p, j), panel, c + i * c_row + j * panel, c_row, columns(j),
                             accumulate || p > 0, true, nullptr, nullptr, Activation::none});
          i += height;
        }
      }
    }
  }

 private:
  static constexpr int panel = panel_width<T>;
  static constexpr int64_t deepest = 256;  // a panel of this depth leaves half of the first-level cache to A and C

  static int64_t panels(int64_t n) { return (n + panel - 1) / panel; }
  int64_t depth(int64_t p) const { return p + depth_ < k_ ? depth_ : k_ - p; }
  int columns(int64_t j) const { return int(n_ - j * panel < panel ? n_ - j * panel : panel); }
  int64_t place(int64_t p, int64_t j) const { return p * panels(n_) * panel + j * panel * depth(p); }

  int64_t k_, n_, depth_;
  const T* data_;
};

}  // namespace extensor::EXTENSOR_ISA
