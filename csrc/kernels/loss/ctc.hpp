// Connectionist temporal classification: sums over all alignments of labels with a sequence, as logarithms in double.
#pragma once

#include <cstdint>

#include "core/dtype.hpp"

namespace extensor {

// times x batch x classes log-probabilities; states: (batch, states), the class of each state; jumps: (batch, states), whether a state
// can be reached from the last but one; lengths and counts: (batch), of the sequences and of their labels.
struct CtcPaths {
  int64_t times, batch, classes, states;
  const int64_t* labels;
  const unsigned char* jumps;
  const int64_t* lengths;
  const int64_t* counts;
};

// losses: (batch), about 1e30 where no path exists.
void ctc_losses(DType dtype, const CtcPaths& paths, const void* x, double* losses);
// out: (times, batch, classes), -rates[n] times the probability that a path is at a class at a time.
void ctc_shares(DType dtype, const CtcPaths& paths, const double* rates, const void* x, double* out);

}  // namespace extensor
