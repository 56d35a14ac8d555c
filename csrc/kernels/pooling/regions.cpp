// Pooling over regions, plane by plane; see regions.hpp. Compiled once per instruction set.
#include "kernels/pooling/regions.hpp"

#include "core/partial.hpp"
#include "core/threads.hpp"
#include "core/workspace.hpp"

namespace extensor::EXTENSOR_ISA {
namespace {

inline int64_t volume(const int64_t* lengths) { return lengths[0] * lengths[1] * lengths[2]; }

// row(x, at) for the rows that regions i, j of the first two axes cover, in order; `at` is where a row begins.
template <class Row>
EXTENSOR_INLINE void each_row(const Regions& s, int64_t i, int64_t j, const Row& row) {
  for (int64_t p = s.begin[0][i]; p < s.end[0][i]; p += s.step[0])
    for (int64_t q = s.begin[1][j]; q < s.end[1][j]; q += s.step[1]) row((p * s.x[1] + q) * s.x[2]);
}

// Whether along the last axis the regions are its elements one by one: windows of volumes over their depth, of slices over rows.
inline bool keeps_last_axis(const Regions& s) {
  if (s.y[2] != s.x[2]) return false;
  for (int64_t k = 0; k < s.y[2]; ++k)
    if (s.begin[2][k] != k || s.end[2][k] != k + 1) return false;
  return true;
}

template <class T>
EXTENSOR_INLINE T larger(T best, T value) {
  return value > best || value != value ? value : best;
}

// How far the regions of the last axis are apart, if all have two or all have three elements side by side; else 0.
inline int64_t even_steps(const Regions& s, int64_t size) {
  const int64_t step = s.y[2] > 1 ? s.begin[2][1] - s.begin[2][0] : 1;
  if (s.step[2] != 1) return 0;
  for (int64_t k = 0; k < s.y[2]; ++k)
    if (s.end[2][k] - s.begin[2][k] != size || s.begin[2][k] != s.begin[2][0] + k * step) return 0;
  return step;
}

template <class T>
EXTENSOR_INLINE T largest(T best, T value) {
  return best != best ? best : larger(best, value);
}

// The largest elements down the rows, all columns at once, then along them. `line` has room for a row.
template <class T>
void max_plane(const Regions& s, const T* x, T* y, T* line, bool keeps_last, int64_t twos, int64_t threes) {
  const int64_t width = s.x[2];
  for (int64_t i = 0; i < s.y[0]; ++i) {
    for (int64_t j = 0; j < s.y[1]; ++j, y += s.y[2]) {
      const bool one_row = s.begin[0][i] + s.step[0] >= s.end[0][i] && s.begin[1][j] + s.step[1] >= s.end[1][j];
      const T* along = x + (s.begin[0][i] * s.x[1] + s.begin[1][j]) * width;
      T* const down = keeps_last ? y : line;
      bool first = true;
      if (!one_row || keeps_last) each_row(s, i, j, [&](int64_t at) {
        const T* row = x + at;
        if (first) __builtin_memcpy(down, row, size_t(width) * sizeof(T));
        else
          for (int64_t c = 0; c < width; ++c) down[c] = largest(down[c], row[c]);
        first = false;
      });
      if (keeps_last) continue;
      if (!one_row) along = line;
      if (twos == 2) {
        for (int64_t k = 0; k < s.y[2]; ++k) y[k] = largest(along[s.begin[2][0] + 2 * k], along[s.begin[2][0] + 2 * k + 1]);
        continue;
      }
      if (threes != 0) {
        const T* from = along + s.begin[2][0];
        for (int64_t k = 0; k < s.y[2]; ++k, from += threes) y[k] = largest(largest(from[0], from[1]), from[2]);
        continue;
      }
      for (int64_t k = 0; k < s.y[2]; ++k) {
        T best = along[s.begin[2][k]];
        for (int64_t c = s.begin[2][k] + s.step[2]; c < s.end[2][k]; c += s.step[2]) best = largest(best, along[c]);
        y[k] = best;
      }
    }
  }
}

// The first of the largest elements, or the first nan.
template <class T>
EXTENSOR_INLINE int64_t place_of_max(const Regions& s, const T* x, int64_t i, int64_t j, int64_t k) {
  const int64_t begin = s.begin[2][k], end = s.end[2][k], step = s.step[2];
  int64_t place = -1;
  T best = 0;
  each_row(s, i, j, [&](int64_t at) {
    for (int64_t c = begin; c < end; c += step) {
      const T value = x[at + c];
      if (place < 0 || value > best || (value != value && best == best)) best = value, place = at + c;
    }
  });
  return place;
}

template <class T>
void places_plane(const Regions& s, const T* x, int64_t* y) {
  for (int64_t i = 0; i < s.y[0]; ++i)
    for (int64_t j = 0; j < s.y[1]; ++j)
      for (int64_t k = 0; k < s.y[2]; ++k) *y++ = place_of_max(s, x, i, j, k);
}

template <class T>
void max_backward_plane(const Regions& s, const T* g, const T* x, T* grad) {
  for (int64_t c = 0; c < volume(s.x); ++c) grad[c] = T(0);
  for (int64_t i = 0; i < s.y[0]; ++i) {
    for (int64_t j = 0; j < s.y[1]; ++j) {
      for (int64_t k = 0; k < s.y[2]; ++k, ++g) {
        const int64_t place = place_of_max(s, x, i, j, k);
        if (x[place] == x[place]) {
          grad[place] += *g;
          continue;
        }
        each_row(s, i, j, [&](int64_t at) {
          for (int64_t c = s.begin[2][k]; c < s.end[2][k]; c += s.step[2]) grad[at + c] = x[place];
        });
      }
    }
  }
}

template <class T>
void mean_plane(const Regions& s, const T* x, T* y, double* line) {
  const int64_t width = s.x[2];
  for (int64_t i = 0; i < s.y[0]; ++i) {
    for (int64_t j = 0; j < s.y[1]; ++j) {
      const double rows = s.size[0][i] * s.size[1][j];
      for (int64_t c = 0; c < width; ++c) line[c] = 0;
      each_row(s, i, j, [&](int64_t at) {
        for (int64_t c = 0; c < width; ++c) line[c] += double(x[at + c]);
      });
      for (int64_t k = 0; k < s.y[2]; ++k) {
        double sum = 0;
        for (int64_t c = s.begin[2][k]; c < s.end[2][k]; c += s.step[2]) sum += line[c];
        *y++ = T(sum / (rows * s.size[2][k]));
      }
    }
  }
}

// The shares of a row of regions, laid over the rows that they cover. `line` has room for a row, `sums` for the plane.
template <class T>
void mean_backward_plane(const Regions& s, const T* g, T* grad, double* line, double* sums) {
  const int64_t width = s.x[2], size = volume(s.x);
  for (int64_t c = 0; c < size; ++c) sums[c] = 0;
  for (int64_t i = 0; i < s.y[0]; ++i) {
    for (int64_t j = 0; j < s.y[1]; ++j) {
      const double rows = s.size[0][i] * s.size[1][j];
      for (int64_t c = 0; c < width; ++c) line[c] = 0;
      for (int64_t k = 0; k < s.y[2]; ++k) {
        const double share = double(*g++) / (rows * s.size[2][k]);
        for (int64_t c = s.begin[2][k]; c < s.end[2][k]; c += s.step[2]) line[c] += share;
      }
      each_row(s, i, j, [&](int64_t at) {
        for (int64_t c = 0; c < width; ++c) sums[at + c] += line[c];
      });
    }
  }
  for (int64_t c = 0; c < size; ++c) grad[c] = T(sums[c]);
}

// body(plane, workspace of a row) for each plane.
template <class T, class Body>
void each_plane(const Regions& s, int64_t room, const Body& body) {
  parallel_for(s.planes, region_ns(s), [&](int64_t begin, int64_t end) {
    Workspace<T> space(room);
    for (int64_t p = begin; p < end; ++p) body(p, space.data());
  });
}

template <class T>
void max_of(const Regions& s, const T* x, T* y) {
  const bool keeps_last = keeps_last_axis(s);
  const int64_t twos = even_steps(s, 2), threes = even_steps(s, 3);
  each_plane<T>(s, s.x[2], [&](int64_t p, T* line) {
    max_plane(s, x + p * volume(s.x), y + p * volume(s.y), line, keeps_last, twos, threes);
  });
}

template <class T>
void places_of(const Regions& s, const T* x, int64_t* y) {
  each_plane<T>(s, 1, [&](int64_t p, T*) { places_plane(s, x + p * volume(s.x), y + p * volume(s.y)); });
}

template <class T>
void max_backward_of(const Regions& s, const T* g, const T* x, T* grad) {
  each_plane<T>(s, 1, [&](int64_t p, T*) {
    max_backward_plane(s, g + p * volume(s.y), x + p * volume(s.x), grad + p * volume(s.x));
  });
}

template <class T>
void mean_of(const Regions& s, const T* x, T* y) {
  each_plane<double>(s, s.x[2], [&](int64_t p, double* line) { mean_plane(s, x + p * volume(s.x), y + p * volume(s.y), line); });
}

template <class T>
void mean_backward_of(const Regions& s, const T* g, T* grad) {
  each_plane<double>(s, s.x[2] + volume(s.x), [&](int64_t p, double* space) {
    mean_backward_plane(s, g + p * volume(s.y), grad + p * volume(s.x), space, space + s.x[2]);
  });
}

}  // namespace

const RegionTable& region_table() {
  static constexpr RegionTable table = {
      max_of<float>, max_of<double>, places_of<float>, places_of<double>, max_backward_of<float>, max_backward_of<double>,
      mean_of<float>, mean_of<double>, mean_backward_of<float>, mean_backward_of<double>,
  };
  return table;
}

}  // namespace extensor::EXTENSOR_ISA
