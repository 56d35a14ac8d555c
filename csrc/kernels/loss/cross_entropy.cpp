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

// Read from `lane` places before its middle, a vector of 0 with 1 in that lane.
template <class T>
struct OneLane {
  T values[2 * wide_lanes<T>] = {};
  constexpr OneLane() { values[wide_lanes<T>] = T(1); }
};

// `count` rows of at most one wide vector each, which stay in registers. One step for all rows before the next, as above.
template <class T>
EXTENSOR_INLINE void backward_of_short_rows(const T* x, const int64_t* labels, const T* upstream, int64_t upstream_step, int64_t count,
                                            int64_t classes, T* out) {
  static constexpr OneLane<T> one;
  T largest[together], sums[together];
  Wide<T> e[together];  // 0 in the lanes that do not exist
  for (int64_t i = 0; i < count; ++i) largest[i] = T(fold_row<Largest, T>(x + i * classes, classes));
  for (int64_t i = 0; i < count; ++i) e[i] = exp(load_wide(x + i * classes, classes, T(-__builtin_inf())) - Vec<T>(double(largest[i])));
  for (int64_t i = 0; i < count; ++i) sums[i] = T(sum_pairs<T>(classes, [&](int64_t, int64_t) EXTENSOR_INLINE_LAMBDA { return e[i]; }));
  for (int64_t i = 0; i < count; ++i) {
    const bool left_out = labels[i] < 0;
    const T* const chosen = one.values + wide_lanes<T> - (left_out ? wide_lanes<T> : labels[i]);
    const auto sum = Vec<T>(double(sums[i])), inverse = 1.0 / sum;
    const Vec<T> factor(left_out ? 0.0 : double(upstream[i * upstream_step]));
    for_each_vector<T>(classes, [&](int64_t k, int64_t n) EXTENSOR_INLINE_LAMBDA {
      store_first(out + i * classes + k, (share_of(part_of(e[i], int(k / Vec<T>::lanes)), sum, inverse) - load(chosen + k)) * factor, n);
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
      // A row that is left out is multiplied by 0, so that its nan stay.
      if (is_short) {
        backward_of_short_rows(some, labels + first, upstream + first * upstream_step, upstream_step, count, classes, to);
      } else {
        softmax_row(some, classes, to);
        if (labels[first] >= 0) to[labels[first]] -= T(1);
        const Vec<T> factor(labels[first] < 0 ? 0.0 : double(upstream[first * upstream_step]));
        for_each_vector<T>(classes, [&](int64_t k, int64_t n) EXTENSOR_INLINE_LAMBDA { store_first(to + k, load_first(to + k, n) * factor, n); });
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
