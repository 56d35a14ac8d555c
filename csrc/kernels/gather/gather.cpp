#include "kernels/gather/gather.hpp"

#include <atomic>
#include <cstring>
#include <vector>

#include "core/threads.hpp"
#include "kernels/gather/slices.hpp"

namespace extensor {
namespace {

constexpr double byte_ns = 0.05;

// Which of g's slices belong to slice t of the result: order[first[t]] .. order[first[t + 1] - 1], ascending.
struct Buckets {
  std::vector<int64_t> first, order;

  Buckets(int64_t length, int64_t count, const int64_t* indices) : first(size_t(length) + 1), order(size_t(count)) {
    for (int64_t i = 0; i < count; ++i) ++first[size_t(indices[i]) + 1];
    for (size_t t = 0; t < size_t(length); ++t) first[t + 1] += first[t];
    std::vector<int64_t> next(first.begin(), first.end() - 1);
    for (int64_t i = 0; i < count; ++i) order[size_t(next[size_t(indices[i])]++)] = i;
  }
};

void add_slices(const int64_t* members, int64_t count, int64_t inner, const float* g, float* out) {
  EXTENSOR_SELECT(slice_table)().add32(members, count, inner, g, out);
}
void add_slices(const int64_t* members, int64_t count, int64_t inner, const double* g, double* out) {
  EXTENSOR_SELECT(slice_table)().add64(members, count, inner, g, out);
}

// Wide slices: each of the result adds up its own.
template <class T>
void add_by_result(int64_t outer, int64_t length, int64_t count, int64_t inner, const int64_t* indices, const T* g, T* out) {
  const Buckets buckets(length, count, indices);
  const double slice_ns = double(inner) * sizeof(T) * byte_ns * (1.0 + double(count) / double(length)) + 5;
  parallel_for(outer * length, slice_ns, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const int64_t o = i / length, t = i % length;
      const int64_t* members = buckets.order.data() + buckets.first[size_t(t)];
      const int64_t size = buckets.first[size_t(t) + 1] - buckets.first[size_t(t)];
      const T* from = g + o * count * inner;
      if (size == 0) std::memset(out + i * inner, 0, size_t(inner) * sizeof(T));
      else add_slices(members, size, inner, from, out + i * inner);
    }
  });
}

// Sums in float64 for [rows, columns] of a result that has `row` elements from one row to the next: those of float32 in
// memory of their own, those of float64 where they belong.
template <class T>
class Sums {
 public:
  explicit Sums(int64_t most) : own_(sizeof(T) == 4 ? size_t(most) : 0) {}

  void start(T* out, int64_t rows, int64_t columns, int64_t row) {
    step = sizeof(T) == 4 ? columns : row;
    if (columns == row) columns = row = rows * columns, rows = 1;
    out_ = out, rows_ = rows, columns_ = columns, row_ = row;
    if (sizeof(T) == 4) {
      data = own_.data();
      std::memset(data, 0, size_t(rows * columns) * sizeof(double));
    } else {
      data = reinterpret_cast<double*>(out);
      for (int64_t r = 0; r < rows; ++r) std::memset(data + r * row, 0, size_t(columns) * sizeof(double));
    }
  }
  void finish() const {
    if (sizeof(T) == 8) return;
    for (int64_t r = 0; r < rows_; ++r)
      for (int64_t c = 0; c < columns_; ++c) out_[r * row_ + c] = T(data[r * columns_ + c]);
  }

  double* data;
  int64_t step;  // from one row to the next

 private:
  std::vector<double> own_;
  T* out_;
  int64_t rows_, columns_, row_;
};

template <class T>
void add_at(int64_t n, const int64_t* indices, const T* g, double* sums) {
  int64_t i = 0;
  for (; i + 4 <= n; i += 4)
    for (int64_t j = i; j < i + 4; ++j) sums[indices[j]] += double(g[j]);
  for (; i < n; ++i) sums[indices[i]] += double(g[i]);
}

// Narrow slices: one by one to where they belong.
template <class T>
void add_by_index(int64_t outer, int64_t length, int64_t count, int64_t inner, const int64_t* indices, const T* g, T* out) {
  parallel_for(outer, double(count * inner) + double(length * inner) * 0.3, [&](int64_t begin, int64_t end) {
    Sums<T> row(length * inner);
    for (int64_t o = begin; o < end; ++o) {
      row.start(out + o * length * inner, 1, length * inner, length * inner);
      double* sums = row.data;
      const T* from = g + o * count * inner;
      if (inner == 1) {
        add_at(count, indices, from, sums);
      } else {
        for (int64_t i = 0; i < count; ++i)
          for (int64_t c = 0; c < inner; ++c) sums[indices[i] * inner + c] += double(from[i * inner + c]);
      }
      row.finish();
    }
  });
}

template <class T>
void add_to(int64_t length, int64_t count, int64_t inner, const int64_t* indices, const T* x, const T* g, T* out) {
  constexpr int64_t strip = 256;
  const Buckets buckets(length, count, indices);
  const double slice_ns = double(inner) * sizeof(T) * byte_ns * (2.0 + double(count) / double(length)) + 5;
  parallel_for(length, slice_ns, [&](int64_t begin, int64_t end) {
    for (int64_t t = begin; t < end; ++t) {
      const T* base = x + t * inner;
      T* to = out + t * inner;
      const int64_t first = buckets.first[size_t(t)], last = buckets.first[size_t(t) + 1];
      if (first == last) std::memcpy(to, base, size_t(inner) * sizeof(T));
      for (int64_t start = 0; first < last && start < inner; start += strip) {
        const int64_t width = inner - start < strip ? inner - start : strip;
        double totals[strip];
        for (int64_t c = 0; c < width; ++c) totals[c] = double(base[start + c]);
        for (int64_t m = first; m < last; ++m) {
          const T* from = g + buckets.order[size_t(m)] * inner + start;
          for (int64_t c = 0; c < width; ++c) totals[c] += double(from[c]);
        }
        for (int64_t c = 0; c < width; ++c) to[start + c] = T(totals[c]);
      }
    }
  });
}

template <class T>
void run_backward(int64_t outer, int64_t length, int64_t count, int64_t inner, const int64_t* indices, const T* g, T* out) {
  if (inner < 16) add_by_index(outer, length, count, inner, indices, g, out);
  else add_by_result(outer, length, count, inner, indices, g, out);
}

// to[i] = from[indices[i]], several at a time: what is stored might be what is loaded next, for all the compiler knows.
template <class Item>
void pick(int64_t n, const int64_t* indices, const Item* from, Item* to) {
  int64_t i = 0;
  for (; i + 8 <= n; i += 8) {
    const Item some[] = {from[indices[i]],     from[indices[i + 1]], from[indices[i + 2]], from[indices[i + 3]],
                         from[indices[i + 4]], from[indices[i + 5]], from[indices[i + 6]], from[indices[i + 7]]};
    std::memcpy(to + i, some, sizeof some);
  }
  for (; i < n; ++i) to[i] = from[indices[i]];
}

template <class Item>
void take_items(int64_t outer, int64_t length, int64_t count, const int64_t* indices, const void* x, void* out) {
  constexpr int64_t block = 4096;  // of a long row, as much as is worth sharing
  const int64_t blocks = (count + block - 1) / block;
  const double ns = double(count < block ? count : block) * 0.4 + 2;
  parallel_for(outer * blocks, ns, [&](int64_t begin, int64_t end) {
    for (int64_t task = begin; task < end; ++task) {
      const int64_t o = task / blocks, first = task % blocks * block, last = count - first < block ? count : first + block;
      const Item* from = static_cast<const Item*>(x) + o * length;
      Item* to = static_cast<Item*>(out) + o * count;
      pick(last - first, indices + first, from, to + first);
    }
  });
}

// Indices as they are given, counted from the front. -1 for one that is outside.
int64_t from_front(int64_t index, int64_t length) {
  if (index < 0) index += length;
  return index < 0 || index >= length ? -1 : index;
}

template <class Item>
bool take_items_along(const AlongAxis& shape, const int64_t* indices, const Item* x, Item* out) {
  constexpr int64_t block = 1024;  // elements, at least one row: their indices stay in the cache
  const int64_t rows = shape.inner >= block ? 1 : block / shape.inner, blocks = (shape.count + rows - 1) / rows;
  std::atomic<bool> within{true};
  parallel_for(shape.outer * blocks, double((rows < shape.count ? rows : shape.count) * shape.inner) * 0.7, [&](int64_t begin, int64_t end) {
    for (int64_t task = begin; task < end; ++task) {
      const int64_t o = task / blocks, first = task % blocks * rows, last = shape.count - first < rows ? shape.count : first + rows;
      const Item* from = x + o * shape.length * shape.inner;
      const int64_t at = (o * shape.count + first) * shape.inner;
      const int64_t* index = indices + at;
      Item* to = out + at;
      const bool plain = are_positions(shape.length, (last - first) * shape.inner, index);
      if (plain && shape.inner == 1) {
        pick(last - first, index, from, to);
        continue;
      }
      for (int64_t i = first; i < last; ++i, index += shape.inner, to += shape.inner) {
        for (int64_t c = 0; c < shape.inner; ++c) {
          int64_t t = index[c];
          if (!plain && (t = from_front(t, shape.length)) < 0) {
            within = false;
            return;
          }
          to[c] = from[t * shape.inner + c];
        }
      }
    }
  });
  return within;
}

template <class T>
bool add_along(const AlongAxis& shape, const int64_t* indices, const T* g, T* out) {
  // Columns side by side as far as the sums stay in the cache.
  constexpr int64_t cached = 32 * 1024, fewest = 16;
  int64_t width = shape.inner;
  if (shape.inner > fewest && shape.length * shape.inner > cached) {
    width = cached / shape.length;
    if (width < fewest) width = fewest;
    if (width > shape.inner) width = shape.inner;
  }
  const int64_t strips = (shape.inner + width - 1) / width;
  std::atomic<bool> within{true};
  parallel_for(shape.outer * strips, double(width) * (double(shape.count) * 1.2 + double(shape.length) * 0.3), [&](int64_t begin, int64_t end) {
    Sums<T> strip(shape.length * width);
    for (int64_t task = begin; task < end; ++task) {
      const int64_t o = task / strips, start = task % strips * width, columns = shape.inner - start < width ? shape.inner - start : width;
      strip.start(out + o * shape.length * shape.inner + start, shape.length, columns, shape.inner);
      double* sums = strip.data;
      const int64_t step = strip.step;
      if (shape.inner == 1 && are_positions(shape.length, shape.count, indices + o * shape.count)) {
        add_at(shape.count, indices + o * shape.count, g + o * shape.count, sums);
        strip.finish();
        continue;
      }
      for (int64_t i = 0; i < shape.count; ++i) {
        const int64_t at = (o * shape.count + i) * shape.inner + start;
        for (int64_t c = 0; c < columns; ++c) {
          int64_t t = indices[at + c];
          if (uint64_t(t) >= uint64_t(shape.length) && (t = from_front(t, shape.length)) < 0) {
            within = false;
            return;
          }
          sums[t * step + c] += double(g[at + c]);
        }
      }
      strip.finish();
    }
  });
  return within;
}

}  // namespace

bool are_positions(int64_t length, int64_t count, const int64_t* indices) {
  uint64_t signs = 0;  // of the index, and of what is left to the end: neither is negative
  for (int64_t i = 0; i < count; ++i) signs |= uint64_t(indices[i]) | (uint64_t(length) - 1 - uint64_t(indices[i]));
  return signs >> 63 == 0;
}

void take(int64_t outer, int64_t length, int64_t count, size_t bytes, const int64_t* indices, const void* x, void* out) {
  switch (bytes) {
    case 1: return take_items<uint8_t>(outer, length, count, indices, x, out);
    case 2: return take_items<uint16_t>(outer, length, count, indices, x, out);
    case 4: return take_items<uint32_t>(outer, length, count, indices, x, out);
    case 8: return take_items<uint64_t>(outer, length, count, indices, x, out);
    default: break;
  }
  const char* from = static_cast<const char*>(x);
  char* to = static_cast<char*>(out);
  parallel_for(outer * count, double(bytes) * byte_ns + 2, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i)
      std::memcpy(to + size_t(i) * bytes, from + size_t(i / count * length + indices[i % count]) * bytes, bytes);
  });
}

void take_backward(DType dtype, int64_t outer, int64_t length, int64_t count, int64_t inner, const int64_t* indices, const void* g,
                   void* out) {
  if (dtype == DType::float32)
    run_backward(outer, length, count, inner, indices, static_cast<const float*>(g), static_cast<float*>(out));
  else
    run_backward(outer, length, count, inner, indices, static_cast<const double*>(g), static_cast<double*>(out));
}

void add_at_positions(DType dtype, int64_t length, int64_t count, int64_t inner, const int64_t* indices, const void* x, const void* g,
                      void* out) {
  if (dtype == DType::float32)
    add_to(length, count, inner, indices, static_cast<const float*>(x), static_cast<const float*>(g), static_cast<float*>(out));
  else
    add_to(length, count, inner, indices, static_cast<const double*>(x), static_cast<const double*>(g), static_cast<double*>(out));
}

bool take_along_axis(const AlongAxis& shape, size_t item, const int64_t* indices, const void* x, void* out) {
  switch (item) {
    case 1: return take_items_along(shape, indices, static_cast<const uint8_t*>(x), static_cast<uint8_t*>(out));
    case 2: return take_items_along(shape, indices, static_cast<const uint16_t*>(x), static_cast<uint16_t*>(out));
    case 4: return take_items_along(shape, indices, static_cast<const uint32_t*>(x), static_cast<uint32_t*>(out));
    default: return take_items_along(shape, indices, static_cast<const uint64_t*>(x), static_cast<uint64_t*>(out));
  }
}

bool take_along_axis_backward(DType dtype, const AlongAxis& shape, const int64_t* indices, const void* g, void* out) {
  if (dtype == DType::float32) return add_along(shape, indices, static_cast<const float*>(g), static_cast<float*>(out));
  return add_along(shape, indices, static_cast<const double*>(g), static_cast<double*>(out));
}

}  // namespace extensor
