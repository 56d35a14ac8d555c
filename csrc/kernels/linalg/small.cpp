// Small matrices: see small.hpp.
#include "kernels/linalg/small.hpp"

#include "kernels/linalg/each_matrix.hpp"

namespace extensor {
namespace {

constexpr int64_t most = small_matrix;
using Square = SmallSquare<most>;

// y := the solution of L U y = y, y a column already in the order of the rows.
void substitute(const Square& m, int64_t n, double* y) {
  for (int64_t i = 1; i < n; ++i)
    for (int64_t j = 0; j < i; ++j) y[i] -= m.at[i * n + j] * y[j];
  for (int64_t i = n - 1; i >= 0; --i) {
    for (int64_t j = i + 1; j < n; ++j) y[i] -= m.at[i * n + j] * y[j];
    y[i] /= m.at[i * n + i];  // NOLINT(clang-analyzer-core.uninitialized.Assign)
  }
}

// out := the solution of a y = b for k columns, whose elements side(row, column) gives.
template <class T, class Side>
bool solve_one(const T* a, T* out, int64_t n, int64_t k, Side&& side) {
  Square m;
  int64_t order[most];
  double y[most];
  if (!read_matrix(a, m, n) || factor(m, n, order) == 0) return false;
  for (int64_t c = 0; c < k; ++c) {
    for (int64_t i = 0; i < n; ++i) y[i] = side(order[i], c);
    substitute(m, n, y);
    for (int64_t i = 0; i < n; ++i) out[i * k + c] = T(y[i]);
  }
  return true;
}

template <class T>
bool determinant_of(const T* x, T* out, int64_t n) {
  Square m;
  int64_t order[most];
  if (!read_matrix(x, m, n)) return false;
  double product = factor(m, n, order);
  if (product != 0)
    for (int64_t i = 0; i < n; ++i) product *= m.at[i * n + i];
  *out = T(product);
  return true;
}

template <class T>
bool solve_triangle(const T* a, const T* b, T* out, int64_t n, int64_t k, bool upper, bool unit_diagonal) {
  double y[most];
  for (int64_t c = 0; c < k; ++c) {
    for (int64_t step = 0; step < n; ++step) {
      const int64_t i = upper ? n - 1 - step : step;
      double left = double(b[i * k + c]);
      for (int64_t j = upper ? i + 1 : 0; j < (upper ? n : i); ++j) left -= double(a[i * n + j]) * y[j];
      const double pivot = unit_diagonal ? 1.0 : double(a[i * n + i]);
      if (pivot == 0) return false;
      y[i] = left / pivot;
      out[i * k + c] = T(y[i]);
    }
  }
  return true;
}

template <class T>
bool cholesky_of(const T* x, T* out, int64_t n, bool upper) {
  double l[most * most];
  for (int64_t i = 0; i < n; ++i) {
    for (int64_t j = 0; j <= i; ++j) {
      double sum = 0.5 * double(x[i * n + j]) + 0.5 * double(x[j * n + i]);
      for (int64_t c = 0; c < j; ++c) sum -= l[i * n + c] * l[j * n + c];
      if (i == j) {
        if (!(sum > 0) || !std::isfinite(sum)) return false;
        l[i * n + i] = std::sqrt(sum);
      } else {
        l[i * n + j] = sum / l[j * n + j];
      }
    }
  }
  for (int64_t i = 0; i < n; ++i)
    for (int64_t j = 0; j < n; ++j) {
      const int64_t row = upper ? j : i, column = upper ? i : j;
      out[i * n + j] = column <= row ? T(l[row * n + column]) : T(0);
    }
  return true;
}

}  // namespace

bool small_inverse(DType dtype, const void* x, void* out, int64_t count, int64_t n) {
  return typed(dtype, [&](auto zero) {
    using T = decltype(zero);
    return for_each(count, 3 * cubic(n), [&](int64_t i) {
      return solve_one(static_cast<const T*>(x) + i * n * n, static_cast<T*>(out) + i * n * n, n, n,
                       [](int64_t row, int64_t column) { return row == column ? 1.0 : 0.0; });
    });
  });
}

bool small_determinant(DType dtype, const void* x, void* out, int64_t count, int64_t n) {
  return typed(dtype, [&](auto zero) {
    using T = decltype(zero);
    return for_each(count, cubic(n), [&](int64_t i) { return determinant_of(static_cast<const T*>(x) + i * n * n, static_cast<T*>(out) + i, n); });
  });
}

bool small_solve(DType dtype, const void* a, const void* b, void* out, int64_t count, int64_t n, int64_t k) {
  return typed(dtype, [&](auto zero) {
    using T = decltype(zero);
    return for_each(count, cubic(n) + double(n * n * k), [&](int64_t i) {
      const T* sides = static_cast<const T*>(b) + i * n * k;
      return solve_one(static_cast<const T*>(a) + i * n * n, static_cast<T*>(out) + i * n * k, n, k,
                       [&](int64_t row, int64_t column) { return double(sides[row * k + column]); });
    });
  });
}

bool small_triangular_solve(DType dtype, const void* a, const void* b, void* out, int64_t count, int64_t n, int64_t k, bool upper,
                            bool unit_diagonal) {
  return typed(dtype, [&](auto zero) {
    using T = decltype(zero);
    return for_each(count, 20 + double(n * n * k), [&](int64_t i) {
      return solve_triangle(static_cast<const T*>(a) + i * n * n, static_cast<const T*>(b) + i * n * k, static_cast<T*>(out) + i * n * k, n, k,
                            upper, unit_diagonal);
    });
  });
}

bool small_cholesky(DType dtype, const void* x, void* out, int64_t count, int64_t n, bool upper) {
  return typed(dtype, [&](auto zero) {
    using T = decltype(zero);
    return for_each(count, cubic(n), [&](int64_t i) {
      return cholesky_of(static_cast<const T*>(x) + i * n * n, static_cast<T*>(out) + i * n * n, n, upper);
    });
  });
}

}  // namespace extensor
