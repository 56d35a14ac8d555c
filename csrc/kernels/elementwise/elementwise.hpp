// Elementwise kernels: out[i] = f(in0[i], in1[i], ...; scalars).
//
// The formulas stand in formulas.inc, one line each. A formula is compiled to one function per
// instruction set and computing type, which runs over a block of elements; the drivers declared here
// cut tensors of any layout into such blocks and share them between threads. float16 and bfloat16 are
// converted to float32 block by block, computed there, and rounded once.
#pragma once

#include <cstdint>

#include "core/dtype.hpp"
#include "core/isa.hpp"

namespace extensor {

constexpr int max_elementwise_inputs = 4;
constexpr int max_elementwise_outputs = 3;
constexpr int max_elementwise_scalars = 12;
constexpr int max_elementwise_dims = 32;

// in[i] points to n elements if steps[i] is 1, to one element that stands for all if it is 0.
// Outputs are contiguous and may coincide with an input of step 1. Of all this there are `rows`; row_strides says by how
// many bytes each input, and behind them the outputs, go on from row to row (nothing if there is one row).
using BlockFunction = void (*)(int64_t n, const void* const* in, const int64_t* steps, void* const* out,
                               const double* scalars, int64_t rows, const int64_t* row_strides);

struct ElementwiseKernel {
  const char* name;
  int inputs;
  int outputs;
  int scalars;
  double cost_ns;          // of one float32 element, in cache, on one AVX2 core; decides when threads help
  unsigned mask_inputs;    // bit i: input i is bool (one byte, 0 or not), else the computing dtype
  bool mask_output;        // the (only) output is bool
  bool is_part;            // of what Python knows as a kernel: chosen by a binding
  BlockFunction float32;
  BlockFunction float64;
  // nullptr where blocks are better converted as a whole. An element that stands for all is given as a float.
  BlockFunction float16;
  BlockFunction bfloat16;
};

// nullptr if there is none of that name.
const ElementwiseKernel* find_elementwise(const char* name);

// Some kernels have a simpler one for a number as their last input, which it then does without; else `kernel` itself.
const ElementwiseKernel& with_last_number(const ElementwiseKernel& kernel, double number);

// All kernels of the active instruction set, in the order of formulas.inc.
struct ElementwiseTable {
  const ElementwiseKernel* kernels;
  int count;
  void (*widen_float16)(const void* from, float* to, int64_t n);
  void (*widen_bfloat16)(const void* from, float* to, int64_t n);
  void (*narrow_float16)(const float* from, void* to, int64_t n);
  void (*narrow_bfloat16)(const float* from, void* to, int64_t n);
};
EXTENSOR_PER_ISA(const ElementwiseTable& elementwise_table())

// True for the dtypes the kernels compute: float16, bfloat16, float32, float64.
constexpr bool elementwise_covers(DType dtype) {
  return dtype == DType::float16 || dtype == DType::bfloat16 || dtype == DType::float32 || dtype == DType::float64;
}

// Contiguous run: in[i] points to n elements, or to 1 element if is_scalar[i]. A scalar whose bit is set in
// `wide` is given in the computing type: float for float16 and bfloat16.
void run_elementwise_contiguous(const ElementwiseKernel& kernel, DType dtype, int64_t n, const void* const* in,
                                const bool* is_scalar, void* const* out, const double* scalars, unsigned wide = 0);

// Any layout: strides are in bytes, 0 along a broadcast axis. Outputs are C-contiguous of shape `shape`.
void run_elementwise_strided(const ElementwiseKernel& kernel, DType dtype, int ndim, const int64_t* shape,
                             const void* const* in, const int64_t* const* in_strides, void* const* out,
                             const double* scalars, unsigned wide = 0);

}  // namespace extensor
