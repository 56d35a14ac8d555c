#include "kernels/scan/cumsum.hpp"

#include "core/threads.hpp"

namespace extensor {
namespace {

// A sum waits for the one before it; several rows side by side keep the adders busy meanwhile.
template <class T, int Rows>
void sum_rows(bool reversed, int64_t length, const T* x, T* out) {
  double totals[Rows] = {};
  const int64_t step = reversed ? -1 : 1;
  int64_t at = reversed ? length - 1 : 0;
  for (int64_t i = 0; i < length; ++i, at += step)
    for (int r = 0; r < Rows; ++r) out[r * length + at] = T(totals[r] += double(x[r * length + at]));
}

template <class T>
void sum_columns(bool reversed, int64_t length, int64_t inner, const T* x, T* out) {
  constexpr int64_t strip = 512;
  for (int64_t start = 0; start < inner; start += strip) {
    const int64_t count = inner - start < strip ? inner - start : strip;
    double totals[strip] = {};
    for (int64_t i = 0; i < length; ++i) {
      const int64_t at = (reversed ? length - 1 - i : i) * inner + start;
      for (int64_t c = 0; c < count; ++c) out[at + c] = T(totals[c] += double(x[at + c]));
    }
  }
}

template <class T>
void run(bool reversed, int64_t outer, int64_t length, int64_t inner, const T* x, T* out) {
  constexpr int together = 4;
  if (inner > 1) {
    parallel_for(outer, double(length) * double(inner) * 0.8, [&](int64_t begin, int64_t end) {
      for (int64_t o = begin; o < end; ++o)
        sum_columns(reversed, length, inner, x + o * length * inner, out + o * length * inner);
    });
    return;
  }
  parallel_for(outer, double(length), [&](int64_t begin, int64_t end) {
    int64_t o = begin;
    for (; o + together <= end; o += together) sum_rows<T, together>(reversed, length, x + o * length, out + o * length);
    for (; o < end; ++o) sum_rows<T, 1>(reversed, length, x + o * length, out + o * length);
  });
}

}  // namespace

void cumsum(DType dtype, bool reversed, int64_t outer, int64_t length, int64_t inner, const void* x, void* out) {
  if (dtype == DType::float32) run(reversed, outer, length, inner, static_cast<const float*>(x), static_cast<float*>(out));
  else run(reversed, outer, length, inner, static_cast<const double*>(x), static_cast<double*>(out));
}

}  // namespace extensor
