// Cross-entropy of integer labels, fused with the softmax of the logits.
#pragma once

#include <cstdint>

#include "core/dtype.hpp"
#include "core/isa.hpp"

namespace extensor {

// x[rows, classes] dense, `stored` as T, or as halves if T is float. labels[row] is a class, or negative: such a row is left out.
template <class T>
struct CrossEntropyFunctions {
  // losses[row] = log(sum_c exp(x[row, c])) - x[row, label]
  void (*forward)(DType stored, int64_t rows, int64_t classes, const void* x, const int64_t* labels, T* losses);
  // out[row, c] = upstream * (softmax(x[row])[c] - (c == label)); upstream[row * upstream_step]; stored like x
  void (*backward)(DType stored, int64_t rows, int64_t classes, const void* x, const int64_t* labels, const T* upstream, int64_t upstream_step,
                   void* out);
};

struct CrossEntropyTable {
  CrossEntropyFunctions<float> float32;
  CrossEntropyFunctions<double> float64;
};
EXTENSOR_PER_ISA(const CrossEntropyTable& cross_entropy_table())

template <class T>
const CrossEntropyFunctions<T>& cross_entropy_functions() {
  const CrossEntropyTable& table = EXTENSOR_SELECT(cross_entropy_table)();
  if constexpr (sizeof(T) == 4) return table.float32;
  else return table.float64;
}

}  // namespace extensor
