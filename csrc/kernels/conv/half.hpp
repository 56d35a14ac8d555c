// Convolutions of bfloat16 by the processor's dot product of pairs; the sums of float32 products are rounded once. There is no
// Winograd transform among them: it would lose more digits than bfloat16 has to spare. Where that of float32 is faster, callers widen.
#pragma once

#include "core/dtype.hpp"
#include "kernels/conv/conv.hpp"
#include "kernels/conv/maps.hpp"

namespace extensor {

namespace avx512bf16 {
void convolve_halves(const ConvMap<uint16_t>& map);
// False where a result is not finite and an inf or nan may have reached what does not see it.
bool half_weight_gradient(const ConvWeightMap<uint16_t>& map);
}

// Whether there are kernels for these elements as they are.
bool has_half_conv(DType dtype);

// Whether the same in float32, rounded once, takes less time: by sizes alone, so that bits do not depend on the threads.
bool is_better_widened(const ConvShape& shape);

}  // namespace extensor
