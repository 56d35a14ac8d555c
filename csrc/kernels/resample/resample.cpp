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

// The longest stretch of new elements that are neighbours of the old ones too: new ones first .. last - 1 are the old ones from
// positions[first] on. Most of what a margin is put around is one.
struct Stretch {
  int64_t first = 0, last = 0;

  explicit Stretch(const Taps& t) {
    for (int64_t begin = 0, end; begin < t.after; begin = end) {
      for (end = begin + 1; end < t.after && t.positions[end] == t.positions[end - 1] + 1; ++end) {}
      if (end - begin > last - first) first = begin, last = end;
    }
  }
};

// One tap as it is.
template <class T>
void taken(const Taps& t, const Stretch& whole, const T* x, T* y) {
  const auto each = [&](int64_t begin, int64_t end) {
    if (t.inner == 1)
      for (int64_t j = begin; j < end; ++j) y[j] = x[t.positions[j]];
    else
      for (int64_t j = begin; j < end; ++j) __builtin_memcpy(y + j * t.inner, x + t.positions[j] * t.inner, size_t(t.inner) * sizeof(T));
  };
  each(0, whole.first);
  __builtin_memcpy(y + whole.first * t.inner, x + t.positions[whole.first] * t.inner, size_t((whole.last - whole.first) * t.inner) * sizeof(T));
  each(whole.last, t.after);
}

// Rows of `inner` elements.
template <class T>
void weigh_rows(const Taps& t, const T* weights, const T* x, T* y) {
  for (int64_t j = 0; j < t.after; ++j, y += t.inner) {
    const T* first = x + t.positions[j] * t.inner;
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
void weigh_line(const Taps& t, const T* weights, const T* x, T* y) {
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
  const Stretch whole(t);
  parallel_for(t.outer, resample_ns(t), [&](int64_t begin, int64_t end) {
    for (int64_t o = begin; o < end; ++o) {
      const T* from = x + o * t.before * t.inner;
      T* to = y + o * t.after * t.inner;
      if (t.weights == nullptr) taken(t, whole, from, to);
      else if (t.inner > 1) weigh_rows(t, weights.data(), from, to);
      else weigh_line(t, weights.data(), from, to);
    }
  });
}

// What was taken as it is goes back, in the order of the new elements.
template <class T>
void add_taken(const Taps& t, const Stretch& whole, const T* g, double* sum) {
  const auto stretch = [&](int64_t j, int64_t rows) {
    double* to = sum + t.positions[j] * t.inner;
    const T* share = g + j * t.inner;
    for (int64_t c = 0; c < rows * t.inner; ++c) to[c] += double(share[c]);
  };
  for (int64_t j = 0; j < whole.first; ++j) stretch(j, 1);
  if (whole.first < whole.last) stretch(whole.first, whole.last - whole.first);
  for (int64_t j = whole.last; j < t.after; ++j) stretch(j, 1);
}

template <class T>
void add_weighed(const Taps& t, const T* weights, const T* g, double* sum) {
  for (int64_t k = 0; k < t.taps; ++k) {
    const int64_t* positions = t.positions + k * t.after;
    for (int64_t j = 0; j < t.after; ++j) {
      double* row = sum + positions[j] * t.inner;
      const T* share = g + j * t.inner;
      for (int64_t c = 0; c < t.inner; ++c) row[c] += double(share[c] * weights[k * t.after + j]);
    }
  }
}

template <class T>
void backward(const Taps& t, const T* g, T* grad) {
  Workspace<T> weights(t.weights == nullptr ? 1 : t.taps * t.after);
  if (t.weights != nullptr) narrowed(t, weights.data());
  const int64_t size = t.before * t.inner;
  const Stretch whole(t);
  parallel_for(t.outer, 1.5 * resample_ns(t), [&](int64_t begin, int64_t end) {
    Workspace<double> sums(size);
    double* const sum = sums.data();
    for (int64_t o = begin; o < end; ++o) {
      const T* from = g + o * t.after * t.inner;
      for (int64_t i = 0; i < size; ++i) sum[i] = 0;
      if (t.weights == nullptr) add_taken(t, whole, from, sum);
      else add_weighed(t, weights.data(), from, sum);
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
