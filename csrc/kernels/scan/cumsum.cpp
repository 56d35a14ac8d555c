#include "kernels/scan/cumsum.hpp"

#include "core/threads.hpp"

namespace extensor {
namespace {

struct Sum {
  static constexpr double start = 0;
  static double next(double total, double value) { return total + value; }
};

struct Product {
  static constexpr double start = 1;
  static double next(double total, double value) { return total * value; }
};

// A total waits for the one before it; several rows side by side keep the units busy meanwhile.
template <class How, class T, int Rows>
void run_rows(bool reversed, int64_t length, const T* x, T* out) {
  double totals[Rows];
  for (double& total : totals) total = How::start;
  const int64_t step = reversed ? -1 : 1;
  int64_t at = reversed ? length - 1 : 0;
  for (int64_t i = 0; i < length; ++i, at += step)
    for (int r = 0; r < Rows; ++r) {
      totals[r] = How::next(totals[r], double(x[r * length + at]));
      out[r * length + at] = T(totals[r]);
    }
}

template <class How, class T>
void run_columns(bool reversed, int64_t length, int64_t inner, const T* x, T* out) {
  constexpr int64_t strip = 512;
  for (int64_t start = 0; start < inner; start += strip) {
    const int64_t count = inner - start < strip ? inner - start : strip;
    double totals[strip];
    for (double& total : totals) total = How::start;
    for (int64_t i = 0; i < length; ++i) {
      const int64_t at = (reversed ? length - 1 - i : i) * inner + start;
      for (int64_t c = 0; c < count; ++c) {
        totals[c] = How::next(totals[c], double(x[at + c]));
        out[at + c] = T(totals[c]);
      }
    }
  }
}

template <class How, class T>
void run(bool reversed, int64_t outer, int64_t length, int64_t inner, const T* x, T* out) {
  constexpr int together = 4;
  if (inner > 1) {
    parallel_for(outer, double(length) * double(inner) * 0.8, [&](int64_t begin, int64_t end) {
      for (int64_t o = begin; o < end; ++o)
        run_columns<How>(reversed, length, inner, x + o * length * inner, out + o * length * inner);
    });
    return;
  }
  parallel_for(outer, double(length), [&](int64_t begin, int64_t end) {
    int64_t o = begin;
    for (; o + together <= end; o += together) run_rows<How, T, together>(reversed, length, x + o * length, out + o * length);
    for (; o < end; ++o) run_rows<How, T, 1>(reversed, length, x + o * length, out + o * length);
  });
}

template <class How>
void run(DType dtype, bool reversed, int64_t outer, int64_t length, int64_t inner, const void* x, void* out) {
  if (dtype == DType::float32)
    run<How>(reversed, outer, length, inner, static_cast<const float*>(x), static_cast<float*>(out));
  else run<How>(reversed, outer, length, inner, static_cast<const double*>(x), static_cast<double*>(out));
}

}  // namespace

void cumsum(DType dtype, bool reversed, int64_t outer, int64_t length, int64_t inner, const void* x, void* out) {
  run<Sum>(dtype, reversed, outer, length, inner, x, out);
}

void cumprod(DType dtype, int64_t outer, int64_t length, int64_t inner, const void* x, void* out) {
  run<Product>(dtype, false, outer, length, inner, x, out);
}

}  // namespace extensor
