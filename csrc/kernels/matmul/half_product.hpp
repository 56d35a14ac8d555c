// The product of half precision in the way that suits its shape, for any engine.
// Included only by sources that are compiled once per instruction set.
#pragma once

#include "kernels/matmul/half_blocks.hpp"
#include "kernels/matmul/half_dot.hpp"

namespace extensor::EXTENSOR_ISA {

template <class Engine>
void multiply_half(const HalfProduct& x) {
  if (x.m == 0 || x.n == 0) return;
  if (x.n == 1 && x.m > 1 && x.c_row == 1) {  // a column is a row seen from the other side
    HalfProduct y = x;
    y.m = 1, y.n = x.m, y.a = x.b, y.a_row = 1, y.a_col = x.b_row, y.b = x.a, y.b_row = x.a_col, y.b_col = x.a_row, y.c_row = x.m;
    y.column_bias = x.row_bias, y.row_bias = x.column_bias;
    return multiply_half<Engine>(y);
  }
  if (multiply_half_dots<Engine>(x) || Engine::multiply_one_row(x) || multiply_half_slices<Engine>(x)) return;
  for_each_half_rectangle<Engine>(x, [&](int64_t i0, int64_t i1, int64_t j0, int64_t j1) {
    multiply_half_rectangle<Engine>(x, i0, i1, j0, j1);
  });
}

template <class Engine>
void multiply_half_batch(const HalfProduct& x, const HalfBatch& batch) {
  if (batch.count == 1) return multiply_half<Engine>(x);
  const int64_t c_size = x.wide_c ? 4 : 2;
  const auto run = [&](int64_t begin, int64_t end) {
    HalfProduct y = x;
    for (int64_t i = begin; i < end; ++i) {
      y.a = x.a + i * batch.a;
      y.b = x.b + i * batch.b;
      y.c = static_cast<char*>(x.c) + i * batch.c * c_size;
      multiply_half<Engine>(y);
    }
  };
  // Large members are shared one by one, small ones among each other.
  const double ns = Engine::ns(x.m, x.n, x.k);
  if (ns > 1e6) return run(0, batch.count);
  parallel_for(batch.count, ns, run);
}

}  // namespace extensor::EXTENSOR_ISA
