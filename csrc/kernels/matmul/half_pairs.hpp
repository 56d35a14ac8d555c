// Panels of bfloat16 pairs: a packed element holds the steps 2p (lower half) and 2p + 1 (upper half) of one row or column, as
// `vdpbf16ps` takes them. An odd last step has a 0 beside it.
// Included only by sources that are compiled for AVX512-BF16.
#pragma once

#include <immintrin.h>

#include "core/whole.hpp"
#include "kernels/matmul/pack.hpp"

namespace extensor::EXTENSOR_ISA {

using HalfPair = uint32_t;

EXTENSOR_INLINE Floats dot_pairs(__m512i a, __m512i b, Floats sum) {
  return {(Floats::Raw)_mm512_dpbf16_ps((__m512)sum.v, (__m512bh)a, (__m512bh)b)};
}
EXTENSOR_INLINE __m512i load_pairs(const HalfPair* from) { return _mm512_loadu_si512(from); }

// One step of a register tile: the pair of each row with the vectors of B. `a` gives the pair of a row.
template <int Rows, int Vectors, class PairsOfA>
EXTENSOR_INLINE void add_dot_pairs(const PairsOfA& a, const __m512i (&b)[Vectors], Floats (&acc)[Rows][Vectors]) {
#pragma GCC unroll 16
  for (int i = 0; i < Rows; ++i) {
    const __m512i pair = _mm512_set1_epi32(int(a[i]));
#pragma GCC unroll 8
    for (int j = 0; j < Vectors; ++j) acc[i][j] = dot_pairs(pair, b[j], acc[i][j]);
  }
}

template <int Rows, int Vectors>
EXTENSOR_INLINE void clear_sums(Floats (&acc)[Rows][Vectors]) {
#pragma GCC unroll 16
  for (int i = 0; i < Rows; ++i)
#pragma GCC unroll 8
    for (int j = 0; j < Vectors; ++j) acc[i][j] = Floats(0.0);
}

// a0 b0 a1 b1 ... of two vectors of 32 words, as two vectors of pairs in order.
EXTENSOR_INLINE void interleave_words(__m512i a, __m512i b, __m512i& first, __m512i& second) {
  alignas(64) static constexpr uint16_t places[64] = {
      0,  32, 1,  33, 2,  34, 3,  35, 4,  36, 5,  37, 6,  38, 7,  39, 8,  40, 9,  41, 10, 42, 11, 43, 12, 44, 13, 45, 14, 46, 15, 47,
      16, 48, 17, 49, 18, 50, 19, 51, 20, 52, 21, 53, 22, 54, 23, 55, 24, 56, 25, 57, 26, 58, 27, 59, 28, 60, 29, 61, 30, 62, 31, 63};
  first = _mm512_permutex2var_epi16(a, _mm512_load_si512(places), b);
  second = _mm512_permutex2var_epi16(a, _mm512_load_si512(places + 32), b);
}

EXTENSOR_INLINE __m512i load_words(const uint16_t* from, int64_t count) {
  return count >= 32 ? _mm512_loadu_si512(from) : _mm512_maskz_loadu_epi16(__mmask32((1u << count) - 1), from);
}

EXTENSOR_INLINE HalfPair pair_of(const uint16_t* from, int64_t step, bool whole) {
  return HalfPair(from[0]) | (whole ? HalfPair(from[step]) << 16 : 0);
}

// Panels of B whose rows lie along n: `count` columns, `to` takes a panel after the other.
inline void pack_pairs_along_n(int64_t k, int64_t count, const uint16_t* b, int64_t b_row, HalfPair* to) {
  constexpr int panel = panel_width<float>;
  const int64_t pairs = (k + 1) / 2;
  for (int64_t p = 0; p < pairs; ++p, b += 2 * b_row, to += panel) {
    const bool whole = 2 * p + 1 < k;
    for (int64_t j = 0; j < count; j += panel) {
      const __m512i even = load_words(b + j, count - j);
      const __m512i odd = whole ? load_words(b + b_row + j, count - j) : _mm512_setzero_si512();
      __m512i first, second;
      interleave_words(even, odd, first, second);
      _mm512_storeu_si512(to + j * pairs, first);
      _mm512_storeu_si512(to + j * pairs + 16, second);
    }
  }
}

// One panel of B, whatever its strides. Columns that do not exist hold something the tile never stores.
inline void pack_pairs_b(int64_t k, int columns, const uint16_t* b, int64_t b_row, int64_t b_col, HalfPair* to) {
  constexpr int panel = panel_width<float>, lanes = Floats::lanes, strip = part_lanes<float>;
  int64_t p = 0;
  const int64_t pairs = (k + 1) / 2;
  if (b_row == 1) {  // pairs as they lie: a transpose of words of 32 bits
    const float* rows[panel];
    for (int j = 0; j < panel; ++j) rows[j] = reinterpret_cast<const float*>(b + (j < columns ? j : columns - 1) * b_col);
    for (; 2 * (p + strip) <= k; p += strip) {
      for (int first = 0; first < panel && first < columns; first += lanes) {
        Floats part[strip];
        load_transposed(rows + first, p, part);
        for (int i = 0; i < strip; ++i) store(reinterpret_cast<float*>(to) + (p + i) * panel + first, part[i]);
      }
      if (columns <= lanes)
        for (int i = 0; i < strip; ++i) _mm512_storeu_si512(to + (p + i) * panel + lanes, _mm512_setzero_si512());
    }
  }
  for (; p < pairs; ++p) {
    const bool whole = 2 * p + 1 < k;
    for (int j = 0; j < columns; ++j) to[p * panel + j] = pair_of(b + 2 * p * b_row + j * b_col, b_row, whole);
    for (int j = columns; j < panel; ++j) to[p * panel + j] = 0;
  }
}

// One panel of A: to[p * rows + i] is pair p of row i. `available` counts the rows of A from the panel's first one on. May write
// up to one vector behind the panel.
inline void pack_pairs_a(int64_t k, int rows, int64_t available, const uint16_t* a, int64_t a_row, int64_t a_col, HalfPair* to) {
  constexpr int lanes = Floats::lanes, strip = part_lanes<float>;
  const int64_t pairs = (k + 1) / 2;
  int64_t p = 0;
  if (a_row == 1) {  // lanes beyond the panel spill into the place of the next step, which is written after them; the last has none
    const int64_t there = available < lanes ? available : lanes;
    for (; p < pairs; ++p) {
      const __m512i even = load_words(a + 2 * p * a_col, there);
      const __m512i odd = 2 * p + 1 < k ? load_words(a + (2 * p + 1) * a_col, there) : _mm512_setzero_si512();
      __m512i first, second;
      interleave_words(even, odd, first, second);
      if (p + 1 < pairs) _mm512_storeu_si512(to + p * rows, first);
      else _mm512_mask_storeu_epi32(to + p * rows, __mmask16((1u << rows) - 1), first);
    }
  } else if (a_col == 1) {
    const float* from[lanes];
    for (int i = 0; i < lanes; ++i) from[i] = reinterpret_cast<const float*>(a + (i < rows ? i : rows - 1) * a_row);
    for (; 2 * (p + strip) <= k; p += strip) {
      Floats part[strip];
      load_transposed(from, p, part);
      for (int i = 0; i < strip; ++i) store(reinterpret_cast<float*>(to) + (p + i) * rows, part[i]);
    }
  }
  for (; p < pairs; ++p)
    for (int i = 0; i < rows; ++i) to[p * rows + i] = pair_of(a + i * a_row + 2 * p * a_col, a_col, 2 * p + 1 < k);
}

}  // namespace extensor::EXTENSOR_ISA
