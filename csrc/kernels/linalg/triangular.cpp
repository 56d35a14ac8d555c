// See triangular.hpp. Compiled once per instruction set; the order of sums is that of the lanes below in all of them.
#include "kernels/linalg/triangular.hpp"

#include <atomic>

#include "core/threads.hpp"
#include "core/workspace.hpp"

namespace extensor::EXTENSOR_ISA {
namespace {

constexpr int lanes = 16;

template <class T>
double product(const T* a, const double* y, int64_t n) {
  double sums[lanes] = {};
  int64_t i = 0;
  for (; i + lanes <= n; i += lanes)
    for (int k = 0; k < lanes; ++k) sums[k] += double(a[i + k]) * y[i + k];
  for (int k = 0; i < n; ++i, ++k) sums[k] += double(a[i]) * y[i];
  for (int half = lanes / 2; half > 0; half /= 2)
    for (int k = 0; k < half; ++k) sums[k] += sums[k + half];
  return sums[0];
}

template <class T>
bool solve_one(const T* a, const T* b, T* out, double* y, int64_t n, int64_t k, bool upper, bool unit_diagonal) {
  for (int64_t step = 0; step < n; ++step) {
    const int64_t i = upper ? n - 1 - step : step, from = upper ? i + 1 : 0;
    const double pivot = unit_diagonal ? 1.0 : double(a[i * n + i]);
    if (pivot == 0) return false;
    for (int64_t c = 0; c < k; ++c) {
      double* column = y + c * n;
      column[i] = (double(b[i * k + c]) - product(a + i * n + from, column + from, step)) / pivot;
      out[i * k + c] = T(column[i]);
    }
  }
  return true;
}

template <class T>
bool solve(const T* a, const T* b, T* out, int64_t count, int64_t n, int64_t k, bool upper, bool unit_diagonal) {
  std::atomic<bool> fine{true};
  parallel_for(count, 20 + double(n * n * k) * 0.15, [&](int64_t begin, int64_t end) {
    Workspace<double> y(n * k);
    for (int64_t i = begin; i < end; ++i)
      if (!solve_one(a + i * n * n, b + i * n * k, out + i * n * k, y.data(), n, k, upper, unit_diagonal))
        fine.store(false, std::memory_order_relaxed);
  });
  return fine.load();
}

}  // namespace

const TriangularTable& triangular_table() {
  static constexpr TriangularTable table = {solve<float>, solve<double>};
  return table;
}

}  // namespace extensor::EXTENSOR_ISA
