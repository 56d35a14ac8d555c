// The element types a kernel may meet. The numbers are ours, not NumPy's; bindings translate.
#pragma once

#include <cstddef>
#include <cstdint>

namespace extensor {

enum class DType : uint8_t {
  boolean, int8, int16, int32, int64, uint8, uint16, uint32, uint64, float16, bfloat16, float32, float64, other
};

constexpr bool is_half(DType dtype) { return dtype == DType::float16 || dtype == DType::bfloat16; }

// The type that kernels compute in: half types are widened on the way in and rounded on the way out.
constexpr DType computed_in(DType dtype) { return is_half(dtype) ? DType::float32 : dtype; }

constexpr size_t item_size(DType dtype) {
  switch (dtype) {
    case DType::boolean: case DType::int8: case DType::uint8: return 1;
    case DType::int16: case DType::uint16: case DType::float16: case DType::bfloat16: return 2;
    case DType::int32: case DType::uint32: case DType::float32: return 4;
    default: return 8;
  }
}

}  // namespace extensor
