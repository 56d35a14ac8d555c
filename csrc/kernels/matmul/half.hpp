// Matrix products of float16 and bfloat16: float32 sums of exact products, rounded once to what C is made of.
//
// The order is the same on every processor. k is cut into blocks (half_depth); in a block, a sum starts at 0 and takes the
// steps in pairs, of each pair the second step first:
//
//   sum = fma(a[i, 2p + 1], b[2p + 1, j], sum);  sum = fma(a[i, 2p], b[2p, j], sum)          a missing last step is 0 * 0
//
// Blocks are added in order, then the biases. That is what AVX512-BF16 computes with `vdpbf16ps`, which moreover takes subnormal
// operands, sums and products for 0; elsewhere the elements are widened on their way into the panels, and subnormals count. One row
// times a B that lies dense along k has an order of its own (half_dot.hpp).
#pragma once

#include <cstdint>

#include "core/dtype.hpp"
#include "core/isa.hpp"
#include "kernels/matmul/product.hpp"

namespace extensor {

// All strides count elements. A transposed operand is one whose strides are swapped.
struct HalfProduct {
  int64_t m, n, k;
  const uint16_t* a;
  int64_t a_row, a_col;
  const uint16_t* b;
  int64_t b_row, b_col;
  void* c;  // rows are dense, one every c_row elements
  int64_t c_row;
  bool wide_c = false;                // C is made of float32, else of what A and B are
  const float* column_bias = nullptr;  // n values, added to every row
  const float* row_bias = nullptr;     // m values, added to every column
  Activation activation = Activation::none;
};

// `count` products of the same size whose operands lie a fixed distance apart; 0 repeats an operand.
struct HalfBatch {
  int64_t count = 1;
  int64_t a = 0, b = 0, c = 0;
};

using HalfMatmulFunction = void (*)(const HalfProduct&, const HalfBatch&);
struct HalfMatmulTable {
  HalfMatmulFunction float16, bfloat16;
};
EXTENSOR_PER_ISA(const HalfMatmulTable& half_matmul_table())
namespace avx512bf16 { void multiply_halves(const HalfProduct&, const HalfBatch&); }

// out[columns] = the sum of the rows of x, added up in float64.
EXTENSOR_PER_ISA(void sum_half_rows(DType dtype, int64_t rows, int64_t columns, const void* x, int64_t row, int64_t column, void* out))

// A @ B of this dtype, by the unit for bfloat16 where there is one.
void half_matmul(DType dtype, const HalfProduct& product, const HalfBatch& batch = {});

// The depth of the blocks of k, a whole number of pairs: it decides how sums are rounded, so it depends on k alone.
constexpr int64_t half_block_k = 1024;
constexpr int64_t half_depth(int64_t k) {
  const int64_t blocks = k <= half_block_k ? 1 : (k + half_block_k - 1) / half_block_k;
  return k == 0 ? 8 : ((k + blocks - 1) / blocks + 7) / 8 * 8;
}

// Rough time of one product.
double half_product_ns(DType dtype, int64_t m, int64_t n, int64_t k);

}  // namespace extensor
