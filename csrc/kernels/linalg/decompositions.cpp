// Small decompositions: see decompositions.hpp.
#include "kernels/linalg/decompositions.hpp"

#include <algorithm>
#include <limits>

#include "kernels/linalg/each_matrix.hpp"

namespace extensor {
namespace {

constexpr double epsilon = std::numeric_limits<double>::epsilon();
constexpr int most_sweeps = 40;

struct Rotation {
  double c, s;
};

// That makes an off-diagonal element 0, where `gap` is the difference of the diagonal ones and `twice` twice the element.
Rotation rotation(double gap, double twice) {
  const double slope = gap / twice;
  const double t = (slope < 0 ? -1.0 : 1.0) / (std::fabs(slope) + std::sqrt(1.0 + slope * slope));
  const double c = 1.0 / std::sqrt(1.0 + t * t);
  return {c, t * c};
}

void rotate(double* a, double* b, int64_t n, Rotation r) {
  for (int64_t i = 0; i < n; ++i) {
    const double x = a[i], y = b[i];
    a[i] = r.c * x - r.s * y;
    b[i] = r.s * x + r.c * y;
  }
}

// The cyclic method of Jacobi: a := diagonal. Elements up to `nothing` may stay. False if it does not end.
bool diagonalise(double* a, int64_t n, double nothing) {
  for (int sweep = 0; sweep < most_sweeps; ++sweep) {
    bool changed = false;
    for (int64_t p = 0; p < n; ++p) {
      for (int64_t q = p + 1; q < n; ++q) {
        const double off = a[p * n + q], size = std::fabs(off);
        // so small that it changes neither of the two
        if (size <= epsilon * 0.25 * std::min(std::fabs(a[p * n + p]), std::fabs(a[q * n + q])) || size <= nothing) continue;
        changed = true;
        const Rotation r = rotation(a[q * n + q] - a[p * n + p], 2 * off);
        rotate(a + p * n, a + q * n, n, r);
        for (int64_t i = 0; i < n; ++i) {
          const double x = a[i * n + p], y = a[i * n + q];
          a[i * n + p] = r.c * x - r.s * y;
          a[i * n + q] = r.s * x + r.c * y;
        }
        a[p * n + q] = a[q * n + p] = 0;
      }
    }
    if (!changed) return true;
  }
  return false;
}

// By insertion: for so few it is the fastest way, and the compiler sees that it stays within them.
void sort_few(double* values, int64_t n) {
  for (int64_t i = 1; i < n; ++i) {
    const double value = values[i];
    int64_t j = i;
    for (; j > 0 && values[j - 1] > value; --j) values[j] = values[j - 1];
    values[j] = value;
  }
}

template <class T>
bool eigvalsh_of(const T* x, T* values, int64_t n) {
  double a[small_spectrum * small_spectrum], half[small_spectrum * small_spectrum];
  if (!read_elements(x, half, n * n)) return false;
  double largest = 0;
  for (int64_t i = 0; i < n; ++i) {
    for (int64_t j = 0; j < n; ++j) {
      a[i * n + j] = 0.5 * half[i * n + j] + 0.5 * half[j * n + i];
      largest = std::max(largest, std::fabs(a[i * n + j]));
    }
  }
  if (!diagonalise(a, n, largest * 1e-20)) return false;
  double found[small_spectrum];
  for (int64_t i = 0; i < n; ++i) found[i] = a[i * n + i];
  sort_few(found, n);
  for (int64_t j = 0; j < n; ++j) values[j] = T(found[j]);
  return true;
}

double dot(const double* a, const double* b, int64_t n) {
  double sum = 0;
  for (int64_t i = 0; i < n; ++i) sum += a[i] * b[i];
  return sum;
}

// One-sided Jacobi: the n rows of g, of length m >= n, are rotated until they are orthogonal to each other. Rows that are nothing
// beside the others become 0. False if it does not end.
bool orthogonalise(double* g, int64_t m, int64_t n) {
  const double nothing = dot(g, g, m * n) * 1e-40, right = epsilon * double(m > 4 ? m : 4);
  for (int sweep = 0; sweep < most_sweeps; ++sweep) {
    bool changed = false;
    for (int64_t p = 0; p < n; ++p) {
      for (int64_t q = p + 1; q < n; ++q) {
        double *a = g + p * m, *b = g + q * m;
        const double aa = dot(a, a, m), bb = dot(b, b, m), ab = dot(a, b, m);
        if (aa <= nothing) std::fill(a, a + m, 0.0);
        if (bb <= nothing) std::fill(b, b + m, 0.0);
        if (aa <= nothing || bb <= nothing || std::fabs(ab) <= right * std::sqrt(aa) * std::sqrt(bb)) continue;
        changed = true;
        const Rotation r = rotation(bb - aa, 2 * ab);
        rotate(a, b, m, r);
      }
    }
    if (!changed) return true;
  }
  return false;
}

// For m >= n; `turned` says that x has n rows of m.
template <class T>
bool svdvals_of(const T* x, T* values, int64_t m, int64_t n, bool turned) {
  if (m < 1 || n < 1) return true;
  double g[small_spectrum * small_factor];
  double largest = 0;
  for (int64_t j = 0; j < n; ++j) {
    for (int64_t i = 0; i < m; ++i) {
      const double value = double(turned ? x[j * m + i] : x[i * n + j]);
      if (!std::isfinite(value)) return false;
      g[j * m + i] = value;
      largest = std::max(largest, std::fabs(value));
    }
  }
  if (largest > 1e100 || (largest != 0 && largest < 1e-100)) return false;  // squares would not be exact
  if (!orthogonalise(g, m, n)) return false;
  double sizes[small_spectrum];
  for (int64_t j = 0; j < n; ++j) sizes[j] = std::sqrt(dot(g + j * m, g + j * m, m));
  sort_few(sizes, n);
  for (int64_t j = 0; j < n; ++j) values[j] = T(sizes[n - 1 - j]);
  return true;
}

// Householder's reflections, as LAPACK's geqrf and orgqr make them: the diagonal of r is opposite to what was there, unless there is
// nothing below it.
template <class T>
bool qr_of(const T* x, T* q, T* r, int64_t m, int64_t n) {
  const int64_t k = m < n ? m : n;
  if (k < 1) return true;
  double a[small_factor * small_factor], wide[small_factor * small_factor], factors[small_factor];
  if (!read_elements(x, a, m * n)) return false;
  for (int64_t j = 0; j < k; ++j) {
    double below = 0;
    for (int64_t i = j + 1; i < m; ++i) below += a[i * n + j] * a[i * n + j];
    factors[j] = 0;
    if (below == 0) continue;
    const double top = a[j * n + j], length = std::sqrt(top * top + below), beta = std::signbit(top) ? length : -length;
    if (!std::isfinite(length) || length < 1e-140) return false;
    factors[j] = (beta - top) / beta;
    for (int64_t i = j + 1; i < m; ++i) a[i * n + j] /= top - beta;
    a[j * n + j] = beta;
    for (int64_t c = j + 1; c < n; ++c) {
      double sum = a[j * n + c];
      for (int64_t i = j + 1; i < m; ++i) sum += a[i * n + j] * a[i * n + c];
      sum *= factors[j];
      a[j * n + c] -= sum;
      for (int64_t i = j + 1; i < m; ++i) a[i * n + c] -= sum * a[i * n + j];
    }
  }
  for (int64_t i = 0; i < k; ++i)
    for (int64_t j = 0; j < n; ++j) r[i * n + j] = j >= i ? T(a[i * n + j]) : T(0);
  for (int64_t i = 0; i < m; ++i)
    for (int64_t j = 0; j < k; ++j) wide[i * k + j] = i == j;
  for (int64_t j = k - 1; j >= 0; --j) {
    if (factors[j] == 0) continue;
    for (int64_t c = j; c < k; ++c) {
      double sum = wide[j * k + c];
      for (int64_t i = j + 1; i < m; ++i) sum += a[i * n + j] * wide[i * k + c];
      sum *= factors[j];
      wide[j * k + c] -= sum;
      for (int64_t i = j + 1; i < m; ++i) wide[i * k + c] -= sum * a[i * n + j];
    }
  }
  for (int64_t i = 0; i < m * k; ++i) q[i] = T(wide[i]);
  return true;
}

template <class T>
bool slogdet_of(const T* x, T* sign, T* logarithm, int64_t n) {
  SmallSquare<small_factor> m;
  int64_t order[small_factor];
  if (!read_matrix(x, m, n)) return false;
  double turned = factor(m, n, order), sum = 0;
  for (int64_t i = 0; i < n && turned != 0; ++i) {
    const double pivot = m.at[i * n + i];
    if (pivot < 0) turned = -turned;
    sum += std::log(std::fabs(pivot));
  }
  *sign = T(turned);
  *logarithm = turned == 0 ? -std::numeric_limits<T>::infinity() : T(sum);
  return true;
}

}  // namespace

bool small_eigvalsh(DType dtype, const void* x, void* values, int64_t count, int64_t n) {
  return typed(dtype, [&](auto zero) {
    using T = decltype(zero);
    return for_each(count, 20 * cubic(n), [&](int64_t i) {
      return eigvalsh_of(static_cast<const T*>(x) + i * n * n, static_cast<T*>(values) + i * n, n);
    });
  });
}

bool small_svdvals(DType dtype, const void* x, void* values, int64_t count, int64_t m, int64_t n) {
  const int64_t k = m < n ? m : n;
  return typed(dtype, [&](auto zero) {
    using T = decltype(zero);
    return for_each(count, 20 * cubic(k), [&](int64_t i) {
      const T* matrix = static_cast<const T*>(x) + i * m * n;
      T* found = static_cast<T*>(values) + i * k;
      return m >= n ? svdvals_of(matrix, found, m, n, false) : svdvals_of(matrix, found, n, m, true);
    });
  });
}

bool small_qr(DType dtype, const void* x, void* q, void* r, int64_t count, int64_t m, int64_t n) {
  const int64_t k = m < n ? m : n;
  return typed(dtype, [&](auto zero) {
    using T = decltype(zero);
    return for_each(count, 3 * cubic(m > n ? m : n), [&](int64_t i) {
      return qr_of(static_cast<const T*>(x) + i * m * n, static_cast<T*>(q) + i * m * k, static_cast<T*>(r) + i * k * n, m, n);
    });
  });
}

bool small_slogdet(DType dtype, const void* x, void* sign, void* logarithm, int64_t count, int64_t n) {
  return typed(dtype, [&](auto zero) {
    using T = decltype(zero);
    return for_each(count, cubic(n), [&](int64_t i) {
      return slogdet_of(static_cast<const T*>(x) + i * n * n, static_cast<T*>(sign) + i, static_cast<T*>(logarithm) + i, n);
    });
  });
}

}  // namespace extensor
