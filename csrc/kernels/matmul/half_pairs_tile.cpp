// Compiled once, for AVX512-BF16.
#include "kernels/matmul/half_pairs_tile.hpp"

namespace extensor::EXTENSOR_ISA {
namespace {

// The sums as bfloat16. The processor's own rounding takes subnormal numbers for 0: the unit leaves none, but what is added to its
// sums may.
template <int Rows, int Vectors>
EXTENSOR_INLINE void store_narrow_tile(const HalfTile<HalfPair>& tile, Floats (&acc)[Rows][Vectors], const int (&count)[Vectors]) {
  constexpr int lanes = Floats::lanes, is_subnormal = 0x20;
  uint16_t* const c = opaque(static_cast<uint16_t*>(tile.c));
  const int64_t c_row = opaque(tile.c_row);
  if (!tile.first || tile.column_bias || tile.row_bias) {
    unsigned some = 0;
#pragma GCC unroll 16
    for (int i = 0; i < Rows; ++i)
#pragma GCC unroll 8
      for (int j = 0; j < Vectors; ++j) some |= _mm512_fpclass_ps_mask((__m512)acc[i][j].v, is_subnormal);
    if (__builtin_expect(some != 0, 0)) {
      float sums[Rows][Vectors * lanes];
#pragma GCC unroll 16
      for (int i = 0; i < Rows; ++i)
#pragma GCC unroll 8
        for (int j = 0; j < Vectors; ++j) store(sums[i] + j * lanes, acc[i][j]);
#pragma GCC unroll 1
      for (int i = 0; i < Rows; ++i)
#pragma GCC unroll 1
        for (int j = 0; j < Vectors; ++j) store_bfloat16(c + i * c_row + j * lanes, load(sums[i] + j * lanes), count[j]);
      return;
    }
  }
  if (Vectors == 2 && count[Vectors - 1] == lanes) {
#pragma GCC unroll 16
    for (int i = 0; i < Rows; ++i)
      _mm512_storeu_si512(c + i * c_row, (__m512i)_mm512_cvtne2ps_pbh((__m512)acc[i][Vectors - 1].v, (__m512)acc[i][0].v));
    return;
  }
#pragma GCC unroll 16
  for (int i = 0; i < Rows; ++i)
#pragma GCC unroll 8
    for (int j = 0; j < Vectors; ++j)
      _mm256_mask_storeu_epi16(c + i * c_row + j * lanes, __mmask16((1u << count[j]) - 1), (__m256i)_mm512_cvtneps_pbh((__m512)acc[i][j].v));
}

// The accumulators on their way to the sums or to C. They stay in registers because every loop over them is unrolled.
template <int Rows, int Vectors>
EXTENSOR_INLINE void store_pair_tile(const HalfTile<HalfPair>& tile, Floats (&acc)[Rows][Vectors]) {
  constexpr int lanes = Floats::lanes;
  int count[Vectors];
#pragma GCC unroll 8
  for (int j = 0; j < Vectors; ++j) count[j] = int(max_of(0, min_of(lanes, tile.columns - j * lanes)));
  const auto for_each = [&](auto&& body) EXTENSOR_INLINE_LAMBDA {
#pragma GCC unroll 8
    for (int j = 0; j < Vectors; ++j)
#pragma GCC unroll 16
      for (int i = 0; i < Rows; ++i) body(acc[i][j], i, j);
  };
  float* const sums = opaque(tile.sums);
  const int64_t sums_row = opaque(tile.sums_row);
  if (!tile.first)
    for_each([&](Floats& sum, int i, int j) EXTENSOR_INLINE_LAMBDA { sum = sum + load_first(sums + i * sums_row + j * lanes, count[j]); });
  if (tile.last) {
    if (tile.column_bias)
      for_each([&](Floats& sum, int, int j) EXTENSOR_INLINE_LAMBDA { sum = sum + load_first(tile.column_bias + j * lanes, count[j]); });
    if (tile.row_bias) for_each([&](Floats& sum, int i, int) EXTENSOR_INLINE_LAMBDA { sum = sum + broadcast(tile.row_bias[i]); });
    if (tile.activation == Activation::relu) for_each([](Floats& sum, int, int) EXTENSOR_INLINE_LAMBDA { sum = relu(sum); });
    if (!tile.wide_c) return store_narrow_tile(tile, acc, count);
  }
  for_each([&](Floats sum, int i, int j) EXTENSOR_INLINE_LAMBDA { store_first(sums + i * sums_row + j * lanes, sum, count[j]); });
}

template <int Rows, int Vectors, bool PackedA>
void multiply_pair_tile(const HalfTile<HalfPair>& tile) {
  constexpr int lanes = Floats::lanes, panel = half_panel;
  Floats acc[Rows][Vectors];
  clear_sums(acc);
  std::conditional_t<PackedA, PackedRowsOfA<HalfPair, Rows>, RowsOfA<HalfPair, Rows>> a(tile.a, tile.a_row, 1);
  const HalfPair* b = tile.b;
  const auto step = [&]() EXTENSOR_INLINE_LAMBDA {
    __m512i bv[Vectors];
#pragma GCC unroll 8
    for (int j = 0; j < Vectors; ++j) bv[j] = load_pairs(b + j * lanes);
    add_dot_pairs(a, bv, acc);
    a.step();
    b += panel;
  };
  // C, or the sums that wait, are needed when the dot products are done; asked for all at once they would hold up A and B.
  const bool narrow = tile.last && !tile.wide_c;
  const char* c = static_cast<const char*>(narrow ? tile.c : tile.sums);
  const int64_t c_row = narrow ? tile.c_row * 2 : tile.sums_row * 4;
  const char* sums = tile.first ? c : reinterpret_cast<const char*>(tile.sums);
  const int64_t sums_row = tile.first ? c_row : tile.sums_row * 4;
  const int64_t sums_second = !tile.first || !narrow ? (Vectors - 1) * 64 : 0;
  int64_t p = tile.steps;
  for (const int64_t rest = p > 2 * Rows ? p - Rows : p; p > rest; --p) {
    __builtin_prefetch(c, 1);
    __builtin_prefetch(sums, 1);
    __builtin_prefetch(sums + sums_second, 1);
    c += c_row, sums += sums_row;
    step();
  }
  for (; p > 0; --p) step();
  store_pair_tile(tile, acc);
}

using PairTileFunction = void (*)(const HalfTile<HalfPair>&);
template <int Vectors, bool PackedA, int... Rows>
struct PairTileTable {
  static constexpr PairTileFunction of_rows[] = {nullptr, multiply_pair_tile<Rows, Vectors, PackedA>...};
};
template <int Vectors, bool PackedA>
using PairTiles = PairTileTable<Vectors, PackedA, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12>;

}  // namespace

void multiply_pairs(const HalfTile<HalfPair>& tile, bool packed_a) {
  const bool narrow = tile.columns <= Floats::lanes;
  const PairTileFunction* tiles = packed_a ? (narrow ? PairTiles<1, true>::of_rows : PairTiles<2, true>::of_rows)
                                           : (narrow ? PairTiles<1, false>::of_rows : PairTiles<2, false>::of_rows);
  tiles[tile.rows](tile);
}

}  // namespace extensor::EXTENSOR_ISA
