// Softmax down the columns of a matrix, a strip of neighbouring columns at a time: row by row, as memory lies.
#pragma once

#include "kernels/softmax/rows.hpp"

namespace extensor::EXTENSOR_ISA {

// What a strip keeps per column: room for one vector more than its width.
template <class T>
struct Strip {
  T largest[strip_width + Vec<T>::lanes];
  double sums[strip_width + Vec<T>::lanes];
  T totals[strip_width + Vec<T>::lanes];

  void clear_sums(int64_t width) {
    for (int64_t c = 0; c < width + Vec<T>::lanes; ++c) sums[c] = 0;
  }
  void round_sums(int64_t width) {
    for (int64_t c = 0; c < width + Vec<T>::lanes; ++c) totals[c] = T(sums[c]);
  }
};

template <class T>
void softmax_columns(const T* x, int64_t row, int64_t rows, int64_t width, T* y, Strip<T>& strip) {
  fold_columns<Largest>(x, row, rows, width, strip.largest);
  strip.clear_sums(width);
  for (int64_t r = 0; r < rows; ++r) {
    for_each_vector<T>(width, [&](int64_t c, int64_t count) EXTENSOR_INLINE_LAMBDA {
      const Vec<T> e = exp(load_first(x + r * row + c, count) - load(strip.largest + c));
      store_first(y + r * row + c, e, count);
      add_to_sums(strip.sums + c, e);
    });
  }
  strip.round_sums(width);
  for (int64_t r = 0; r < rows; ++r) {
    for_each_vector<T>(width, [&](int64_t c, int64_t count) EXTENSOR_INLINE_LAMBDA {
      store_first(y + r * row + c, load_first(y + r * row + c, count) / load(strip.totals + c), count);
    });
  }
}

template <class T>
void log_softmax_columns(const T* x, int64_t row, int64_t rows, int64_t width, T* y, Strip<T>& strip) {
  fold_columns<Largest>(x, row, rows, width, strip.largest);
  strip.clear_sums(width);
  for (int64_t r = 0; r < rows; ++r) {
    for_each_vector<T>(width, [&](int64_t c, int64_t count) EXTENSOR_INLINE_LAMBDA {
      add_to_sums(strip.sums + c, exp(load_first(x + r * row + c, count) - load(strip.largest + c)));
    });
  }
  for (int64_t c = 0; c < width; ++c) strip.totals[c] = T(__builtin_log(strip.sums[c]));
  for (int64_t r = 0; r < rows; ++r) {
    for_each_vector<T>(width, [&](int64_t c, int64_t count) EXTENSOR_INLINE_LAMBDA {
      store_first(y + r * row + c, load_first(x + r * row + c, count) - load(strip.largest + c) - load(strip.totals + c), count);
    });
  }
}

template <class T>
void softmax_backward_columns(const T* g, const T* y, int64_t row, int64_t rows, int64_t width, T* out, Strip<T>& strip) {
  strip.clear_sums(width);
  for (int64_t r = 0; r < rows; ++r) {
    for_each_vector<T>(width, [&](int64_t c, int64_t count) EXTENSOR_INLINE_LAMBDA {
      add_to_sums(strip.sums + c, load_first(g + r * row + c, count) * load_first(y + r * row + c, count));
    });
  }
  strip.round_sums(width);
  for (int64_t r = 0; r < rows; ++r) {
    for_each_vector<T>(width, [&](int64_t c, int64_t count) EXTENSOR_INLINE_LAMBDA {
      const int64_t at = r * row + c;
      store_first(out + at, load_first(y + at, count) * (load_first(g + at, count) - load(strip.totals + c)), count);
    });
  }
}

template <class T>
void log_softmax_backward_columns(const T* g, const T* y, int64_t row, int64_t rows, int64_t width, T* out, Strip<T>& strip) {
  strip.clear_sums(width);
  for (int64_t r = 0; r < rows; ++r) {
    for_each_vector<T>(width, [&](int64_t c, int64_t count) EXTENSOR_INLINE_LAMBDA {
      add_to_sums(strip.sums + c, load_first(g + r * row + c, count));
    });
  }
  strip.round_sums(width);
  for (int64_t r = 0; r < rows; ++r) {
    for_each_vector<T>(width, [&](int64_t c, int64_t count) EXTENSOR_INLINE_LAMBDA {
      const int64_t at = r * row + c;
      store_first(out + at, load_first(g + at, count) - exp(load_first(y + at, count)) * load(strip.totals + c), count);
    });
  }
}

}  // namespace extensor::EXTENSOR_ISA
