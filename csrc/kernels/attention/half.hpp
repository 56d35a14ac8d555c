// Attention of bfloat16, by the processor's dot product of pairs.
//
// The products take bfloat16 and add up in float32; scores, softmax and the sums of gradients are float32. Operands that come to
// be on the way are rounded to bfloat16: exp(score - largest) on the way forwards, the weights p and the gradients of the scores
// on the way back.
#pragma once

#include "core/dtype.hpp"
#include "kernels/attention/operands.hpp"

namespace extensor {

namespace avx512bf16 { const AttentionFunctions<uint16_t>& half_attention_functions(); }

// nullptr where these elements must be widened first.
const AttentionFunctions<uint16_t>* find_half_attention(DType dtype);

}  // namespace extensor
