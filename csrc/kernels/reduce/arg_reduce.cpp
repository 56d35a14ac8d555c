// First the extreme value, then the first place that holds it: two simple passes, the second one short on average.
// Compiled once per instruction set.
#include "kernels/reduce/arg_reduce.hpp"

#include "core/threads.hpp"
#include "kernels/reduce/fold.hpp"

namespace extensor::EXTENSOR_ISA {
namespace {

template <class T>
bool holds(T element, T extreme) {
  return element == extreme || element != element;
}

template <class T>
int64_t find_in_row(const T* x, int64_t n, T extreme) {
  constexpr int lanes = Vec<T>::lanes;
  const Vec<T> wanted(extreme);
  int64_t i = 0;
  for (; i + lanes <= n; i += lanes) {
    const Vec<T> value = load(x + i);
    if (any(value == wanted || isnan(value))) break;
  }
  for (; !holds(x[i], extreme); ++i) {
  }
  return i;
}

template <class T, class Step>
void run_rows(int64_t outer, int64_t length, const T* x, int64_t* out) {
  parallel_for(outer, double(length) * 0.2 + 10, [&](int64_t begin, int64_t end) {
    for (int64_t o = begin; o < end; ++o) {
      const T* row = x + o * length;
      out[o] = find_in_row(row, length, T(fold_row<Step, T>(row, length)));
    }
  });
}

template <class T, class Step>
void run_columns(int64_t outer, int64_t length, int64_t inner, const T* x, int64_t* out) {
  const int64_t strips = (inner + strip_width - 1) / strip_width;
  parallel_for(outer * strips, double(length) * double(min_of(inner, strip_width)) * 0.5, [&](int64_t begin, int64_t end) {
    T extremes[strip_width];
    for (int64_t i = begin; i < end; ++i) {
      const int64_t c0 = i % strips * strip_width, width = min_of(strip_width, inner - c0);
      const T* from = x + i / strips * length * inner + c0;
      int64_t* to = out + i / strips * inner + c0;
      fold_columns<Step>(from, inner, length, width, extremes);
      for (int64_t c = 0; c < width; ++c) to[c] = 0;
      // From the last row to the first, so that the first place stays.
      for (int64_t r = length - 1; r >= 0; --r)
        for (int64_t c = 0; c < width; ++c) to[c] = holds(from[r * inner + c], extremes[c]) ? r : to[c];
    }
  });
}

template <class T>
void run(bool largest, int64_t outer, int64_t length, int64_t inner, const T* x, int64_t* out) {
  if (inner == 1) return largest ? run_rows<T, Largest>(outer, length, x, out) : run_rows<T, Smallest>(outer, length, x, out);
  return largest ? run_columns<T, Largest>(outer, length, inner, x, out) : run_columns<T, Smallest>(outer, length, inner, x, out);
}

}  // namespace

const ArgReduceTable& arg_reduce_table() {
  static constexpr ArgReduceTable table = {run<float>, run<double>};
  return table;
}

}  // namespace extensor::EXTENSOR_ISA
