// Images as tiles for Winograd's method: which tiles are worked on together, and copies with the channels in the lanes
// of vectors, in which every pixel of a tile is one load.
#pragma once

#include "kernels/conv/window.hpp"
#include "kernels/conv/winograd_transforms.hpp"
#include "kernels/matmul/pack.hpp"

namespace extensor::EXTENSOR_ISA {

// Transformed tiles of a block stay in the second-level cache.
constexpr int64_t block_bytes = vector_bytes == 64 ? 640 * 1024 : 320 * 1024;

// Larger inputs could overflow in a transform.
constexpr double largest_input = 1e30;

// Zero as long as every value added is finite and not too large, then nan.
EXTENSOR_INLINE Floats add_suspicion(Floats suspicion, Floats value) {
  return fma(value * (3.4e38 / largest_input), Floats(0.0), suspicion);
}

// Outputs are covered by tiles of 4 x 4. A unit is a band of rows of tiles of one image, a block some units.
struct TilePlan {
  int64_t rows, columns;    // of the outputs
  int64_t across, band;     // tiles in a row of tiles, rows of tiles in a unit
  int64_t bands;            // units in an image
  int64_t unit_tiles, units, together, blocks;

  // At least this many tiles in a block, if there are that many.
  TilePlan(int64_t images, int64_t rows_, int64_t columns_, int64_t channels, int64_t least) : rows(rows_), columns(columns_) {
    const int64_t most = max_of(least, block_bytes / (channels * winograd_products * int64_t(sizeof(float))));
    const int64_t down = ceil_div(rows, winograd_outputs);
    across = ceil_div(columns, winograd_outputs);
    bands = ceil_div(down, max_of(1, min_of(down, most / across)));
    band = ceil_div(down, bands);
    bands = ceil_div(down, band);
    unit_tiles = band * across;
    units = images * bands;
    together = max_of(1, min_of(units, most / unit_tiles));
    blocks = ceil_div(units, together);
    together = ceil_div(units, blocks);  // blocks of equal size
    blocks = ceil_div(units, together);
  }

  int64_t image(int64_t unit) const { return unit / bands; }
  int64_t first_row(int64_t unit) const { return unit % bands * band * winograd_outputs; }
  int64_t unit_rows(int64_t unit) const { return min_of(band * winograd_outputs, rows - first_row(unit)); }
};

inline int64_t whole_vectors(int64_t channels) { return ceil_div(channels, Floats::lanes) * Floats::lanes; }

// Distance of the values at two points: not a power of two, so that they do not fall on the same places of the cache.
inline int64_t point_distance(int64_t tiles, int64_t channels) { return tiles * channels + 16; }

// A region of an image, channels in the lanes:
//   to[vector of channels, row, column, lane] = source[channel, first_row + row, first_column + column], 0 outside
struct Region {
  int64_t first_row, first_column, rows, columns;
  int64_t size() const { return rows * columns * Floats::lanes; }  // of one vector of channels
};

inline Floats copy_pixels(const float* const* channels, int64_t count, float* to, Floats suspicion) {
  constexpr int lanes = Floats::lanes, strip = part_lanes<float>;
  const auto copy_strip = [&](int64_t first) EXTENSOR_INLINE_LAMBDA {
    Floats pixels[strip];
    load_transposed(channels, first, pixels);
    for (int i = 0; i < strip; ++i) {
      store(to + (first + i) * lanes, pixels[i]);
      suspicion = add_suspicion(suspicion, pixels[i]);
    }
  };
  int64_t p = 0;
  for (; p + strip <= count; p += strip) copy_strip(p);
  if (p < count && count >= strip) {
    copy_strip(count - strip);
  } else {
    for (; p < count; ++p) {
      for (int lane = 0; lane < lanes; ++lane) to[p * lanes + lane] = channels[lane][p];
      suspicion = add_suspicion(suspicion, load(to + p * lanes));
    }
  }
  return suspicion;
}

// False if a value is not finite or too large.
inline bool copy_region(const float* source, int64_t channels, int64_t height, int64_t width, const Region& region, float* to) {
  constexpr int lanes = Floats::lanes;
  Floats suspicion(0.0);
  const int64_t left = min_of(region.columns, max_of(0, -region.first_column)), skipped = max_of(0, region.first_column);
  const int64_t count = max_of(0, min_of(region.columns - left, width - skipped));
  const int64_t right = region.columns - left - count;
  for (int64_t c = 0; c < channels; c += lanes) {
    for (int64_t r = 0; r < region.rows; ++r, to += region.columns * lanes) {
      const int64_t row = region.first_row + r;
      if (row < 0 || row >= height || count == 0) {
        std::memset(to, 0, size_t(region.columns * lanes) * sizeof(float));
        continue;
      }
      const float* from[lanes];  // lanes without a channel repeat the last one
      for (int lane = 0; lane < lanes; ++lane)
        from[lane] = source + (min_of(c + lane, channels - 1) * height + row) * width + skipped;
      if (left > 0) std::memset(to, 0, size_t(left * lanes) * sizeof(float));
      suspicion = copy_pixels(from, count, to + left * lanes, suspicion);
      if (right > 0) std::memset(to + (left + count) * lanes, 0, size_t(right * lanes) * sizeof(float));
    }
  }
  return !any(isnan(suspicion));
}

// transformed[point, tile, channel] of every tile of a unit: 6 x 6 pixels that overlap by two, Size == 6, or the 4 x 4
// pixels of the tile itself.
template <int Size, class Transform>
void transform_tiles(const TilePlan& plan, const Region& region, int64_t channels, const float* pixels, int64_t distance,
                     float* transformed, const Transform& transform) {
  constexpr int lanes = Floats::lanes;
  for (int64_t c = 0; c < channels; c += lanes, pixels += region.size()) {
    for (int64_t tile = 0; tile < plan.unit_tiles; ++tile) {
      const int64_t row = tile / plan.across * winograd_outputs, column = tile % plan.across * winograd_outputs;
      const float* from = pixels + (row * region.columns + column) * lanes;
      Floats square[Size][Size], points[winograd_points][winograd_points];
      for (int i = 0; i < Size; ++i)
        for (int j = 0; j < Size; ++j) square[i][j] = load(from + (i * region.columns + j) * lanes);
      transform_square(square, points, transform);
      float* to = transformed + tile * channels + c;
      for (int i = 0; i < winograd_points; ++i)
        for (int j = 0; j < winograd_points; ++j, to += distance) store(to, points[i][j]);
    }
  }
}

}  // namespace extensor::EXTENSOR_ISA
