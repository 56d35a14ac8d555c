// Losses of distances between embeddings, one row after the other, and their gradients.
#pragma once

#include <cstdint>

#include "core/isa.hpp"

namespace extensor {

// Rows of `width` elements, all dense. margin + d(anchor, positive) - d(anchor, negative), d(x, y) = |x - y + eps|; with `swap` the
// smaller of d(anchor, negative) and d(positive, negative).
struct Triplets {
  int64_t rows, width;
  double margin, eps;
  bool swap;
};

// t[row] is 1 for rows that should point the same way. `least` is added to the squared lengths.
struct Cosines {
  int64_t rows, width;
  double margin, least;
};

// losses: one per row. upstream[row * step] arrives at each; gradients that are nullptr are not wanted. Sums in float64.
template <class T>
struct MetricFunctions {
  void (*triplet)(const Triplets&, const T* anchor, const T* positive, const T* negative, T* losses);
  void (*triplet_backward)(const Triplets&, const T* upstream, int64_t step, const T* anchor, const T* positive, const T* negative,
                           T* const* grads);
  void (*cosine)(const Cosines&, const T* a, const T* b, const T* t, T* losses);
  void (*cosine_backward)(const Cosines&, const T* upstream, int64_t step, const T* a, const T* b, const T* t, T* const* grads);
};
struct MetricTable {
  MetricFunctions<float> of32;
  MetricFunctions<double> of64;
};
EXTENSOR_PER_ISA(const MetricTable& metric_table())

constexpr double metric_element_ns = 0.5;

}  // namespace extensor
