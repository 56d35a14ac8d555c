// What follows a product and is more than the register tile does on its way to C: gelu, and the sum with another matrix.
#pragma once

#include "kernels/elementwise/slopes.hpp"
#include "kernels/matmul/product.hpp"

namespace extensor::EXTENSOR_ISA {

template <class T>
bool needs_finish(const Product<T>& x) {
  return x.added != nullptr || x.activation == Activation::gelu || x.activation == Activation::gelu_tanh;
}

// What the register tile is told: relu, or nothing.
template <class T>
Activation activation_of_tile(const Product<T>& x) {
  return x.activation == Activation::relu ? Activation::relu : Activation::none;
}

template <class T, class Function>
EXTENSOR_INLINE void map_rows(const Product<T>& x, int64_t i0, int64_t i1, int64_t j0, int64_t columns, const Function& f) {
  constexpr int lanes = Vec<T>::lanes;
  for (int64_t i = i0; i < i1; ++i) {
    T* const c = x.c + i * x.c_row + j0;
    const T* const added = x.added == nullptr ? nullptr : x.added + i * x.c_row + j0;
    int64_t j = 0;
    for (; j + lanes <= columns; j += lanes) {
      const Vec<T> value = f(load(c + j));
      store(c + j, added == nullptr ? value : value + load(added + j));
    }
    if (j < columns) {
      const int rest = int(columns - j);
      const Vec<T> value = f(load_first(c + j, rest));
      store_first(c + j, added == nullptr ? value : value + load_first(added + j, rest), rest);
    }
  }
}

// C[i0:i1, j0:j0 + columns], whose sums and biases are there.
template <class T>
void finish(const Product<T>& x, int64_t i0, int64_t i1, int64_t j0, int64_t columns) {
  switch (x.activation) {
    case Activation::gelu: return map_rows(x, i0, i1, j0, columns, [](Vec<T> v) EXTENSOR_INLINE_LAMBDA { return gelu(v); });
    case Activation::gelu_tanh: return map_rows(x, i0, i1, j0, columns, [](Vec<T> v) EXTENSOR_INLINE_LAMBDA { return gelu_tanh(v); });
    default: return map_rows(x, i0, i1, j0, columns, [](Vec<T> v) EXTENSOR_INLINE_LAMBDA { return v; });
  }
}

}  // namespace extensor::EXTENSOR_ISA
