// The two kernels all convolutions are made of, one table per instruction set.
#pragma once

#include <cstddef>
#include <cstdint>

#include "core/isa.hpp"

namespace extensor {

// One direction of a map from a source to an output: output i sees source[i * step + shift[t]] for every tap t, zero
// where that is outside, and is written to out_first + i * out_step.
struct ConvAxis {
  int64_t source, count, step;
  int64_t out_first, out_step;
  int64_t taps;
  const int64_t* shift;
  const int64_t* element;  // which element of the kernel the tap is
};

// What a map made of its weight, for the next call with the same weight and sizes: it is filled by one call, and read by the
// others. All of it follows from weight and sizes, so results are the same bits with it and without.
struct KeptWeight {
  KeptWeight() = default;
  ~KeptWeight();
  KeptWeight(const KeptWeight&) = delete;
  KeptWeight& operator=(const KeptWeight&) = delete;

  bool is_filled = false;
  bool suits_winograd = false;  // the transformed weight is kept, else panels of the weight itself
  bool is_finite = false;
  void* data = nullptr;
  size_t bytes = 0;
};

// out[n, o, rows, columns] = bias[o] + sum over inputs and taps of source * weight
template <class T>
struct ConvMap {
  int64_t images, groups, inputs, outputs;
  ConvAxis rows, columns;
  const T* source;
  const T* weight;  // with these strides for a group, an output, an input and a row of the kernel
  int64_t weight_group, weight_output, weight_input, weight_row;
  const T* bias;
  T* out;
  int64_t out_height, out_width;
  KeptWeight* kept = nullptr;
  bool relu = false;  // follows the bias
};

// out[o, c, taps] = sum over images, rows, columns of grad[n, o, row, column] * source; out_first and out_step are not used
template <class T>
struct ConvWeightMap {
  int64_t images, groups, inputs, outputs;
  ConvAxis rows, columns;
  const T* source;
  const T* grad;
  T* out;
};

struct ConvTable {
  void (*map32)(const ConvMap<float>&);
  void (*map64)(const ConvMap<double>&);
};
struct ConvWeightTable {
  void (*map32)(const ConvWeightMap<float>&);
  void (*map64)(const ConvWeightMap<double>&);
};
EXTENSOR_PER_ISA(const ConvTable& conv_table())
EXTENSOR_PER_ISA(const ConvWeightTable& conv_weight_table())

}  // namespace extensor
