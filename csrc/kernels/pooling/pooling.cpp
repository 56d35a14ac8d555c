// Pooling, plane by plane. A window that hangs over the edge is cut to the plane first. Compiled once per instruction set.
#include "kernels/pooling/pooling.hpp"

#include "core/partial.hpp"
#include "core/threads.hpp"
#include "core/workspace.hpp"

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

// Rough time of a plane of windows in pairs, forward; back it takes twice that.
inline double pairs_ns(const PoolShape& s) { return 15 + double(s.x[0] * s.x[1]) * 0.07; }
inline double windows_ns(const PoolShape& s) { return pool_ns(s) / double(s.planes); }

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

template <class T>
EXTENSOR_INLINE Vec<T> larger(Vec<T> a, Vec<T> b) {
  return select(isnan(b), b, at_least(b, a));
}

// The elements of up to one vector of windows side by side, each of the four places in a vector of its own.
template <class T>
struct Pairs {
  Vec<T> a, b, c, d;

  EXTENSOR_INLINE Pairs(const T* x, const T* below, int64_t count) {
    split(x, count, a, b);
    split(below, count, c, d);
  }
  EXTENSOR_INLINE Vec<T> max() const { return larger(larger(a, b), larger(c, d)); }
  // In float64, as mean_plane adds: down the columns first.
  EXTENSOR_INLINE Vec<T> mean() const {
    if constexpr (sizeof(T) == sizeof(double)) return mean_of(a, b, c, d);
    else return narrow(mean_of(widen_low(a), widen_low(b), widen_low(c), widen_low(d)),
                       mean_of(widen_high(a), widen_high(b), widen_high(c), widen_high(d)));
  }

 private:
  EXTENSOR_INLINE static Vec<double> mean_of(Vec<double> a, Vec<double> b, Vec<double> c, Vec<double> d) {
    return ((0.0 + a + c) + (b + d)) * 0.25;
  }
  EXTENSOR_INLINE static void split(const T* x, int64_t count, Vec<T>& even, Vec<T>& odd) {
    constexpr int lanes = Vec<T>::lanes;
    if (count == lanes) return split_pairs(load(x), load(x + lanes), even, odd);
    const int64_t beyond = 2 * count - lanes;
    split_pairs(load_first(x, 2 * count), beyond > 0 ? load_first(x + lanes, beyond) : Vec<T>(0.0), even, odd);
  }
};

// `count` windows from two vectors, one of their even and one of their odd columns.
template <class T>
EXTENSOR_INLINE void store_joined(T* to, Vec<T> even, Vec<T> odd, int64_t count) {
  constexpr int lanes = Vec<T>::lanes;
  Vec<T> first, second;
  join_pairs(even, odd, first, second);
  store_first(to, first, 2 * count);
  if (2 * count > lanes) store_first(to + lanes, second, 2 * count - lanes);
}

template <class T, class Of>
EXTENSOR_INLINE void of_pairs(const PoolShape& s, const T* x, T* y, const Of& of) {
  constexpr int lanes = Vec<T>::lanes;
  const int64_t width = s.x[1], whole = s.y[1] / lanes * lanes, rest = s.y[1] - whole;
  for (int64_t i = 0; i < s.y[0]; ++i, x += 2 * width, y += s.y[1]) {
    for (int64_t j = 0; j < whole; j += lanes) store(y + j, of(Pairs<T>(x + 2 * j, x + 2 * j + width, lanes)));
    if (rest > 0) store_first(y + whole, of(Pairs<T>(x + 2 * whole, x + 2 * whole + width, rest)), rest);
  }
}

template <class T>
void max_pairs(const PoolShape& s, const T* x, T* y) {
  of_pairs(s, x, y, [](const Pairs<T>& pairs) { return pairs.max(); });
}

template <class T>
void mean_pairs(const PoolShape& s, const T* x, T* y) {
  of_pairs(s, x, y, [](const Pairs<T>& pairs) { return pairs.mean(); });
}

// The windows of a row that have their column `offset` on the plane.
inline Span windows_with(const PoolShape& s, int64_t offset) {
  const int64_t stride = s.stride[1], before = s.padding[1] - offset, end = (s.x[1] - 1 + before) / stride + 1;
  return {before > 0 ? (before + stride - 1) / stride : 0, s.x[1] - 1 + before < 0 ? 0 : end < s.y[1] ? end : s.y[1]};
}

// A row of windows at once: each takes its first element, then the better one of every place in turn. Which element wins is
// that of place_of_max; without its place there is no branch, and the compiler takes several windows together.
template <class T>
void max_plane(const PoolShape& s, const T* x, T* y) {
  const int64_t width = s.x[1], stride = s.stride[1];
  for (int64_t i = 0; i < s.y[0]; ++i, y += s.y[1]) {
    const Span rows = span(s, 0, i);
    for (int64_t j = 0; j < s.y[1]; ++j) y[j] = x[rows.begin * width + span(s, 1, j).begin];
    for (int64_t r = rows.begin; r < rows.end; ++r) {
      for (int64_t c = 0; c < s.size[1]; ++c) {
        const Span windows = windows_with(s, c);
        const int64_t start = r * width + c - s.padding[1];
        for (int64_t j = windows.begin; j < windows.end; ++j) {
          const T value = x[start + j * stride], best = y[j];
          y[j] = ((value > best) | (value != value)) ? value : best;
        }
      }
    }
  }
}

// Every element of a window is written at once: the gradient to the first that equals the maximum, zeros to the others,
// or nan to all if none does. What is left for the next element: the gradient, or that.
template <class T>
EXTENSOR_INLINE void max_backward_run(Vec<T> g, const Pairs<T>& x, T* grad, T* grad_below, int64_t count) {
  const Vec<T> m = x.max(), other = keep(isnan(m), m);
  const Mask<T> at_a = x.a == m, at_b = x.b == m, at_c = x.c == m, at_d = x.d == m;
  const Vec<T> after_a = select(at_a, other, g), after_b = select(at_b, other, after_a), after_c = select(at_c, other, after_b);
  store_joined(grad, select(at_a, g, other), select(at_b, after_a, other), count);
  store_joined(grad_below, select(at_c, after_b, other), select(at_d, after_c, other), count);
}

// `run` writes the gradients of up to a vector of windows, from the place `at` of both rows on. What lies in no window gets 0.
template <class T, class Run>
EXTENSOR_INLINE void backward_of_pairs(const PoolShape& s, const T* g, T* grad, const Run& run) {
  constexpr int lanes = Vec<T>::lanes;
  const int64_t width = s.x[1], whole = s.y[1] / lanes * lanes, rest = s.y[1] - whole;
  for (int64_t i = 0, at = 0; i < s.y[0]; ++i, g += s.y[1], at += 2 * width) {
    for (int64_t j = 0; j < whole; j += lanes) run(load(g + j), at + 2 * j, lanes);
    if (rest > 0) run(load_first(g + whole, rest), at + 2 * whole, rest);
    for (int64_t c = at + 2 * s.y[1]; c < at + width; ++c) grad[c] = grad[c + width] = T(0);
  }
  for (int64_t c = 2 * s.y[0] * width; c < s.x[0] * width; ++c) grad[c] = T(0);
}

template <class T>
void max_backward_pairs(const PoolShape& s, const T* g, const T* x, T* grad) {
  const int64_t width = s.x[1];
  backward_of_pairs(s, g, grad, [&](Vec<T> upstream, int64_t at, int64_t count) {
    max_backward_run(upstream, Pairs<T>(x + at, x + at + width, count), grad + at, grad + at + width, count);
  });
}

template <class T>
void mean_backward_pairs(const PoolShape& s, const T* g, T* grad) {
  const int64_t width = s.x[1];
  backward_of_pairs(s, g, grad, [&](Vec<T> upstream, int64_t at, int64_t count) {
    const Vec<T> share = 0.0 + upstream * 0.25;  // a sum: a negative zero alone becomes 0
    store_joined(grad + at, share, share, count);
    store_joined(grad + at + width, share, share, count);
  });
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

// In float64: for each row of windows first the sums down the columns, all at once, then along them. `line` has room for a
// row of the plane.
template <class T>
void mean_plane(const PoolShape& s, const double* divisors, const T* x, T* y, double* line) {
  const int64_t width = s.x[1];
  for (int64_t i = 0; i < s.y[0]; ++i) {
    const Span rows = span(s, 0, i);
    for (int64_t c = 0; c < width; ++c) line[c] = 0;
    for (int64_t r = rows.begin; r < rows.end; ++r)
      for (int64_t c = 0; c < width; ++c) line[c] += double(x[r * width + c]);
    for (int64_t j = 0; j < s.y[1]; ++j) {
      const Span columns = span(s, 1, j);
      double sum = 0;
      for (int64_t c = columns.begin; c < columns.end; ++c) sum += line[c];
      *y++ = T(sum / *divisors++);
    }
  }
}

// Sums of shares in float64, one row of the plane at a time: row r gets from every window that covers it. Those that the
// same windows cover are the same.
template <class T>
void mean_backward_plane(const PoolShape& s, const double* divisors, const T* g, T* grad, double* line) {
  int64_t first_before = -1, end_before = -1;
  for (int64_t r = 0; r < s.x[0]; ++r, grad += s.x[1]) {
    const int64_t before = r + s.padding[0] - s.size[0] + 1;
    const int64_t first = before <= 0 ? 0 : (before + s.stride[0] - 1) / s.stride[0];
    const int64_t last = (r + s.padding[0]) / s.stride[0], end = last < s.y[0] ? last + 1 : s.y[0];
    if (first == first_before && end == end_before) {
      __builtin_memcpy(grad, grad - s.x[1], size_t(s.x[1]) * sizeof(T));
      continue;
    }
    first_before = first, end_before = end;
    for (int64_t c = 0; c < s.x[1]; ++c) line[c] = 0;
    for (int64_t i = first; i < end; ++i) {
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
  const bool in_pairs = is_in_pairs(s);
  const auto of_plane = in_pairs ? max_pairs<T> : max_plane<T>;
  const int64_t from = s.x[0] * s.x[1], to = s.y[0] * s.y[1];
  parallel_for(s.planes, in_pairs ? pairs_ns(s) : windows_ns(s), [&](int64_t begin, int64_t end) {
    for (int64_t p = begin; p < end; ++p) of_plane(s, x + p * from, y + p * to);
  });
}

template <class T>
void max_pool_backward(const PoolShape& s, const T* g, const T* x, T* grad) {
  const bool in_pairs = is_in_pairs(s);
  const auto of_plane = in_pairs ? max_backward_pairs<T> : max_backward_plane<T>;
  const int64_t from = s.y[0] * s.y[1], to = s.x[0] * s.x[1];
  parallel_for(s.planes, in_pairs ? 2 * pairs_ns(s) : windows_ns(s), [&](int64_t begin, int64_t end) {
    for (int64_t p = begin; p < end; ++p) of_plane(s, g + p * from, x + p * to, grad + p * to);
  });
}

template <class T>
void mean_pool(const PoolShape& s, const double* divisors, const T* x, T* y) {
  const int64_t from = s.x[0] * s.x[1], to = s.y[0] * s.y[1];
  if (is_in_pairs(s)) {  // every divisor is 4
    return parallel_for(s.planes, pairs_ns(s), [&](int64_t begin, int64_t end) {
      for (int64_t p = begin; p < end; ++p) mean_pairs(s, x + p * from, y + p * to);
    });
  }
  parallel_for(s.planes, windows_ns(s), [&](int64_t begin, int64_t end) {
    Workspace<double> line(s.x[1]);
    for (int64_t p = begin; p < end; ++p) mean_plane(s, divisors, x + p * from, y + p * to, line.data());
  });
}

template <class T>
void mean_pool_backward(const PoolShape& s, const double* divisors, const T* g, T* grad) {
  const int64_t from = s.y[0] * s.y[1], to = s.x[0] * s.x[1];
  if (is_in_pairs(s)) {
    return parallel_for(s.planes, pairs_ns(s), [&](int64_t begin, int64_t end) {
      for (int64_t p = begin; p < end; ++p) mean_backward_pairs(s, g + p * from, grad + p * to);
    });
  }
  parallel_for(s.planes, windows_ns(s), [&](int64_t begin, int64_t end) {
    Workspace<double> line(s.x[1]);
    for (int64_t p = begin; p < end; ++p) mean_backward_plane(s, divisors, g + p * from, grad + p * to, line.data());
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
