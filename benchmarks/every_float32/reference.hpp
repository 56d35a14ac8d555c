// What the functions and gradients are exactly, in float64.
#pragma once

#include <cstdint>

constexpr int64_t block = 1024;  // float32 numbers at a time

// What many references need of one block of numbers, computed once for all of them.
struct Block {
  alignas(64) double x[block], exp[block], expm1[block], sin[block], cos[block], sinh[block], erfc[block];
};
void fill(Block& block);  // from x

enum class Parity { none, even, odd };

struct Reference {
  const char* name;       // of the kernel
  int inputs;             // 1: f(x); 2: the gradient g f'(x), or of the output y for which x stands
  Parity parity;          // f(-x) is f(x) or -f(x): one evaluation serves both
  double scalars[2];      // the options of the kernel
  double upstream;        // g
  void (*values)(const Block& block, double* out);
};

extern const Reference references[];
extern const int reference_count;
