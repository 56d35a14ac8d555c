#include "kernels/matmul/half.hpp"

#include "core/bf16_unit.hpp"

namespace extensor {

void half_matmul(DType dtype, const HalfProduct& product, const HalfBatch& batch) {
  if (dtype == DType::float16) return EXTENSOR_SELECT(half_matmul_table)().float16(product, batch);
#ifdef EXTENSOR_BUILT_AVX512BF16
  if (has_bf16_unit()) return avx512bf16::multiply_halves(product, batch);
#endif
  EXTENSOR_SELECT(half_matmul_table)().bfloat16(product, batch);
}

double half_product_ns(DType dtype, int64_t m, int64_t n, int64_t k) {
  const double ns = product_ns<float>(m, n, k);
  return dtype == DType::bfloat16 && has_bf16_unit() ? ns / 2 : ns;
}

}  // namespace extensor
