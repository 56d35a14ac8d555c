// The products of recurrent layers with bfloat16 operands: what they are given is float32, is rounded on the way into pairs, and the
// sums are float32. Included only by sources that are compiled for AVX512-BF16.
#pragma once

#include "kernels/matmul/half_pairs_tile.hpp"

namespace extensor::EXTENSOR_ISA {

// The right-hand side B[k, n] of products, dense along one side, packed once in panels of pairs.
class PairWeight {
 public:
  // In floats, which are as large as pairs.
  static int64_t room(int64_t k, int64_t n) { return ceil_div(n, half_panel) * half_panel * ((k + 1) / 2); }

  // `to` has room(k, n) elements and outlives this.
  PairWeight(int64_t k, int64_t n, const float* b, int64_t b_row, int64_t b_col, float* to)
      : k_(k), n_(n), data_(reinterpret_cast<HalfPair*>(to)) {
    Workspace<uint16_t> halves(k * n);
    narrow_bfloat16(b, halves.data(), k * n);
    if (b_col == 1) pack_pairs_along_n(k, n, halves.data(), b_row, data_);
    for (int64_t j = 0; b_col != 1 && j < n; j += half_panel)
      pack_pairs_b(k, int(min_of(half_panel, n - j)), halves.data() + j * b_col, b_row, b_col, data_ + j * ((k + 1) / 2));
  }

  // C[rows, n] (+)= A[rows, k] B; the rows of A are dense.
  void multiply(int64_t rows, const float* a, int64_t a_row, float* c, int64_t c_row, bool accumulate) const {
    const int64_t pairs = (k_ + 1) / 2;
    Workspace<uint16_t, 32 * 1024> halves(rows * 2 * pairs);
    for (int64_t i = 0; i < rows; ++i) {
      narrow_bfloat16(a + i * a_row, halves.data() + i * 2 * pairs, k_);
      if (k_ % 2 != 0) halves.data()[i * 2 * pairs + k_] = 0;
    }
    HalfTile<HalfPair> tile{};
    tile.steps = pairs, tile.a_row = pairs, tile.a_col = 1;
    tile.first = !accumulate, tile.last = true, tile.wide_c = true, tile.c_row = tile.sums_row = c_row;
    for (int64_t j = 0; j < n_; j += half_panel) {
      tile.b = data_ + j * pairs;
      tile.columns = int(min_of(half_panel, n_ - j));
      for (int64_t i = 0; i < rows; i += tile.rows) {
        tile.rows = half_rows(rows - i);
        tile.a = reinterpret_cast<const HalfPair*>(halves.data() + i * 2 * pairs);
        tile.c = tile.sums = c + i * c_row + j;
        multiply_pairs(tile, false);
      }
    }
  }

 private:
  int64_t k_, n_;
  HalfPair* data_;
};

// A product of dense operands, rounded to bfloat16.
inline void multiply_rounded(const Product<float>& x) {
  Workspace<uint16_t> a(x.m * x.k), b(x.k * x.n);
  Workspace<float> sums(x.accumulate ? x.m * x.n : 0);
  narrow_bfloat16(x.a, a.data(), x.m * x.k);
  narrow_bfloat16(x.b, b.data(), x.k * x.n);
  HalfProduct halves{x.m, x.n, x.k, a.data(), x.a_row, x.a_col, b.data(), x.b_row, x.b_col, x.c, x.c_row};
  halves.wide_c = true;
  halves.column_bias = x.column_bias;
  if (x.accumulate) halves.c = sums.data(), halves.c_row = x.n;
  multiply_halves(halves, HalfBatch{});
  if (!x.accumulate) return;
  for (int64_t i = 0; i < x.m; ++i)
    for (int64_t j = 0; j < x.n; ++j) x.c[i * x.c_row + j] += sums.data()[i * x.n + j];
}

}  // namespace extensor::EXTENSOR_ISA
