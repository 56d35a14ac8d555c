// What the kernels of small matrices share: a matrix in double, its LU factors, and the loop over a batch.
#pragma once

#include <atomic>
#include <cmath>
#include <cstdint>
#include <utility>

#include "core/dtype.hpp"
#include "core/threads.hpp"

namespace extensor {

// A matrix in double, rows one after the other.
template <int64_t most>
struct SmallSquare {
  double at[most * most];
};

template <class T>
bool read_elements(const T* x, double* to, int64_t count) {
  bool finite = true;
  for (int64_t i = 0; i < count; ++i) {
    to[i] = double(x[i]);
    finite &= std::isfinite(to[i]);
  }
  return finite;
}

template <class T, int64_t most>
bool read_matrix(const T* x, SmallSquare<most>& m, int64_t n) {
  return read_elements(x, m.at, n * n);
}

// LU with partial pivoting in place: rows are exchanged, `order` says which. Returns the sign of the permutation, 0 if a pivot is 0.
// clang-tidy does not see that n * n elements were read if n is not 0.
template <int64_t most>
int factor(SmallSquare<most>& m, int64_t n, int64_t* order) {
  int sign = 1;
  for (int64_t i = 0; i < n; ++i) order[i] = i;
  for (int64_t k = 0; k < n; ++k) {
    int64_t best = k;
    for (int64_t i = k + 1; i < n; ++i)
      if (std::fabs(m.at[i * n + k]) > std::fabs(m.at[best * n + k])) best = i;
    if (m.at[best * n + k] == 0) return 0;  // NOLINT(clang-analyzer-core.UndefinedBinaryOperatorResult)
    if (best != k) {
      for (int64_t j = 0; j < n; ++j) std::swap(m.at[k * n + j], m.at[best * n + j]);
      std::swap(order[k], order[best]);
      sign = -sign;
    }
    const double pivot = m.at[k * n + k];
    for (int64_t i = k + 1; i < n; ++i) {
      const double factor = m.at[i * n + k] / pivot;
      m.at[i * n + k] = factor;
      for (int64_t j = k + 1; j < n; ++j) m.at[i * n + j] -= factor * m.at[k * n + j];
    }
  }
  return sign;
}

// body(i) for each of `count` matrices; false as soon as one cannot be handled.
template <class Body>
bool for_each(int64_t count, double cost_ns, Body&& body) {
  std::atomic<bool> fine{true};
  parallel_for(count, cost_ns, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end && fine.load(std::memory_order_relaxed); ++i)
      if (!body(i)) fine.store(false, std::memory_order_relaxed);
  });
  return fine.load();
}

inline double cubic(int64_t n) { return 20 + 0.7 * double(n) * double(n) * double(n); }

template <class Body>
bool typed(DType dtype, Body&& body) {
  return dtype == DType::float32 ? body(float()) : body(double());
}

}  // namespace extensor
