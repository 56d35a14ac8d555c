// Images as tiles for Winograd's method: which tiles are worked on together, and copies with the channels in the lanes
// of vectors, in which every pixel of a tile is one load.
#pragma once

#include "kernels/conv/window.hpp"
#include "kernels/conv/winograd_transforms.hpp"
#include "kernels/matmul/pack.hpp"

namespace extensor::EXTENSOR_ISA {

// Transformed tiles of a block stay in the second-level cache. The same for every set: blocks decide how sums are made.
constexpr int64_t block_bytes = 640 * 1024;

// Zero as long as every value added is finite, then nan.
template <class T>
EXTENSOR_INLINE Vec<T> add_suspicion(Vec<T> suspicion, Vec<T> value) {
  return fma(value, Vec<T>(0.0), suspicion);
}

// How far the sizes of some values lie apart. A transform mixes its inputs: each result has rounding errors of the size of
// the largest of them, also where the plain sum would not see it.
struct Spread {
  static constexpr double widest = 256;  // largest over mean
  Wide<float> largest{0.0}, total{0.0};
  int64_t count = 0;

  // Channels that fill a register: `first` is the number of the first of them.
  class Part {
   public:
    EXTENSOR_INLINE Part(Spread& spread, int64_t first)
        : spread_(spread), part_(int(first / Floats::lanes % wide_parts)), largest_(part_of(spread.largest, part_)), total_(part_of(spread.total, part_)) {}
    EXTENSOR_INLINE ~Part() { part_of(spread_.largest, part_) = largest_, part_of(spread_.total, part_) = total_; }
    EXTENSOR_INLINE void add(Floats value, Mask<float> existing) {
      value = keep(existing, value);
      largest_ = at_least(largest_, abs(value));
      total_ = total_ + abs(value);
      if (part_ == 0) spread_.count += wide_lanes<float>;
    }

   private:
    Spread& spread_;
    int part_;
    Floats largest_, total_;
  };
  bool is_wide() const {
    float most_of[wide_lanes<float>], total_of[wide_lanes<float>];
    store_wide(most_of, largest, wide_lanes<float>), store_wide(total_of, total, wide_lanes<float>);
    double most = 0, sum = 0;
    for (int lane = 0; lane < wide_lanes<float>; ++lane) {
      most = most > double(most_of[lane]) ? most : double(most_of[lane]);
      sum += double(total_of[lane]);
    }
    return most * double(count) > widest * sum;
  }
};

// Rough time of one tile: 36 multiplications for every pair of channels, and the transforms and copies of each channel.
inline double winograd_ns(int64_t inputs, int64_t outputs) {
  return 0.72 * double(inputs * outputs) + 8 * double(whole_wides<float>(inputs) + whole_wides<float>(outputs));
}

// Whether three neighbouring positions are seen, forwards or backwards, one output after the other.
inline bool suits_winograd(const ConvAxis& axis) {
  if (axis.step != 1 || axis.out_step != 1 || axis.taps != winograd_taps) return false;
  const int64_t distance = axis.shift[1] - axis.shift[0];
  return (distance == 1 || distance == -1) && axis.shift[2] - axis.shift[1] == distance;
}

// Of convolutions that take less than a twentieth of a millisecond, digits count for more than time.
constexpr double winograd_least_products = 2e6;

// The direct method takes 9 multiplications per pixel and pair of channels, `direct_ns` together; this one also transforms a kernel for
// each pair.
template <class Map>
bool winograd_pays(const Map& m, double direct_ns = 0.22) {
  if (m.images == 0 || m.groups != 1 || !suits_winograd(m.rows) || !suits_winograd(m.columns)) return false;
  const int64_t tiles = m.images * ceil_div(m.rows.count, winograd_outputs) * ceil_div(m.columns.count, winograd_outputs);
  const double pairs = double(m.inputs * m.outputs), pixels = double(m.images * m.rows.count * m.columns.count);
  if (9 * pairs * pixels < winograd_least_products) return false;
  return winograd_ns(m.inputs, m.outputs) * double(tiles) + 6 * pairs < direct_ns * pairs * pixels;
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

// Distance of the values at two points: not a power of two, so that they do not fall on the same places of the cache. What is
// behind the last tile is also room for the products, which read whole register tiles.
inline int64_t point_distance(int64_t tiles, int64_t channels) { return tiles * channels + 16; }

// A region of an image, channels in the lanes:
//   to[vector of channels, row, column, lane] = source[channel, first_row + row, first_column + column], 0 outside
struct Region {
  int64_t first_row, first_column, rows, columns;
  int64_t size() const { return rows * columns * Floats::lanes; }  // of one vector of channels
};

inline void copy_pixels(const float* const* channels, int64_t count, float* to, Mask<float> existing, Spread::Part spread) {
  constexpr int lanes = Floats::lanes, strip = part_lanes<float>;
  const auto copy_strip = [&](int64_t first) EXTENSOR_INLINE_LAMBDA {
    Floats pixels[strip];
    load_transposed(channels, first, pixels);
    for (int i = 0; i < strip; ++i) {
      store(to + (first + i) * lanes, pixels[i]);
      spread.add(pixels[i], existing);
    }
  };
  int64_t p = 0;
  for (; p + strip <= count; p += strip) copy_strip(p);
  if (p < count && count >= strip) {
    copy_strip(count - strip);
  } else {
    for (; p < count; ++p) {
      for (int lane = 0; lane < lanes; ++lane) to[p * lanes + lane] = channels[lane][p];
      spread.add(load(to + p * lanes), existing);
    }
  }
}

inline Spread copy_region(const float* source, int64_t channels, int64_t height, int64_t width, const Region& region, float* to) {
  constexpr int lanes = Floats::lanes;
  Spread spread;
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
      copy_pixels(from, count, to + left * lanes, lanes_below<float>(int(min_of(lanes, channels - c))), Spread::Part(spread, c));
      if (right > 0) std::memset(to + (left + count) * lanes, 0, size_t(right * lanes) * sizeof(float));
    }
  }
  return spread;
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
