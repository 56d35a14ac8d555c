// Products of bfloat16 by the processor's dot product of pairs. Compiled once, for AVX512-BF16.
#include "kernels/matmul/half_blocks.hpp"
#include "kernels/matmul/half_pairs.hpp"
#include "kernels/matmul/half_pairs_tile.hpp"
#include "kernels/matmul/half_product.hpp"

namespace extensor::EXTENSOR_ISA {
namespace {

struct PairEngine {
  using Packed = HalfPair;
  using Half = BFloat16;
  static constexpr int64_t per_packed = 2;

  static int64_t steps(int64_t k) { return (k + 1) / 2; }
  static double ns(int64_t m, int64_t n, int64_t k) { return product_ns<float>(m, n, k) / 2; }

  // Pairs are read as they lie in a row of A. Rows that fall on the same places of the first-level cache are better packed.
  static bool must_pack_a(const HalfProduct& x, int64_t columns) {
    if (x.a_col != 1 || x.a_row % 2 != 0 || x.k % 2 != 0 || reinterpret_cast<uintptr_t>(x.a) % sizeof(HalfPair) != 0) return true;
    return x.a_row * 2 % 2048 == 0 && columns >= 8 * half_panel;
  }
  static bool multiply_one_row(const HalfProduct&) { return false; }  // packing pairs costs less than reading them

  // Panels of the heights of the tiles, one behind the other.
  static int64_t room_for_a(int64_t rows, int64_t steps) { return rows * steps; }
  static void pack_a(int64_t k, int64_t rows, int64_t available, const uint16_t* a, int64_t a_row, int64_t a_col, HalfPair* to,
                     HalfTile<HalfPair>& tile) {
    tile.a_row = tile.steps;
    // A step that lies along the rows has something for every panel: a few steps at a time stay in the first-level cache.
    const int64_t strip = a_row == 1 ? 32 : k;
    for (int64_t p = 0; p < k; p += strip)
      for (int64_t i = 0; i < rows;) {
        const int height = half_rows(rows - i);
        pack_pairs_a(min_of(strip, k - p), height, available - i, a + i * a_row + p * a_col, a_row, a_col, to + i * tile.steps + p / 2 * height);
        i += height;
      }
  }
  static void pack_b(int64_t k, int64_t columns, const uint16_t* b, int64_t b_row, int64_t b_col, HalfPair* to) {
    if (b_col == 1) pack_pairs_along_n(k, columns, b, b_row, to);
    else pack_pairs_b(k, int(columns), b, b_row, b_col, to);
  }
  static void multiply(const HalfTile<HalfPair>& tile, bool packed_a) {
    multiply_pairs(tile, packed_a);
  }

  using Chunk = __m512i;
  static EXTENSOR_INLINE Chunk chunk(const uint16_t* from, int64_t count) { return load_words(from, count); }
  struct Chains {
    Floats sums;
    EXTENSOR_INLINE void clear() { sums = Floats(0.0); }
    EXTENSOR_INLINE void add(Chunk a, Chunk b) { sums = dot_pairs(a, b, sums); }
    EXTENSOR_INLINE void store(float* to) const { EXTENSOR_ISA::store(to, sums); }
  };
};

}  // namespace

void multiply_halves(const HalfProduct& x, const HalfBatch& batch) { multiply_half_batch<PairEngine>(x, batch); }

}  // namespace extensor::EXTENSOR_ISA
