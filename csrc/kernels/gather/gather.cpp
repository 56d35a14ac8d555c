#include "kernels/gather/gather.hpp"

#include <cstring>
#include <vector>

#include "core/threads.hpp"

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

template <class T>
void add_slices(const int64_t* members, int64_t count, int64_t inner, const T* g, T* out) {
  constexpr int64_t strip = 256;
  for (int64_t start = 0; start < inner; start += strip) {
    const int64_t width = inner - start < strip ? inner - start : strip;
    double totals[strip] = {};
    for (int64_t m = 0; m < count; ++m) {
      const T* from = g + members[m] * inner + start;
      for (int64_t c = 0; c < width; ++c) totals[c] += double(from[c]);
    }
    for (int64_t c = 0; c < width; ++c) out[start + c] = T(totals[c]);
  }
}

template <class T>
void run_backward(int64_t outer, int64_t length, int64_t count, int64_t inner, const int64_t* indices, const T* g, T* out) {
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

}  // namespace

void take(int64_t outer, int64_t length, int64_t count, size_t bytes, const int64_t* indices, const void* x, void* out) {
  const char* from = static_cast<const char*>(x);
  char* to = static_cast<char*>(out);
  parallel_for(outer * count, double(bytes) * byte_ns + 2, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const char* slice = from + size_t(i / count * length + indices[i % count]) * bytes;
      if (bytes == 4) std::memcpy(to + size_t(i) * 4, slice, 4);
      else if (bytes == 8) std::memcpy(to + size_t(i) * 8, slice, 8);
      else std::memcpy(to + size_t(i) * bytes, slice, bytes);
    }
  });
}

void take_backward(DType dtype, int64_t outer, int64_t length, int64_t count, int64_t inner, const int64_t* indices, const void* g,
                   void* out) {
  if (dtype == DType::float32)
    run_backward(outer, length, count, inner, indices, static_cast<const float*>(g), static_cast<float*>(out));
  else
    run_backward(outer, length, count, inner, indices, static_cast<const double*>(g), static_cast<double*>(out));
}

}  // namespace extensor
