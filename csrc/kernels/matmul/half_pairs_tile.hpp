// The register tile of bfloat16 pairs.
//
//   C[rows, columns] = A[rows, pairs] @ B[pairs, columns]          rows <= max_rows, columns <= half_panel
//
// Included only by sources that are compiled for AVX512-BF16.
#pragma once

#include "kernels/matmul/half_blocks.hpp"
#include "kernels/matmul/half_pairs.hpp"

namespace extensor::EXTENSOR_ISA {

// The first `count` lanes, rounded.
EXTENSOR_INLINE void store_bfloat16(void* to, Floats sum, int count) {
  const __m256i words = _mm512_cvtepi32_epi16((__m512i)rounded_to_bfloat16(sum).v);
  if (count >= Floats::lanes) _mm256_storeu_si256(static_cast<__m256i*>(to), words);
  else _mm256_mask_storeu_epi16(to, __mmask16((1u << count) - 1), words);
}

// A tile of any height and width, compiled once (half_pairs_tile.cpp); A packed in a panel of that height, or read as it lies.
void multiply_pairs(const HalfTile<HalfPair>& tile, bool packed_a);

}  // namespace extensor::EXTENSOR_ISA
