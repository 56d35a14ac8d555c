// Products of bfloat16 by the processor's dot product of pairs. Compiled once, for AVX512-BF16.
#include "kernels/matmul/half_blocks.hpp"
#include "kernels/matmul/half_pairs.hpp"
#include "kernels/matmul/half_pairs_tile.hpp"

namespace extensor::EXTENSOR_ISA {
namespace {

struct PairEngine {
  using Packed = HalfPair;
  using Half = BFloat16;
  static constexpr int64_t per_packed = 2, group = 4;

  static int64_t steps(int64_t k) { return (k + 1) / 2; }
  static double ns(int64_t m, int64_t n, int64_t k) { return product_ns<float>(m, n, k) / 2; }

  // Pairs are read as they lie in a row of A. Rows that fall on the same places of the first-level cache are better packed.
  static bool must_pack_a(const HalfProduct& x, int64_t columns) {
    if (x.a_col != 1 || x.a_row % 2 != 0 || x.k % 2 != 0 || reinterpret_cast<uintptr_t>(x.a) % sizeof(HalfPair) != 0) return true;
    return x.a_row * 2 % 2048 == 0 && columns >= 8 * half_panel;
  }
  static void pack_a(int64_t k, int rows, int64_t available, const uint16_t* a, int64_t a_row, int64_t a_col, HalfPair* to) {
    pack_pairs_a(k, rows, available, a, a_row, a_col, to);
  }
  static void pack_b(int64_t k, int64_t columns, const uint16_t* b, int64_t b_row, int64_t b_col, HalfPair* to) {
    if (b_col == 1) pack_pairs_along_n(k, columns, b, b_row, to);
    else pack_pairs_b(k, int(columns), b, b_row, b_col, to);
  }
  static void multiply(const HalfTile<HalfPair>& tile, bool packed_a) {
    multiply_pairs(tile, packed_a);
  }
};

}  // namespace

void multiply_halves(const HalfProduct& x, const HalfBatch& batch) { multiply_half_batch<PairEngine>(x, batch); }

}  // namespace extensor::EXTENSOR_ISA
