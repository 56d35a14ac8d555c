// Products of one row with a B that lies dense along k: every element of C is a scalar product.
//
//   c[j] = sum_p a[p] * b[j, p]
//
// No packing and no transposing; in exchange the order is another one. Pair p goes to chain p % 64: four vectors of 16 chains, which are
// added ((0 + 1) + (2 + 3)), then the lanes in halves. Included only by sources that are compiled once per instruction set.
#pragma once

#include "kernels/matmul/half_blocks.hpp"

namespace extensor::EXTENSOR_ISA {

constexpr int dot_lanes = 16, dot_chains = 4;
constexpr int64_t dot_words = 2 * dot_lanes, shortest_dot = 64;

// sums[j] = the scalar product of a with row j of b, for Columns rows. The engine's Chunk holds dot_words elements, its Chains the sums
// of dot_lanes of them.
template <class Engine, int Columns>
void dot_columns(int64_t k, const uint16_t* a, const uint16_t* b, int64_t b_col, float* sums) {
  typename Engine::Chains acc[Columns][dot_chains];
#pragma GCC unroll 8
  for (int c = 0; c < Columns; ++c)
#pragma GCC unroll 4
    for (int q = 0; q < dot_chains; ++q) acc[c][q].clear();
  int64_t p = 0;
  for (; p + dot_chains * dot_words <= k; p += dot_chains * dot_words)
#pragma GCC unroll 4
    for (int q = 0; q < dot_chains; ++q) {
      const typename Engine::Chunk row = Engine::chunk(a + p + q * dot_words, dot_words);
#pragma GCC unroll 8
      for (int c = 0; c < Columns; ++c) acc[c][q].add(row, Engine::chunk(b + c * b_col + p + q * dot_words, dot_words));
    }
#pragma GCC unroll 4
  for (int q = 0; q < dot_chains; ++q) {
    const int64_t start = p + q * dot_words, count = min_of(dot_words, k - start);
    if (count <= 0) continue;
    const typename Engine::Chunk row = Engine::chunk(a + start, count);
#pragma GCC unroll 8
    for (int c = 0; c < Columns; ++c) acc[c][q].add(row, Engine::chunk(b + c * b_col + start, count));
  }
  for (int c = 0; c < Columns; ++c) {
    float lanes[dot_chains][dot_lanes];
    for (int q = 0; q < dot_chains; ++q) acc[c][q].store(lanes[q]);
    for (int i = 0; i < dot_lanes; ++i) lanes[0][i] = (lanes[0][i] + lanes[1][i]) + (lanes[2][i] + lanes[3][i]);
    for (int half = dot_lanes / 2; half > 0; half /= 2)
      for (int i = 0; i < half; ++i) lanes[0][i] += lanes[0][i + half];
    sums[c] = lanes[0][0];
  }
}

// The product where it is one row and lies that way; false where it does not.
template <class Engine>
bool multiply_half_dots(const HalfProduct& x) {
  if (x.m != 1 || x.b_row != 1 || x.k < shortest_dot) return false;
  Workspace<uint16_t, 8192> copied(x.a_col == 1 ? 0 : x.k);
  for (int64_t p = 0; x.a_col != 1 && p < x.k; ++p) copied.data()[p] = x.a[p * x.a_col];
  const uint16_t* const a = x.a_col == 1 ? x.a : copied.data();
  constexpr int64_t together = 4, strip = 64;
  parallel_for(ceil_div(x.n, strip), 20 + double(x.k * min_of(x.n, strip)) / 16, [&](int64_t begin, int64_t end) {
    for (int64_t j = begin * strip; j < min_of(x.n, end * strip); j += strip) {
      float sums[strip];
      const int64_t columns = min_of(strip, x.n - j);
      int64_t c = 0;
      for (; c + together <= columns; c += together) dot_columns<Engine, together>(x.k, a, x.b + (j + c) * x.b_col, x.b_col, sums + c);
      for (; c < columns; ++c) dot_columns<Engine, 1>(x.k, a, x.b + (j + c) * x.b_col, x.b_col, sums + c);
      HalfTile<float> tile{};
      tile.rows = 1, tile.columns = int(columns), tile.wide_c = x.wide_c, tile.activation = x.activation;
      tile.c = static_cast<char*>(x.c) + j * (x.wide_c ? 4 : 2);
      tile.column_bias = x.column_bias ? x.column_bias + j : nullptr, tile.row_bias = x.row_bias;
      finish_half_rows<typename Engine::Half>(tile, sums, strip);
    }
  });
  return true;
}

}  // namespace extensor::EXTENSOR_ISA
