// Matrix products of float32 and float64.
#pragma once

#include "core/isa.hpp"
#include "kernels/matmul/product.hpp"

namespace extensor {

struct MatmulTable {
  void (*float32)(const Product<float>&, const Batch<float>&);
  void (*float64)(const Product<double>&, const Batch<double>&);
  // B[k, n] for Product::packed_b: how many elements it takes, and it.
  int64_t (*packed_size)(int64_t k, int64_t n);
  void (*pack)(int64_t k, int64_t n, const float* b, int64_t b_row, int64_t b_col, float* to);
  bool (*reads_packed)(int64_t m, int64_t n, int64_t k);
};
EXTENSOR_PER_ISA(const MatmulTable& matmul_table())

inline void matmul(const Product<float>& product, const Batch<float>& batch = {}) {
  EXTENSOR_SELECT(matmul_table)().float32(product, batch);
}
inline void matmul(const Product<double>& product, const Batch<double>& batch = {}) {
  EXTENSOR_SELECT(matmul_table)().float64(product, batch);
}

}  // namespace extensor
