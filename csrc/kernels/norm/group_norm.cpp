// Compiled once per instruction set.
//
// A group of one element of the batch is a row of n neighbours, whose channels are pieces of `inner` neighbours.
// forward:   1. the mean of the row  2. the mean square around it  3. each channel with its weight and bias
// backward:  1. and 2. again  3. of each channel the sums of dy and of dy u, with u = (x - mean) / s, in float64
//            4. dx = (h - mean(h) - u mean(h u)) / s with h = dy weight; both means follow from the sums of the channels
//            5. the gradients of weight and bias: these sums over the batch, in its order
#include "core/threads.hpp"
#include "core/workspace.hpp"
#include "kernels/norm/norm.hpp"
#include "kernels/norm/statistics.hpp"

namespace extensor::EXTENSOR_ISA {
namespace {

template <class T>
void forward(const GroupNorm<T>& norm, T* y) {
  const int64_t members = norm.channels / norm.groups, inner = norm.inner, n = members * inner;
  parallel_for(norm.batch * norm.groups, double(n) * norm_ns + 20, [&](int64_t begin, int64_t end) {
    for (int64_t r = begin; r < end; ++r) {
      with_normaliser(norm.x + r * n, n, true, norm.eps, y + r * n, [&](const T* x, const Normaliser<T>& unit, T) {
        for (int64_t m = 0; m < members; ++m) {
          const int64_t channel = r % norm.groups * members + m, start = m * inner;
          const Vec<T> weight(norm.weight == nullptr ? 1.0 : double(norm.weight[channel]));
          const Vec<T> bias(norm.bias == nullptr ? 0.0 : double(norm.bias[channel]));
          for_each_vector<T>(inner, [&](int64_t i, int64_t count) EXTENSOR_INLINE_LAMBDA {
            store_first(y + r * n + start + i, fma(unit(load_first(x + start + i, count)), weight, bias), count);
          });
        }
      });
    }
  });
}

template <class T>
void backward(const GroupNorm<T>& norm, const T* g, double* sums, T* grad_x, T* grad_weight, T* grad_bias) {
  const int64_t members = norm.channels / norm.groups, inner = norm.inner, n = members * inner;
  const int64_t all = norm.batch * norm.channels;
  double* const plain = sums;
  double* const along = sums + all;
  const auto row_backward = [&](int64_t r, const T* x, const Normaliser<T>& unit, T factor) {
    const T* grad = g + r * n;
    double sum_h = 0, sum_hu = 0;
    for (int64_t m = 0; m < members; ++m) {
      const int64_t start = m * inner, place = r * members + m;
      const Sums<2> both = sum_in_fours<T, 2>(inner, [&](int64_t i, int64_t count, Wide<T>(&few)[2]) EXTENSOR_INLINE_LAMBDA {
        const Wide<T> dy = load_wide(grad + start + i, count);
        few[0] = few[0] + dy, few[1] = fma(dy, unit(load_wide(x + start + i, count)), few[1]);
      });
      plain[place] = both.of[0], along[place] = both.of[1];
      const double weight = norm.weight == nullptr ? 1.0 : double(norm.weight[place % norm.channels]);
      sum_h += weight * plain[place], sum_hu += weight * along[place];
    }
    if (grad_x == nullptr) return;
    const Vec<T> minus_h(-sum_h / double(n)), minus_hu(-sum_hu / double(n)), inverse = unit.inverse * broadcast(factor);
    for (int64_t m = 0; m < members; ++m) {
      const int64_t start = m * inner;
      const Vec<T> weight(norm.weight == nullptr ? 1.0 : double(norm.weight[(r * members + m) % norm.channels]));
      for_each_vector<T>(inner, [&](int64_t i, int64_t count) EXTENSOR_INLINE_LAMBDA {
        const Vec<T> u = unit(load_first(x + start + i, count)), h_less = fma(load_first(grad + start + i, count), weight, minus_h);
        store_first(grad_x + r * n + start + i, fma(u, minus_hu, h_less) * inverse, count);
      });
    }
  };
  parallel_for(norm.batch * norm.groups, double(n) * norm_ns * 3 + 40, [&](int64_t begin, int64_t end) {
    Workspace<T> room(grad_x == nullptr ? n : 0);
    for (int64_t r = begin; r < end; ++r)
      with_normaliser(norm.x + r * n, n, true, norm.eps, grad_x == nullptr ? room.data() : grad_x + r * n,
                      [&](const T* x, const Normaliser<T>& unit, T factor) { row_backward(r, x, unit, factor); });
  });
  for (int64_t channel = 0; channel < norm.channels; ++channel) {
    double weight = 0, bias = 0;
    for (int64_t place = channel; place < all; place += norm.channels) weight += along[place], bias += plain[place];
    if (grad_weight != nullptr) grad_weight[channel] = T(weight);
    if (grad_bias != nullptr) grad_bias[channel] = T(bias);
  }
}

}  // namespace

const GroupNormTable& group_norm_table() {
  static constexpr GroupNormTable table = {{forward<float>, backward<float>}, {forward<double>, backward<double>}};
  return table;
}

}  // namespace extensor::EXTENSOR_ISA
