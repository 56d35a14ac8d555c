// See resample.hpp. Compiled once per instruction set.
#include "kernels/resample/resample.hpp"

#include "core/simd.hpp"
#include "core/threads.hpp"
#include "core/workspace.hpp"

namespace extensor::EXTENSOR_ISA {
namespace {

// The weights in the type they are multiplied in.
template <class T>
void narrowed(const Taps& t, T* weights) {
  for (int64_t i = 0; i < t.taps * t.after; ++i) weights[i] = T(t.weights[i]);
}

// Rows of `inner` elements.
template <class T>
void rows_forward(const Taps& t, const T* weights, const T* x, T* y) {
  for (int64_t j = 0; j < t.after; ++j, y += t.inner) {
    const T* first = x + t.positions[j] * t.inner;
    if (weights == nullptr) {
      __builtin_memcpy(y, first, size_t(t.inner) * sizeof(T));
      continue;
    }
    for (int64_t c = 0; c < t.inner; ++c) y[c] = first[c] * weights[j];
    for (int64_t k = 1; k < t.taps; ++k) {
      const T* row = x + t.positions[k * t.after + j] * t.inner;
      const T weight = weights[k * t.after + j];
      for (int64_t c = 0; c < t.inner; ++c) y[c] = y[c] + row[c] * weight;
    }
  }
}

// Single elements: all new ones of a row by one tap after the other.
template <class T>
void line_forward(const Taps& t, const T* weights, const T* x, T* y) {
  if (weights == nullptr) {
    for (int64_t j = 0; j < t.after; ++j) y[j] = x[t.positions[j]];
    return;
  }
  if (t.taps == 2) {
    const int64_t* second = t.positions + t.after;
    for (int64_t j = 0; j < t.after; ++j) y[j] = x[t.positions[j]] * weights[j] + x[second[j]] * weights[t.after + j];
    return;
  }
  for (int64_t j = 0; j < t.after; ++j) {
    T sum = x[t.positions[j]] * weights[j];
    for (int64_t k = 1; k < t.taps; ++k) sum = sum + x[t.positions[k * t.after + j]] * weights[k * t.after + j];
    y[j] = sum;
  }
}

template <class T>
void forward(const Taps& t, const T* x, T* y) {
  Workspace<T> weights(t.weights == nullptr ? 1 : t.taps * t.after);
  if (t.weights != nullptr) narrowed(t, weights.data());
  const T* scale = t.weights == nullptr ? nullptr : weights.data();
  const auto one = t.inner > 1 ? rows_forward<T> : line_forward<T>;
  parallel_for(t.outer, resample_ns(t), [&](int64_t begin, int64_t end) {
    for (int64_t o = begin; o < end; ++o) one(t, scale, x + o * t.before * t.inner, y + o * t.after * t.inner);
  });
}

template <class T>
void backward(const Taps& t, const T* g, T* grad) {
  Workspace<T> weights(t.weights == nullptr ? 1 : t.taps * t.after);
  if (t.weights != nullptr) narrowed(t, weights.data());
  const T* scale = t.weights == nullptr ? nullptr : weights.data();
  const int64_t size = t.before * t.inner;
  parallel_for(t.outer, 1.5 * resample_ns(t), [&](int64_t begin, int64_t end) {
    Workspace<double> sums(size);
    double* const sum = sums.data();
    for (int64_t o = begin; o < end; ++o) {
      const T* from = g + o * t.after * t.inner;
      for (int64_t i = 0; i < size; ++i) sum[i] = 0;
      for (int64_t k = 0; k < t.taps; ++k) {
        const int64_t* positions = t.positions + k * t.after;
        for (int64_t j = 0; j < t.after; ++j) {
          double* row = sum + positions[j] * t.inner;
          const T* share = from + j * t.inner;
          if (scale == nullptr)
            for (int64_t c = 0; c < t.inner; ++c) row[c] += double(share[c]);
          else
            for (int64_t c = 0; c < t.inner; ++c) row[c] += double(share[c] * scale[k * t.after + j]);
        }
      }
      T* to = grad + o * size;
      for (int64_t i = 0; i < size; ++i) to[i] = T(sum[i]);
    }
  });
}

}  // namespace

const ResampleTable& resample_table() {
  static constexpr ResampleTable table = {forward<float>, forward<double>, backward<float>, backward<double>};
  return table;
}

}  // namespace extensor::EXTENSOR_ISA
