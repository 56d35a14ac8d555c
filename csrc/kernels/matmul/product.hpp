// One matrix product: C[m, n] = A[m, k] @ B[k, n] with any strides on A and B, and what is fused to it.
#pragma once

#include <cstdint>

namespace extensor {

enum class Activation { none, relu, gelu, gelu_tanh };

// All strides count elements. A transposed operand is one whose strides are swapped.
template <class T>
struct Product {
  int64_t m, n, k;
  const T* a;
  int64_t a_row, a_col;
  const T* b;
  int64_t b_row, b_col;
  T* c;  // rows are dense, one every c_row elements
  int64_t c_row;
  bool accumulate = false;           // C += A @ B
  const T* column_bias = nullptr;    // n values, added to every row
  const T* row_bias = nullptr;       // m values, added to every column
  Activation activation = Activation::none;
  const T* added = nullptr;     // rows like those of C, one every c_row elements: added last
  const T* packed_b = nullptr;  // B once more, in the order of the register tile (PackedMatrix)
};

// `count` products of the same size whose operands lie a fixed distance apart; 0 repeats an operand.
template <class T>
struct Batch {
  int64_t count = 1;
  int64_t a = 0, b = 0, c = 0;
};

// Rough time of one product, for the decision to share it between threads or to let go of a lock.
template <class T>
inline double product_ns(int64_t m, int64_t n, int64_t k) {
  return 20.0 + double(m) * double(n) * double(k) * sizeof(T) / 180.0;
}

}  // namespace extensor
