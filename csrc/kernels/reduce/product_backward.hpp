// g times the product of all other elements of the slice: everything before an element times everything behind it, in
// float64. No division, so zeros need no care. A nan makes its whole slice nan.
#pragma once

#include "kernels/reduce/states.hpp"

namespace extensor::EXTENSOR_ISA {

// `product` is that of what lies before x.
template <class T>
void product_gradient_in_order(const T* x, int64_t n, double product, double g, double* before, T* out) {
  for (int64_t i = 0; i < n; ++i) {
    before[i] = product;
    product *= double(x[i]);
  }
  product = 1;
  for (int64_t i = n - 1; i >= 0; --i) {
    out[i] = T(g * (before[i] * product));
    product *= double(x[i]);
  }
}

// n neighbours; `before` has room for n numbers. Eight chains of products at a time, one for each eighth of the row, hide
// the latency of the multiplications. Where the product of an eighth leaves the range of float64 the order matters: then
// as above, like the reference.
template <class T>
void product_gradient_row(const T* x, int64_t n, double g, double* before, T* out) {
  constexpr int chains = 8;
  bool has_nan = false;
  for (int64_t i = 0; i < n; ++i) has_nan |= x[i] != x[i];
  if (has_nan) {
    for (int64_t i = 0; i < n; ++i) out[i] = T(__builtin_nan(""));
    return;
  }
  const int64_t size = n / chains, whole = size * chains;
  double parts[chains], ahead[chains + 1] = {1}, behind[chains];
  for (double& part : parts) part = 1;
  for (int64_t i = 0; i < size; ++i)
    for (int c = 0; c < chains; ++c) parts[c] *= double(x[c * size + i]);
  double last = 1;  // of the few elements behind the last eighth
  for (int64_t i = n - 1; i >= whole; --i) last *= double(x[i]);
  bool in_range = true;
  const auto check = [&](double product) { in_range = in_range && __builtin_fabs(product) > 1e-300 && __builtin_fabs(product) < 1e300; };
  check(last);
  for (int c = 0; c < chains; ++c) check(parts[c]), check(ahead[c + 1] = ahead[c] * parts[c]);
  for (int c = chains - 1; c >= 0; --c) check(behind[c] = c == chains - 1 ? last : behind[c + 1] * parts[c + 1]);
  if (!in_range) return product_gradient_in_order(x, n, 1, g, before, out);

  if (whole < n) product_gradient_in_order(x + whole, n - whole, ahead[chains], g, before, out + whole);
  for (int64_t i = 0; i < size; ++i) {
    for (int c = 0; c < chains; ++c) {
      before[c * size + i] = ahead[c];
      ahead[c] *= double(x[c * size + i]);
    }
  }
  for (int64_t i = size - 1; i >= 0; --i) {
    for (int c = 0; c < chains; ++c) {
      const int64_t at = c * size + i;
      out[at] = T(g * (before[at] * behind[c]));
      behind[c] *= double(x[at]);
    }
  }
}

constexpr int64_t product_strip = 64;

// Down the columns of a strip; `before` has room for length * width numbers.
template <class T>
void product_gradient_strip(const T* g, const T* x, int64_t row, int64_t length, int64_t width, double* before, T* out) {
  double products[product_strip], poison[product_strip];
  for (int64_t c = 0; c < width; ++c) products[c] = 1, poison[c] = 1;
  for (int64_t r = 0; r < length; ++r) {
    for (int64_t c = 0; c < width; ++c) {
      const double value = double(x[r * row + c]);
      before[r * width + c] = products[c];
      products[c] *= value;
      poison[c] = value == value ? poison[c] : value;
    }
  }
  for (int64_t c = 0; c < width; ++c) products[c] = 1;
  for (int64_t r = length - 1; r >= 0; --r) {
    for (int64_t c = 0; c < width; ++c) {
      out[r * row + c] = T(double(g[c]) * poison[c] * (before[r * width + c] * products[c]));
      products[c] *= double(x[r * row + c]);
    }
  }
}

template <class T>
void product_backward(const ReduceLayout& layout, const T* g, const T* x, T* out, double element_ns) {
  const int64_t length = layout.length, inner = layout.inner;
  if (has_rows(layout)) {
    parallel_for(layout.outer, double(length) * element_ns + 20, [&](int64_t begin, int64_t end) {
      States before(ceil_div(length, 2));  // of two numbers each
      for (int64_t o = begin; o < end; ++o)
        product_gradient_row(x + o * length, length, double(g[o]), &before.data()->first, out + o * length);
    });
    return;
  }
  // Strips that a cache holds, unless the columns are very long.
  const int64_t strip = max_of(8, min_of(product_strip, (128 * 1024) / max_of(1, length))), strips = ceil_div(inner, strip);
  parallel_for(layout.outer * strips, double(length * strip) * element_ns + 20, [&](int64_t begin, int64_t end) {
    States before(ceil_div(length * strip, 2));
    for (int64_t i = begin; i < end; ++i) {
      const int64_t o = i / strips, c = i % strips * strip, at = o * length * inner + c;
      product_gradient_strip(g + o * inner + c, x + at, inner, length, min_of(strip, inner - c), &before.data()->first, out + at);
    }
  });
}

}  // namespace extensor::EXTENSOR_ISA
