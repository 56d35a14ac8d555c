#include "kernels/attention/half.hpp"

#include "core/bf16_unit.hpp"

namespace extensor {

const AttentionFunctions<uint16_t>* find_half_attention(DType dtype) {
#ifdef EXTENSOR_BUILT_AVX512BF16
  if (dtype == DType::bfloat16 && has_bf16_unit()) return &avx512bf16::half_attention_functions();
#endif
  (void)dtype;
  return nullptr;
}

}  // namespace extensor
