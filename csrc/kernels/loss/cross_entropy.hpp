// Cross-entropy of integer labels, fused with the softmax of the logits.
#pragma once

#include <cstdint>

#include "core/dtype.hpp"
#include "core/isa.hpp"

namespace extensor {

// x[rows, classes] dense. labels[row] is a class, or negative: such a row is left out.
struct CrossEntropyTable {
  // losses[row] = log(sum_c exp(x[row, c])) - x[row, label]
  void (*forward32)(int64_t rows, int64_t classes, const float* x, const int64_t* labels, float* losses);
  void (*forward64)(int64_t rows, int64_t classes, const double* x, const int64_t* labels, double* losses);
  // out[row, c] = upstream * (softmax(x[row])[c] - (c == label)); upstream[row * upstream_step]
  void (*backward32)(int64_t rows, int64_t classes, const float* x, const int64_t* labels, const float* upstream,
                     int64_t upstream_step, float* out);
  void (*backward64)(int64_t rows, int64_t classes, const double* x, const int64_t* labels, const double* upstream,
                     int64_t upstream_step, double* out);
};
EXTENSOR_PER_ISA(const CrossEntropyTable& cross_entropy_table())

}  // namespace extensor
