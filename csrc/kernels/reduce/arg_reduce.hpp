// Where the largest or smallest element is.
#pragma once

#include <cstdint>

#include "core/dtype.hpp"
#include "core/isa.hpp"

namespace extensor {

// x dense, seen as [outer, length, inner]; out[outer, inner] is the first position along `length` of the largest
// (or smallest) element, or of the first nan. length > 0.
struct ArgReduceTable {
  void (*float32)(bool largest, int64_t outer, int64_t length, int64_t inner, const float* x, int64_t* out);
  void (*float64)(bool largest, int64_t outer, int64_t length, int64_t inner, const double* x, int64_t* out);
};
EXTENSOR_PER_ISA(const ArgReduceTable& arg_reduce_table())

inline void arg_reduce(DType dtype, bool largest, int64_t outer, int64_t length, int64_t inner, const void* x, int64_t* out) {
  const ArgReduceTable& table = EXTENSOR_SELECT(arg_reduce_table)();
  if (dtype == DType::float32) table.float32(largest, outer, length, inner, static_cast<const float*>(x), out);
  else table.float64(largest, outer, length, inner, static_cast<const double*>(x), out);
}

}  // namespace extensor
