// What the functions and gradients are exactly, in float64.
#pragma once

#include <cstdint>

struct Reference {
  const char* name;       // of the kernel
  int inputs;             // 1: f(x); 2: the gradient g f'(x), or of the output y for which x stands
  double scalars[2];      // the options of the kernel
  double upstream;        // g
  void (*values)(const double* x, double* out, int64_t n);
};

extern const Reference references[];
extern const int reference_count;
