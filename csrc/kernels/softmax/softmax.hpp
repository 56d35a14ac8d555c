// Softmax and its logarithm along one axis, and their gradients from the output.
#pragma once

#include <cstdint>

#include "core/dtype.hpp"
#include "core/isa.hpp"

namespace extensor {

enum class Softmax { forward, backward, log_forward, log_backward };

// Dense tensors seen as [outer, length, inner], along `length`. The forward reads `a`; a backward reads the upstream
// gradient `a` and the forward's output `b`. All are `stored` as T, or as halves if T is float and inner 1.
struct SoftmaxTable {
  void (*float32)(Softmax, DType stored, int64_t outer, int64_t length, int64_t inner, const void* a, const void* b, void* out);
  void (*float64)(Softmax, DType stored, int64_t outer, int64_t length, int64_t inner, const void* a, const void* b, void* out);
};
EXTENSOR_PER_ISA(const SoftmaxTable& softmax_table())

inline void softmax(DType dtype, Softmax kind, int64_t outer, int64_t length, int64_t inner, const void* a, const void* b,
                    void* out) {
  const SoftmaxTable& table = EXTENSOR_SELECT(softmax_table)();
  (dtype == DType::float64 ? table.float64 : table.float32)(kind, dtype, outer, length, inner, a, b, out);
}

// Rough time of one element.
inline double softmax_ns(Softmax kind) { return kind == Softmax::backward ? 0.4 : 1.0; }

}  // namespace extensor
