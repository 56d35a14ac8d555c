// The processor's dot product of bfloat16 pairs (AVX512-BF16). Sources that use it are compiled once, with its flags, as an
// instruction set of their own in the namespace extensor::avx512bf16; whether they run is decided here, at run time.
#pragma once

namespace extensor {

// Whether the AVX-512 kernels are active, the build holds those of the unit, and the processor has it. EXTENSOR_BF16_UNIT=0
// leaves it alone.
bool has_bf16_unit();

}  // namespace extensor
