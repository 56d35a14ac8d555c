// What attention works on.
#pragma once

#include <cstdint>

namespace extensor {

// The matrices of a batch: where each begins, and the distance of two rows; a row is dense. Counted in elements.
template <class T>
struct Matrices {
  T* data = nullptr;
  const int64_t* offsets = nullptr;
  int64_t row = 0;

  T* at(int64_t batch, int64_t i) const { return data + offsets[batch] + i * row; }
};

// q [batch, queries, features], k [batch, keys, features], v [batch, keys, values].
// The mask, if any, is boolean (`allowed`) or added to the scores (`added`, of T); its strides count elements and are
// 0 where it is repeated.
template <class T>
struct Attention {
  int64_t batch, queries, keys, features, values;
  Matrices<const T> q, k, v;
  const uint8_t* allowed;
  const T* added;
  const int64_t* mask_offsets;  // one per batch element
  int64_t mask_row, mask_column;
  bool causal;
  double scale;
};

// False where a result is not finite: then an inf or a nan came in or came to be, and may have reached what must not see it.
template <class T>
struct AttentionFunctions {
  bool (*forward)(const Attention<T>&, const Matrices<T>& out);
  // Gradients that are not wanted have no data.
  bool (*backward)(const Attention<T>&, const Matrices<const T>& g, const Matrices<T>& grad_q, const Matrices<T>& grad_k,
                   const Matrices<T>& grad_v);
};

// Rough time of the forward; the backward takes about three times as long.
template <class T>
double attention_ns(const Attention<T>& a) {
  return double(a.batch) * double(a.queries) * double(a.keys) * (double(a.features + a.values) * sizeof(T) / 180.0 + 1.0);
}

}  // namespace extensor
