// Losses of single elements, and their gradients: elementwise formulas whose inputs end with predictions and targets.
#pragma once

#include "kernels/elementwise/elementwise.hpp"

namespace extensor {

// Where the elements of an input have to lie; nan lies everywhere but among the signs -1 and 1.
enum class Domain { all, probabilities, not_negative, signs };

struct PointwiseLoss {
  const ElementwiseKernel* formula;
  int64_t size;
  const void* in[3];  // in order; contiguous, or one element that stands for all if its step is 0
  int64_t steps[3];
  DType stored;  // float32 and float64 as they are; halves, of which single elements are given as float32, are widened block by block
  Domain predictions, targets;
  const double* scalars;
};

// Each function returns false, and no result, if a prediction or target lies outside its domain.
struct PointwiseTable {
  bool (*write32)(const PointwiseLoss& loss, void* out);
  bool (*write64)(const PointwiseLoss& loss, void* out);
  bool (*total32)(const PointwiseLoss& loss, double& total);
  bool (*total64)(const PointwiseLoss& loss, double& total);
};
EXTENSOR_PER_ISA(const PointwiseTable& pointwise_table())

}  // namespace extensor
