// Compiled once per instruction set.
#include "kernels/loss/cross_entropy.hpp"

#include "core/threads.hpp"
#include "kernels/softmax/rows.hpp"

namespace extensor::EXTENSOR_ISA {
namespace {

constexpr double element_ns = 0.8;
// Rows whose logarithms are taken together.
constexpr int64_t together = Vec<double>::lanes;

template <class T>
void forward(int64_t rows, int64_t classes, const T* x, const int64_t* labels, T* losses) {
  parallel_for(rows, double(classes) * element_ns + 20, [&](int64_t begin, int64_t end) {
    for (int64_t first = begin; first < end; first += together) {
      const int64_t count = end - first < together ? end - first : together;
      // One step for all rows before the next: the steps of one row wait for each other.
      T largest[together];
      double sums[together], chosen[together];  // of exponentials; and the logit of the label, below the largest
      for (int64_t i = 0; i < count; ++i) largest[i] = T(fold_row<Largest, T>(x + (first + i) * classes, classes));
      for (int64_t i = 0; i < together; ++i) {
        sums[i] = 1, chosen[i] = 0;
        if (i >= count || labels[first + i] < 0) continue;
        const T* row = x + (first + i) * classes;
        sums[i] = sum_of_exp(row, classes, Vec<T>(double(largest[i])));
        chosen[i] = double(row[labels[first + i]] - largest[i]);
      }
      store(sums, log(load(sums)) - load(chosen));
      for (int64_t i = 0; i < count; ++i) losses[first + i] = T(sums[i]);
    }
  });
}

template <class T>
void backward(int64_t rows, int64_t classes, const T* x, const int64_t* labels, const T* upstream, int64_t upstream_step, T* out) {
  parallel_for(rows, double(classes) * element_ns + 20, [&](int64_t begin, int64_t end) {
    for (int64_t r = begin; r < end; ++r) {
      const T* row = x + r * classes;
      T* to = out + r * classes;
      // A row that is left out is multiplied by 0, so that its nan stay.
      const T scale = labels[r] < 0 ? T(0) : upstream[r * upstream_step];
      softmax_row(row, classes, to);
      if (labels[r] >= 0) to[labels[r]] -= T(1);
      for_each_vector<T>(classes, [&](int64_t i, int64_t count) EXTENSOR_INLINE_LAMBDA {
        store_first(to + i, load_first(to + i, count) * Vec<T>(double(scale)), count);
      });
    }
  });
}

}  // namespace

const CrossEntropyTable& cross_entropy_table() {
  static constexpr CrossEntropyTable table = {forward<float>, forward<double>, backward<float>, backward<double>};
  return table;
}

}  // namespace extensor::EXTENSOR_ISA
