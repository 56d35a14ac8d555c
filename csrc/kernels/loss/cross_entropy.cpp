// Compiled once per instruction set.
#include "kernels/loss/cross_entropy.hpp"

#include "core/threads.hpp"
#include "kernels/convert/stored_rows.hpp"
#include "kernels/softmax/rows.hpp"

namespace extensor::EXTENSOR_ISA {
namespace {

constexpr double element_ns = 0.8;
// Rows whose logarithms are taken together.
constexpr int64_t together = Vec<double>::lanes;

template <class T>
void forward(DType stored, int64_t rows, int64_t classes, const void* x, const int64_t* labels, T* losses) {
  parallel_for(rows, double(classes) * element_ns + 20, [&](int64_t begin, int64_t end) {
    RowsIn<T> logits(x, stored, classes, together);
    for (int64_t first = begin; first < end; first += together) {
      const int64_t count = end - first < together ? end - first : together;
      const T* const some = logits.at(first, count);
      // One step for all rows before the next: the steps of one row wait for each other.
      T largest[together];
      double sums[together], chosen[together];  // of exponentials; and the logit of the label, below the largest
      for (int64_t i = 0; i < count; ++i) largest[i] = T(fold_row<Largest, T>(some + i * classes, classes));
      for (int64_t i = 0; i < together; ++i) {
        sums[i] = 1, chosen[i] = 0;
        if (i >= count || labels[first + i] < 0) continue;
        const T* row = some + i * classes;
        sums[i] = sum_of_exp(row, classes, Vec<T>(double(largest[i])));
        chosen[i] = double(row[labels[first + i]] - largest[i]);
      }
      store(sums, log(load(sums)) - load(chosen));
      for (int64_t i = 0; i < count; ++i) losses[first + i] = T(sums[i]);
    }
  });
}

// softmax_row of `count` rows of at most one vector each. One step for all rows before the next, as above.
template <class T>
EXTENSOR_INLINE void softmax_of_short_rows(const T* x, int64_t count, int64_t classes, T* y) {
  T largest[together], sums[together];
  for (int64_t i = 0; i < count; ++i) largest[i] = T(fold_row<Largest, T>(x + i * classes, classes));
  for (int64_t i = 0; i < count; ++i)
    store_wide(y + i * classes, exp(load_wide(x + i * classes, classes, T(-__builtin_inf())) - Vec<T>(double(largest[i]))), classes);
  for (int64_t i = 0; i < count; ++i)
    sums[i] = T(sum_pairs<T>(classes, [&](int64_t k, int64_t n) EXTENSOR_INLINE_LAMBDA { return load_wide(y + i * classes + k, n); }));
  for (int64_t i = 0; i < count; ++i) {
    const Vec<T> sum(double(sums[i])), inverse = 1.0 / sum;
    for_each_vector<T>(classes, [&](int64_t k, int64_t n) EXTENSOR_INLINE_LAMBDA {
      T* to = y + i * classes + k;
      store_first(to, share_of(load_first(to, n), sum, inverse), n);
    });
  }
}

template <class T>
void backward(DType stored, int64_t rows, int64_t classes, const void* x, const int64_t* labels, const T* upstream, int64_t upstream_step,
              void* out) {
  const bool is_short = classes <= wide_lanes<T>;
  const int64_t block = is_short ? together : 1;
  parallel_for(rows, double(classes) * element_ns + 20, [&](int64_t begin, int64_t end) {
    RowsIn<T> logits(x, stored, classes, block);
    RowsOut<T> result(out, stored, classes, block);
    for (int64_t first = begin; first < end; first += block) {
      const int64_t count = end - first < block ? end - first : block;
      const T* const some = logits.at(first, count);
      T* const to = result.at(first);
      if (is_short) softmax_of_short_rows(some, count, classes, to);
      else softmax_row(some, classes, to);
      for (int64_t i = 0; i < count; ++i)
        if (labels[first + i] >= 0) to[i * classes + labels[first + i]] -= T(1);
      for (int64_t i = 0; i < count; ++i) {
        // A row that is left out is multiplied by 0, so that its nan stay.
        const Vec<T> factor(labels[first + i] < 0 ? 0.0 : double(upstream[(first + i) * upstream_step]));
        for_each_vector<T>(classes, [&](int64_t k, int64_t n) EXTENSOR_INLINE_LAMBDA {
          T* at = to + i * classes + k;
          store_first(at, load_first(at, n) * factor, n);
        });
      }
      result.done(first, count);
    }
  });
}

}  // namespace

const CrossEntropyTable& cross_entropy_table() {
  static constexpr CrossEntropyTable table = {{forward<float>, backward<float>}, {forward<double>, backward<double>}};
  return table;
}

}  // namespace extensor::EXTENSOR_ISA
