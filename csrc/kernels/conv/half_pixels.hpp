// Images [channel, row, column] of bfloat16 as words of 32 bits with the channels innermost: what broadcasts and vectors read.
// Included only by sources that are compiled for AVX512-BF16.
#pragma once

#include "kernels/conv/window.hpp"
#include "kernels/matmul/half_pairs.hpp"

namespace extensor::EXTENSOR_ISA {

// 32 neighbours of a row of `width` elements from column `start` on, zeros outside.
EXTENSOR_INLINE __m512i load_columns(const uint16_t* row, int64_t start, int64_t width) {
  const int64_t from = start < 0 ? -start : 0, to = width - start;
  if (from >= 32 || to <= from) return _mm512_setzero_si512();
  const uint64_t below = to >= 32 ? 0xffffffffu : (uint64_t(1) << to) - 1;
  return _mm512_maskz_loadu_epi16(__mmask32(below & ~((uint64_t(1) << from) - 1)), row + start);
}

// to[x * pixel + r] = lines[r * pitch + x] for `rows` lines of `count` words; lines may be read up to the next multiple of 4.
inline void transpose_words(const HalfPair* lines, int64_t pitch, int64_t rows, int64_t count, HalfPair* to, int64_t pixel) {
  constexpr int lanes = Floats::lanes, strip = part_lanes<float>;
  for (int64_t r = 0; r < rows; r += lanes) {
    const float* from[lanes];
    for (int i = 0; i < lanes; ++i) from[i] = reinterpret_cast<const float*>(lines + (r + i < rows ? r + i : rows - 1) * pitch);
    const int64_t there = min_of(lanes, rows - r);
    const __mmask16 mask = __mmask16((1u << there) - 1);
    for (int64_t x = 0; x < count; x += strip) {
      Floats columns[strip];
      load_transposed(from, x, columns);
      for (int i = 0; i < strip && x + i < count; ++i) _mm512_mask_storeu_epi32(to + (x + i) * pixel + r, mask, (__m512i)columns[i].v);
    }
  }
}

// A window of an image: `rows` rows from `first_row` on and `columns` columns from `first_column` on, zeros outside.
struct PixelWindow {
  int64_t channels, height, width;  // of the image
  int64_t first_column, rows, columns;

  int64_t pitch() const { return ceil_div(columns, 32) * 32; }
};

// to[row, column, pair] = channels 2 pair and 2 pair + 1 of a pixel; an odd last channel has a 0 beside it. `lines` has room for
// (channels + 1) / 2 rows of pitch().
inline void copy_channel_pairs(const uint16_t* image, const PixelWindow& w, int64_t first_row, HalfPair* lines, HalfPair* to) {
  const int64_t pairs = (w.channels + 1) / 2, plane = w.height * w.width;
  for (int64_t r = 0; r < w.rows; ++r, to += w.columns * pairs) {
    const int64_t y = first_row + r;
    if (y < 0 || y >= w.height) {
      __builtin_memset(to, 0, size_t(w.columns * pairs) * sizeof(HalfPair));
      continue;
    }
    for (int64_t p = 0; p < pairs; ++p) {
      const uint16_t* const even = image + 2 * p * plane + y * w.width;
      const bool whole = 2 * p + 1 < w.channels;
      for (int64_t x = 0; x < w.columns; x += 32) {
        __m512i first, second;
        interleave_words(load_columns(even, w.first_column + x, w.width),
                         whole ? load_columns(even + plane, w.first_column + x, w.width) : _mm512_setzero_si512(), first, second);
        _mm512_storeu_si512(lines + p * w.pitch() + x, first);
        _mm512_storeu_si512(lines + p * w.pitch() + x + 16, second);
      }
    }
    transpose_words(lines, w.pitch(), pairs, w.columns, to, pairs);
  }
}

// to[row, column, channel] = a pixel and the one `step` columns behind it. `lines` has room for `channels` rows of pitch().
inline void copy_pixel_pairs(const uint16_t* image, const PixelWindow& w, int64_t first_row, int64_t step, HalfPair* lines, HalfPair* to) {
  const int64_t plane = w.height * w.width;
  for (int64_t r = 0; r < w.rows; ++r, to += w.columns * w.channels) {
    const int64_t y = first_row + r;
    if (y < 0 || y >= w.height) {
      __builtin_memset(to, 0, size_t(w.columns * w.channels) * sizeof(HalfPair));
      continue;
    }
    for (int64_t c = 0; c < w.channels; ++c) {
      const uint16_t* const row = image + c * plane + y * w.width;
      for (int64_t x = 0; x < w.columns; x += 32) {
        __m512i first, second;
        interleave_words(load_columns(row, w.first_column + x, w.width), load_columns(row, w.first_column + x + step, w.width), first, second);
        _mm512_storeu_si512(lines + c * w.pitch() + x, first);
        _mm512_storeu_si512(lines + c * w.pitch() + x + 16, second);
      }
    }
    transpose_words(lines, w.pitch(), w.channels, w.columns, to, w.channels);
  }
}

}  // namespace extensor::EXTENSOR_ISA
