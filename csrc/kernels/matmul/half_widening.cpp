// Products of float16 and bfloat16 whose elements are widened on their way into the panels of the float32 product.
// Compiled once per instruction set.
#include "kernels/matmul/half_product.hpp"
#include "kernels/matmul/pack.hpp"
#include "kernels/matmul/tiles.hpp"

namespace extensor::EXTENSOR_ISA {
namespace {

template <class S>
EXTENSOR_INLINE float widened_one(uint16_t half) {
  if constexpr (std::is_same_v<S, Float16>) return widen_float16_bits(half);
  else return widen_bfloat16_bits(half);
}

// `count` neighbours, the two of each pair swapped; `to` is as long as whole vectors.
template <class S>
void widen_swapped(const uint16_t* from, int64_t count, float* to) {
  constexpr int lanes = Floats::lanes;
  int64_t i = 0;
  if constexpr (converts_halves) {
    for (; i + 2 * lanes <= count; i += 2 * lanes) {
      const S* const halves = reinterpret_cast<const S*>(from + i);
      Floats even, odd, first, second;
      split_pairs(load_widened(halves), load_widened(halves + lanes), even, odd);
      join_pairs(odd, even, first, second);
      store(to + i, first);
      store(to + i + lanes, second);
    }
  }
  for (; i < count; ++i) to[i ^ 1] = widened_one<S>(from[i]);
  if (count % 2 != 0) to[count - 1] = 0;
}

// This many neighbours as they are.
template <class S>
void widen_row(const uint16_t* from, int64_t count, float* to) {
  if constexpr (std::is_same_v<S, Float16>) widen_float16(from, to, count);
  else widen_bfloat16(from, to, count);
}

// As many steps as are widened at a time into a little matrix, from which panels are packed.
constexpr int64_t stretch = 64;

template <class S>
struct WideningEngine {
  using Packed = float;
  using Half = S;
  static constexpr int64_t per_packed = 1;

  static int64_t steps(int64_t k) { return (k + 1) / 2 * 2; }
  static double ns(int64_t m, int64_t n, int64_t k) { return product_ns<float>(m, n, k); }
  static bool must_pack_a(const HalfProduct&, int64_t) { return true; }

  // wide[i * stretch + p] = x[i, p], the steps of each pair swapped.
  static void widen_stretch(int64_t steps, int64_t rows, const uint16_t* x, int64_t row, int64_t step, float* wide) {
    if (row == 1) {
      float line[half_panel];
      for (int64_t p = 0; p < steps; ++p) {
        widen_row<S>(x + p * step, rows, line);
        for (int64_t i = 0; i < rows; ++i) wide[i * stretch + (p ^ 1)] = line[i];
      }
      if (steps % 2 != 0)
        for (int64_t i = 0; i < rows; ++i) wide[i * stretch + steps - 1] = 0;
      return;
    }
    for (int64_t i = 0; i < rows; ++i) {
      float* const to = wide + i * stretch;
      if (step == 1) {
        widen_swapped<S>(x + i * row, steps, to);
        continue;
      }
      for (int64_t p = 0; p < steps; ++p) to[p ^ 1] = widened_one<S>(x[i * row + p * step]);
      if (steps % 2 != 0) to[steps - 1] = 0;
    }
  }

  // sums += a pair of rows of B, the second first.
  static EXTENSOR_INLINE void add_pair(float first, float second, const uint16_t* b, int64_t b_row, int64_t count, float* sums) {
    float wide[2][half_panel];
    for (int64_t j = 0; j < count; j += half_panel) {
      const int64_t part = min_of(half_panel, count - j);
      widen_row<S>(b + b_row + j, part, wide[1]);
      widen_row<S>(b + j, part, wide[0]);
      for (int64_t c = 0; c < part; c += Floats::lanes) {
        const Floats sum = fma(broadcast(second), load(wide[1] + c), load(sums + j + c));
        store(sums + j + c, fma(broadcast(first), load(wide[0] + c), sum));
      }
    }
  }

  // One row, and rows of B that lie along n: they are read once and need no panels.
  static bool multiply_one_row(const HalfProduct& x) {
    if (x.m != 1 || x.b_col != 1 || x.k < 2 || x.n < half_panel) return false;
    constexpr int64_t strip = 1024;
    const int64_t depth = half_depth(x.k);
    parallel_for(ceil_div(x.n, strip), double(x.k * min_of(x.n, strip)) / 8, [&](int64_t begin, int64_t end) {
      for (int64_t j = begin * strip; j < min_of(x.n, end * strip); j += strip) {
        const int64_t columns = min_of(strip, x.n - j);
        float total[strip], sums[strip];
        for (int64_t start = 0; start < x.k; start += depth) {
          const int64_t stop = min_of(x.k, start + depth);
          float* const to = start == 0 ? total : sums;
          for (int64_t c = 0; c < strip; ++c) to[c] = 0;
          for (int64_t p = start; p < stop; p += 2) {
            const bool whole = p + 1 < stop;
            const float first = widened_one<S>(x.a[p * x.a_col]), second = whole ? widened_one<S>(x.a[(p + 1) * x.a_col]) : 0;
            if (whole) add_pair(first, second, x.b + p * x.b_row + j, x.b_row, columns, to);
            else add_last(first, x.b + p * x.b_row + j, columns, to);
          }
          for (int64_t c = 0; start > 0 && c < strip; ++c) total[c] = sums[c] + total[c];
        }
        HalfTile<float> tile{};
        tile.rows = 1, tile.columns = int(columns), tile.wide_c = x.wide_c, tile.activation = x.activation;
        tile.c = static_cast<char*>(x.c) + j * (x.wide_c ? 4 : 2);
        tile.column_bias = x.column_bias ? x.column_bias + j : nullptr, tile.row_bias = x.row_bias;
        finish_half_rows<S>(tile, total, strip);
      }
    });
    return true;
  }

  // A last step without a partner: 0 * 0 comes first.
  static void add_last(float first, const uint16_t* b, int64_t count, float* sums) {
    float wide[half_panel];
    for (int64_t j = 0; j < count; j += half_panel) {
      const int64_t part = min_of(half_panel, count - j);
      widen_row<S>(b + j, part, wide);
      for (int64_t c = 0; c < part; ++c) sums[j + c] += 0.0f;
      for (int64_t c = 0; c < part; c += Floats::lanes)
        store(sums + j + c, fma(broadcast(first), load(wide + c), load(sums + j + c)));
    }
  }

  // A block of A lies as A does, along k or along its rows, so that widening it is all; rows a page apart would fall on the same places
  // of the cache.
  static constexpr int64_t margin = 16;
  static int64_t room_for_a(int64_t rows, int64_t steps) { return (rows + margin) * (steps + margin); }
  static void pack_a(int64_t k, int64_t rows, int64_t, const uint16_t* a, int64_t a_row, int64_t a_col, float* to, HalfTile<float>& tile) {
    if (a_row == 1) {
      tile.a_row = 1, tile.a_col = rows + margin;
      for (int64_t p = 0; p < k; ++p) widen_row<S>(a + p * a_col, rows, to + (p ^ 1) * tile.a_col);
      for (int64_t i = 0; k % 2 != 0 && i < rows; ++i) to[(k - 1) * tile.a_col + i] = 0;
      return;
    }
    tile.a_row = tile.steps + margin, tile.a_col = 1;
    for (int64_t i = 0; i < rows; ++i) {
      float* const row = to + i * tile.a_row;
      if (a_col == 1) {
        widen_swapped<S>(a + i * a_row, k, row);
        continue;
      }
      for (int64_t p = 0; p < k; ++p) row[p ^ 1] = widened_one<S>(a[i * a_row + p * a_col]);
      if (k % 2 != 0) row[k - 1] = 0;
    }
  }
  static void pack_b(int64_t k, int64_t columns, const uint16_t* b, int64_t b_row, int64_t b_col, float* to) {
    constexpr int panel = half_panel;
    if (b_col == 1) {
      const int64_t all = steps(k);
      for (int64_t p = 0; p < k; ++p, b += b_row)
        for (int64_t j = 0; j < columns; j += panel) {
          float* const line = to + j * all + (p ^ 1) * panel;
          const int64_t count = min_of(panel, columns - j);
          widen_row<S>(b + j, count, line);
          for (int64_t c = count; c < panel; ++c) line[c] = 0;
        }
      for (int64_t j = 0; k % 2 != 0 && j < columns; j += panel)
        for (int c = 0; c < panel; ++c) to[j * all + (k - 1) * panel + c] = 0;
      return;
    }
    float wide[half_panel * stretch];
    for (int64_t p = 0; p < k; p += stretch) {
      const int64_t count = min_of(stretch, k - p);
      widen_stretch(count, columns, b + p * b_row, b_col, b_row, wide);
      pack_panel_b<float>(steps(count), int(columns), wide, 1, stretch, to + p * panel);
    }
  }

  static void multiply(const HalfTile<float>& half, bool) {
    float room[max_rows * half_panel];
    const bool in_place = half.sums != nullptr;
    Tile<float> tile;
    tile.k = half.steps, tile.a = half.a, tile.a_row = half.a_row, tile.a_col = half.a_col, tile.b = half.b, tile.b_row = half_panel;
    tile.c = in_place ? half.sums : room, tile.c_row = in_place ? half.sums_row : half_panel;
    tile.columns = half.columns;
    tile.add_to_c = !half.first;
    tile.last = half.last && half.wide_c;
    tile.column_bias = half.column_bias, tile.row_bias = half.row_bias, tile.activation = half.activation;
    tiles_for<float>(half.columns)[half.rows](tile);
    if (half.last && !half.wide_c) finish_half_rows<S>(half, tile.c, tile.c_row);
  }

  // The second and the first elements of 16 pairs.
  struct Chunk {
    static constexpr int parts = dot_lanes / Floats::lanes;
    Floats odd[parts], even[parts];
  };
  static EXTENSOR_INLINE Chunk chunk(const uint16_t* from, int64_t count) {
    constexpr int lanes = Floats::lanes;
    float wide[dot_words];
    for (int64_t i = count; i < dot_words; ++i) wide[i] = 0;
    widen_row<S>(from, count, wide);
    Chunk out;
    for (int i = 0; i < Chunk::parts; ++i) split_pairs(load(wide + 2 * i * lanes), load(wide + (2 * i + 1) * lanes), out.even[i], out.odd[i]);
    return out;
  }
  struct Chains {
    Floats sums[Chunk::parts];
    EXTENSOR_INLINE void clear() {
      for (Floats& sum : sums) sum = Floats(0.0);
    }
    EXTENSOR_INLINE void add(const Chunk& a, const Chunk& b) {
      for (int i = 0; i < Chunk::parts; ++i) sums[i] = fma(a.even[i], b.even[i], fma(a.odd[i], b.odd[i], sums[i]));
    }
    EXTENSOR_INLINE void store(float* to) const {
      for (int i = 0; i < Chunk::parts; ++i) EXTENSOR_ISA::store(to + i * Floats::lanes, sums[i]);
    }
  };
};

}  // namespace

const HalfMatmulTable& half_matmul_table() {
  static constexpr HalfMatmulTable table = {multiply_half_batch<WideningEngine<Float16>>, multiply_half_batch<WideningEngine<BFloat16>>};
  return table;
}

}  // namespace extensor::EXTENSOR_ISA
