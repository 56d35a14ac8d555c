// Pooling, plane by plane. A window that hangs over the edge is cut to the plane first. Compiled once per instruction set.
#include "kernels/pooling/pooling.hpp"

#include <cstring>

#include "core/memory.hpp"
#include "core/simd.hpp"
#include "core/threads.hpp"

namespace extensor::EXTENSOR_ISA {
namespace {

struct Span {
  int64_t begin, end;
};

// The part of window i that lies on the plane.
inline Span span(const PoolShape& s, int d, int64_t i) {
  const int64_t start = i * s.stride[d] - s.padding[d], end = start + s.size[d];
  return {start < 0 ? 0 : start, end > s.x[d] ? s.x[d] : end};
}

// Whether the windows are 2 x 2, side by side, and all of them whole: the pooling of most networks.
inline bool is_in_pairs(const PoolShape& s) {
  for (int d = 0; d < 2; ++d)
    if (s.size[d] != 2 || s.stride[d] != 2 || s.padding[d] != 0 || 2 * s.y[d] > s.x[d]) return false;
  return true;
}

template <class Body>
void for_planes(const PoolShape& s, const Body& body) {
  parallel_for(s.planes, pool_ns(s) / double(s.planes), body);
}

template <class T>
EXTENSOR_INLINE bool wins(T value, T best) {
  return value > best || value != value;
}

// The first of the largest elements, or the last nan.
template <class T>
EXTENSOR_INLINE int64_t place_of_max(const T* x, int64_t width, Span rows, Span columns) {
  int64_t place = rows.begin * width + columns.begin;
  T best = x[place];
  for (int64_t r = rows.begin; r < rows.end; ++r) {
    for (int64_t c = columns.begin; c < columns.end; ++c) {
      const T value = x[r * width + c];
      if (wins(value, best)) best = value, place = r * width + c;
    }
  }
  return place;
}

// One choice at a time, so that the compiler makes vectors of it.
template <class T>
EXTENSOR_INLINE T larger(T a, T b) {
  const T number = b > a ? b : a, first = a != a ? a : number;
  return b != b ? b : first;
}

template <class T>
void max_pairs(const PoolShape& s, const T* x, T* __restrict y) {
  for (int64_t i = 0; i < s.y[0]; ++i, x += 2 * s.x[1], y += s.y[1]) {
    const T* below = x + s.x[1];
    for (int64_t j = 0; j < s.y[1]; ++j)
      y[j] = larger(larger(x[2 * j], x[2 * j + 1]), larger(below[2 * j], below[2 * j + 1]));
  }
}

template <class T>
void max_plane(const PoolShape& s, const T* x, T* y) {
  for (int64_t i = 0; i < s.y[0]; ++i) {
    const Span rows = span(s, 0, i);
    for (int64_t j = 0; j < s.y[1]; ++j) *y++ = x[place_of_max(x, s.x[1], rows, span(s, 1, j))];
  }
}

// `count` windows side by side. Every element of a window is written at once: the gradient to the first that equals the
// maximum, zeros to the others, or nan to all if none does. What is left for the next element: the gradient, or that.
template <class T>
EXTENSOR_INLINE void max_backward_run(int64_t count, const T* g, const T* x, const T* below, T* __restrict grad,
                                      T* __restrict grad_below) {
  for (int64_t j = 0; j < count; ++j) {
    const T a = x[2 * j], b = x[2 * j + 1], c = below[2 * j], d = below[2 * j + 1];
    const T m = larger(larger(a, b), larger(c, d)), other = m == m ? T(0) : m;
    const T after_a = a == m ? other : g[j], after_b = b == m ? other : after_a, after_c = c == m ? other : after_b;
    grad[2 * j] = a == m ? g[j] : other;
    grad[2 * j + 1] = b == m ? after_a : other;
    grad_below[2 * j] = c == m ? after_b : other;
    grad_below[2 * j + 1] = d == m ? after_c : other;
  }
}

template <class T>
void max_backward_pairs(const PoolShape& s, const T* g, const T* x, T* grad) {
  constexpr int64_t step = 8;  // windows; fewer than that at the end of a row go through copies of this length
  const int64_t width = s.x[1], whole = s.y[1] / step * step, rest = s.y[1] - whole;
  for (int64_t i = 0; i < s.y[0]; ++i, g += s.y[1], x += 2 * width, grad += 2 * width) {
    max_backward_run(whole, g, x, x + width, grad, grad + width);
    if (rest > 0) {
      T padded_g[step] = {}, padded_x[2][2 * step] = {}, padded_grad[2][2 * step];
      const size_t bytes = size_t(rest) * sizeof(T);
      std::memcpy(padded_g, g + whole, bytes);
      for (int row = 0; row < 2; ++row) std::memcpy(padded_x[row], x + row * width + 2 * whole, 2 * bytes);
      max_backward_run(step, padded_g, padded_x[0], padded_x[1], padded_grad[0], padded_grad[1]);
      for (int row = 0; row < 2; ++row) std::memcpy(grad + row * width + 2 * whole, padded_grad[row], 2 * bytes);
    }
    for (int64_t c = 2 * s.y[1]; c < width; ++c) grad[c] = grad[c + width] = T(0);
  }
  for (int64_t c = 0; c < (s.x[0] - 2 * s.y[0]) * width; ++c) grad[c] = T(0);
}

template <class T>
void max_backward_plane(const PoolShape& s, const T* g, const T* x, T* grad) {
  const int64_t width = s.x[1];
  for (int64_t i = 0; i < s.x[0] * width; ++i) grad[i] = T(0);
  for (int64_t i = 0; i < s.y[0]; ++i) {
    const Span rows = span(s, 0, i);
    for (int64_t j = 0; j < s.y[1]; ++j, ++g) {
      const Span columns = span(s, 1, j);
      const int64_t place = place_of_max(x, width, rows, columns);
      if (x[place] == x[place]) {
        grad[place] += *g;
        continue;
      }
      for (int64_t r = rows.begin; r < rows.end; ++r)
        for (int64_t c = columns.begin; c < columns.end; ++c) grad[r * width + c] = x[place];
    }
  }
}

template <class T>
void mean_plane(const PoolShape& s, const double* divisors, const T* x, T* y) {
  for (int64_t i = 0; i < s.y[0]; ++i) {
    const Span rows = span(s, 0, i);
    for (int64_t j = 0; j < s.y[1]; ++j) {
      const Span columns = span(s, 1, j);
      double sum = 0;
      for (int64_t r = rows.begin; r < rows.end; ++r)
        for (int64_t c = columns.begin; c < columns.end; ++c) sum += double(x[r * s.x[1] + c]);
      *y++ = T(sum / *divisors++);
    }
  }
}

// Sums of shares in float64, one row of the plane at a time: row r gets from every window that covers it.
template <class T>
void mean_backward_plane(const PoolShape& s, const double* divisors, const T* g, T* grad, double* line) {
  for (int64_t r = 0; r < s.x[0]; ++r, grad += s.x[1]) {
    for (int64_t c = 0; c < s.x[1]; ++c) line[c] = 0;
    const int64_t before = r + s.padding[0] - s.size[0] + 1;
    const int64_t first = before <= 0 ? 0 : (before + s.stride[0] - 1) / s.stride[0];
    for (int64_t i = first; i < s.y[0] && i * s.stride[0] - s.padding[0] <= r; ++i) {
      for (int64_t j = 0; j < s.y[1]; ++j) {
        const Span columns = span(s, 1, j);
        const double share = double(g[i * s.y[1] + j]) / divisors[i * s.y[1] + j];
        for (int64_t c = columns.begin; c < columns.end; ++c) line[c] += share;
      }
    }
    for (int64_t c = 0; c < s.x[1]; ++c) grad[c] = T(line[c]);
  }
}

template <class T>
void max_pool(const PoolShape& s, const T* x, T* y) {
  const auto of_plane = is_in_pairs(s) ? max_pairs<T> : max_plane<T>;
  const int64_t from = s.x[0] * s.x[1], to = s.y[0] * s.y[1];
  for_planes(s, [&](int64_t begin, int64_t end) {
    for (int64_t p = begin; p < end; ++p) of_plane(s, x + p * from, y + p * to);
  });
}

template <class T>
void max_pool_backward(const PoolShape& s, const T* g, const T* x, T* grad) {
  const auto of_plane = is_in_pairs(s) ? max_backward_pairs<T> : max_backward_plane<T>;
  const int64_t from = s.y[0] * s.y[1], to = s.x[0] * s.x[1];
  for_planes(s, [&](int64_t begin, int64_t end) {
    for (int64_t p = begin; p < end; ++p) of_plane(s, g + p * from, x + p * to, grad + p * to);
  });
}

template <class T>
void mean_pool(const PoolShape& s, const double* divisors, const T* x, T* y) {
  const int64_t from = s.x[0] * s.x[1], to = s.y[0] * s.y[1];
  for_planes(s, [&](int64_t begin, int64_t end) {
    for (int64_t p = begin; p < end; ++p) mean_plane(s, divisors, x + p * from, y + p * to);
  });
}

template <class T>
void mean_pool_backward(const PoolShape& s, const double* divisors, const T* g, T* grad) {
  const int64_t from = s.y[0] * s.y[1], to = s.x[0] * s.x[1];
  const size_t bytes = size_t(s.x[1]) * sizeof(double);
  for_planes(s, [&](int64_t begin, int64_t end) {
    double* line = static_cast<double*>(acquire_buffer(bytes));
    for (int64_t p = begin; p < end; ++p) mean_backward_plane(s, divisors, g + p * from, grad + p * to, line);
    recycle_buffer(line, bytes);
  });
}

}  // namespace

const PoolTable& pool_table() {
  static constexpr PoolTable table = {
      max_pool<float>, max_pool<double>, max_pool_backward<float>, max_pool_backward<double>,
      mean_pool<float>, mean_pool<double>, mean_pool_backward<float>, mean_pool_backward<double>,
  };
  return table;
}

}  // namespace extensor::EXTENSOR_ISA
