// Compiled once per instruction set.
//
// Sums are added up in float64, of rows from four float32 at a time.
#include "kernels/norm/norm.hpp"

#include <type_traits>

#include "core/threads.hpp"
#include "core/workspace.hpp"
#include "kernels/convert/stored_rows.hpp"
#include "kernels/elementwise/slopes.hpp"
#include "kernels/norm/statistics.hpp"

namespace extensor::EXTENSOR_ISA {
namespace {

// Rows that go through each pass together: none waits for another's root, and sums over the rows are widened once for all of
// them. Longer rows would push each other out of the cache.
constexpr int most_rows = wide_lanes<double>;

template <class T>
EXTENSOR_INLINE int64_t rows_at_once(const RowNorm<T>& norm) {
  return norm.n * int64_t(sizeof(T)) <= 4096 ? most_rows : 1;
}

// body(first row, how many) for rows begin .. end, a few at a time or one by one.
template <class T, class Body>
EXTENSOR_INLINE void for_a_few_rows(const RowNorm<T>& norm, int64_t begin, int64_t end, const Body& body) {
  int64_t r = begin;
  if (rows_at_once(norm) > 1)
    for (; r + most_rows <= end; r += most_rows) body(r, std::integral_constant<int, most_rows>());
  for (; r < end; ++r) body(r, std::integral_constant<int, 1>());
}

template <class T>
EXTENSOR_INLINE void write_row(const RowNorm<T>& norm, const T* x, const Normaliser<T>& unit, T* to) {
  for_each_vector<T>(norm.n, [&](int64_t i, int64_t count) EXTENSOR_INLINE_LAMBDA {
    Vec<T> value = unit(load_first(x + i, count));
    const Vec<T> bias = norm.bias == nullptr ? Vec<T>(0.0) : load_first(norm.bias + i, count);
    if (norm.weight != nullptr) value = fma(value, load_first(norm.weight + i, count), bias);
    else value = value + bias;
    store_first(to + i, value, count);
  });
}

template <class T>
void rows(const RowNorm<T>& norm, void* y) {
  const int64_t n = norm.n;
  parallel_for(norm.rows, double(n) * norm_ns + 10, [&](int64_t begin, int64_t end) {
    RowsIn<T> source(norm.x, norm.stored, n, rows_at_once(norm));
    RowsOut<T> result(y, norm.stored, n, rows_at_once(norm));
    for_a_few_rows(norm, begin, end, [&](int64_t r, auto wanted) {
      Normaliser<T> units[wanted];
      const T* const from = source.at(r, wanted);
      T* const to = result.at(r);
      const bool ordinary = normalise_rows(from, n, norm.centre, norm.eps, units);
      for (int k = 0; ordinary && k < wanted; ++k) write_row(norm, from + k * n, units[k], to + k * n);
      for (int k = 0; !ordinary && k < wanted; ++k)
        with_normaliser(from + k * n, n, norm.centre, norm.eps, to + k * n,
                        [&](const T* x, const Normaliser<T>& unit, T) { write_row(norm, x, unit, to + k * n); });
      result.done(r, wanted);
    });
  });
}

// dx = (h - mean(h) - u mean(h u)) / s with h = dy weight and u = (x - mean) / s; adds to the sums of weight and bias. 1 / s is
// `factor` times the inverse of the units.
template <class T, int Count>
EXTENSOR_INLINE void backward_rows(const RowNorm<T>& norm, const T* x, const Normaliser<T> (&units)[Count], T factor, const T* g,
                                   T* grad_x, double* weight_sums, double* bias_sums) {
  const int64_t n = norm.n;
  const auto unit = [&](int k, int64_t i, int64_t count) EXTENSOR_INLINE_LAMBDA { return units[k](load_first(x + k * n + i, count)); };
  const auto scaled = [&](Vec<T> grad, int64_t i, int64_t count) EXTENSOR_INLINE_LAMBDA {
    return norm.weight == nullptr ? grad : grad * load_first(norm.weight + i, count);
  };
  T minus_h[most_rows] = {}, minus_hu[most_rows] = {};  // minus the means of h and of h u
  if (grad_x != nullptr) {
    Wide<double> of_h[Count], of_hu[Count];
    for (int k = 0; k < Count; ++k) {
      const SumsInLanes<2> sums = lanes_in_fours<T, 2>(n, [&](int64_t i, int64_t count, Wide<T>(&sums)[2]) EXTENSOR_INLINE_LAMBDA {
        Wide<T> h = load_wide(g + k * n + i, count);
        if (norm.weight != nullptr) h = h * load_wide(norm.weight + i, count);
        sums[0] = sums[0] + h, sums[1] = fma(h, units[k](load_wide(x + k * n + i, count)), sums[1]);
      });
      of_h[k] = sums.of[0], of_hu[k] = sums.of[1];
    }
    const Vec<double> minus_length{-double(n)};
    if (norm.centre) store_wide_as<T>(minus_h, sums_of_lanes(of_h) / minus_length);
    store_wide_as<T>(minus_hu, sums_of_lanes(of_hu) / minus_length);
  }
  Vec<T> inverse[Count];
  for (int k = 0; k < Count; ++k) inverse[k] = units[k].inverse * broadcast(factor);
  for_each_vector<T>(n, [&](int64_t i, int64_t count) EXTENSOR_INLINE_LAMBDA {
    Vec<T> along[Count], plain[Count];
    for (int k = 0; k < Count; ++k) {
      const Vec<T> u = unit(k, i, count), grad = load_first(g + k * n + i, count);
      if (grad_x != nullptr)
        store_first(grad_x + k * n + i, fma(u, broadcast(minus_hu[k]), scaled(grad, i, count) + broadcast(minus_h[k])) * inverse[k], count);
      along[k] = grad * u, plain[k] = grad;
    }
    for (int half = Count / 2; half > 0; half /= 2)
      for (int k = 0; k < half; ++k) along[k] = along[k] + along[k + half], plain[k] = plain[k] + plain[k + half];
    if (weight_sums != nullptr) add_to_sums(weight_sums + i, along[0]);
    if (bias_sums != nullptr) add_to_sums(bias_sums + i, plain[0]);
  });
}

template <class T>
void rows_backward(const RowNorm<T>& norm, const void* g, void* grad_x, T* grad_weight, T* grad_bias) {
  constexpr int64_t most_parts = 32;
  const int64_t n = norm.n, padded = (n + Vec<T>::lanes - 1) / Vec<T>::lanes * Vec<T>::lanes;
  Chunks chunks = plan_chunks(norm.rows, double(n) * norm_ns * 3 + 20);
  const int64_t smallest = (norm.rows + most_parts - 1) / most_parts;
  if (chunks.size < smallest) chunks.size = smallest;
  chunks.size = (chunks.size + most_rows - 1) / most_rows * most_rows;
  chunks.count = (norm.rows + chunks.size - 1) / chunks.size;
  const bool sums = grad_weight != nullptr || grad_bias != nullptr;
  Workspace<double> room(sums ? chunks.count * 2 * padded : 0);
  double* const parts = sums ? room.data() : nullptr;
  parallel_chunks(norm.rows, chunks, [&](int64_t begin, int64_t end) {
    double* mine = parts == nullptr ? nullptr : parts + begin / chunks.size * 2 * padded;
    for (int64_t i = 0; mine != nullptr && i < 2 * padded; ++i) mine[i] = 0;
    Workspace<T> room(grad_x == nullptr ? n : 0);
    double *const weight_sums = grad_weight == nullptr ? nullptr : mine, *const bias_sums = grad_bias == nullptr ? nullptr : mine + padded;
    const int64_t few = rows_at_once(norm);
    RowsIn<T> source(norm.x, norm.stored, n, few), upstream(g, norm.stored, n, few);
    RowsOut<T> result(grad_x, norm.stored, n, few);
    for_a_few_rows(norm, begin, end, [&](int64_t r, auto wanted) {
      Normaliser<T> units[wanted];
      const T *const from = source.at(r, wanted), *const arriving = upstream.at(r, wanted);
      T* const to = result.at(r);
      if (normalise_rows(from, n, norm.centre, norm.eps, units))
        backward_rows<T, wanted>(norm, from, units, T(1), arriving, to, weight_sums, bias_sums);
      else
        for (int k = 0; k < wanted; ++k) {
          T* const grads = to == nullptr ? nullptr : to + k * n;
          with_normaliser(from + k * n, n, norm.centre, norm.eps, grads == nullptr ? room.data() : grads,
                          [&](const T* x, const Normaliser<T>& unit, T factor) {
                            const Normaliser<T> alone[1] = {unit};
                            backward_rows<T, 1>(norm, x, alone, factor, arriving + k * n, grads, weight_sums, bias_sums);
                          });
        }
      result.done(r, wanted);
    });
  });
  for (int64_t c = 1; sums && c < chunks.count; ++c)
    for (int64_t i = 0; i < 2 * padded; ++i) parts[i] += parts[c * 2 * padded + i];
  for (int64_t i = 0; sums && i < n; ++i) {
    if (grad_weight != nullptr) grad_weight[i] = T(parts[i]);
    if (grad_bias != nullptr) grad_bias[i] = T(parts[padded + i]);
  }
}

// Sums over one channel, around `shift`: of the distances d, of d^2, and with a gradient of g and g d.
struct ChannelSums {
  double d = 0, dd = 0, g = 0, gd = 0;
};

// A vector of the gradient that arrives, from `at` on, made of its parts and left where it is wanted.
template <class T>
EXTENSOR_INLINE Wide<T> arriving(const ChannelGradient<T>& gradient, int64_t at, int64_t count) {
  Wide<T> g = load_wide(gradient.g + at, count);
  if (gradient.passed == nullptr) return g;
  if (gradient.added != nullptr) g = g + load_wide(gradient.added + at, count);
  const Wide<T> relu = load_wide(gradient.passed + at, count);
  for (int p = 0; p < wide_parts; ++p) part_of(g, p) = passed(part_of(g, p), part_of(relu, p), part_of(relu, p) > 0.0);
  if (gradient.made != nullptr) store_wide(gradient.made + at, g, count);
  return g;
}

template <class T, bool with_gradient>
EXTENSOR_INLINE ChannelSums channel_sums(const ChannelNorm<T>& norm, int64_t channel, const ChannelGradient<T>& gradient, double shift) {
  constexpr int lanes = wide_lanes<T>, parts = lanes / wide_lanes<double>;
  const Vec<double> centre(shift);
  Wide<double> d_sum[parts], dd_sum[parts], g_sum[parts], gd_sum[parts];  // a chain for each part of a vector: they overlap
  for (int part = 0; part < parts; ++part) d_sum[part] = dd_sum[part] = g_sum[part] = gd_sum[part] = Wide<double>(0.0);
  for (int64_t b = 0; b < norm.batch; ++b) {
    // The rows of a channel lie far apart, often each in a page of its own, where the processor does not look ahead.
    const int64_t at = (b * norm.channels + channel) * norm.inner, next = b + 1 < norm.batch ? at + norm.channels * norm.inner : at;
    const auto add = [&](int64_t i, int64_t count) EXTENSOR_INLINE_LAMBDA {
      __builtin_prefetch(norm.x + next + i);
      if constexpr (with_gradient) {
        __builtin_prefetch(gradient.g + next + i);
        if (gradient.passed != nullptr) __builtin_prefetch(gradient.passed + next + i);
        if (gradient.added != nullptr) __builtin_prefetch(gradient.added + next + i);
      }
      const Wide<T> x = load_wide(norm.x + at + i, count, T(shift));
      Wide<T> grad(0.0);
      if constexpr (with_gradient) grad = arriving(gradient, at + i, count);
      for (int part = 0; part < parts; ++part) {
        const Wide<double> d = widened_part(x, part) - centre;
        d_sum[part] = d_sum[part] + d, dd_sum[part] = fma(d, d, dd_sum[part]);
        if constexpr (with_gradient) {
          const Wide<double> wide = widened_part(grad, part);
          g_sum[part] = g_sum[part] + wide, gd_sum[part] = fma(wide, d, gd_sum[part]);
        }
      }
    };
    int64_t i = 0;
    for (; i + lanes <= norm.inner; i += lanes) add(i, lanes);
    if (i < norm.inner) add(i, norm.inner - i);
  }
  const auto total = [](const Wide<double>(&sums)[parts]) EXTENSOR_INLINE_LAMBDA {
    return fold_lanes<Add>(parts == 1 ? sums[0] : sums[0] + sums[parts - 1]);
  };
  return {total(d_sum), total(dd_sum), total(g_sum), total(gd_sum)};
}

// body(at, count): the vectors of one channel.
template <class T, class Body>
EXTENSOR_INLINE void for_each_in_channel(const ChannelNorm<T>& norm, int64_t channel, const Body& body) {
  for (int64_t b = 0; b < norm.batch; ++b) {
    const int64_t at = (b * norm.channels + channel) * norm.inner;
    for_each_vector<T>(norm.inner, [&](int64_t i, int64_t count) EXTENSOR_INLINE_LAMBDA { body(at + i, count); });
  }
}

template <class T>
void channels(const ChannelNorm<T>& norm, T* y, T* new_mean, T* new_var) {
  const int64_t n = norm.batch * norm.inner;
  parallel_for(norm.channels, double(n) * norm_ns * 2 + 50, [&](int64_t begin, int64_t end) {
    for (int64_t c = begin; c < end; ++c) {
      double mean, var;
      if (norm.training) {
        const double shift = double(norm.x[c * norm.inner]);
        const ChannelSums sums = channel_sums<T, false>(norm, c, {nullptr}, shift);
        const double off = sums.d / double(n), squares = sums.dd - sums.d * off;
        mean = shift + off, var = squares / double(n);
        if (var < 0) var = 0;
        if (new_mean != nullptr) new_mean[c] = T((1 - norm.momentum) * double(norm.running_mean[c]) + norm.momentum * mean);
        if (new_var != nullptr)
          new_var[c] = T((1 - norm.momentum) * double(norm.running_var[c]) + norm.momentum * (var * double(n) / double(n - 1)));
      } else {
        mean = double(norm.running_mean[c]), var = double(norm.running_var[c]);
      }
      const Centre<T> centred(mean);
      const double weight = norm.weight == nullptr ? 1.0 : double(norm.weight[c]);
      const Vec<T> scale(weight / __builtin_sqrt(var + norm.eps)), bias(norm.bias == nullptr ? 0.0 : double(norm.bias[c]));
      for_each_in_channel(norm, c, [&](int64_t at, int64_t count) EXTENSOR_INLINE_LAMBDA {
        Vec<T> value = fma(centred(load_first(norm.x + at, count)), scale, bias);
        if (norm.added != nullptr) value = value + load_first(norm.added + at, count);
        if (norm.relu) value = at_least(Vec<T>(0.0), value);
        store_first(y + at, value, count);
      });
    }
  });
}

// dx = along_g g + along_x (x - mean) + rest
template <class T>
void channels_backward(const ChannelNorm<T>& norm, const ChannelGradient<T>& gradient, const T* g_mean, const T* g_var, T* grad_x, T* grad_weight,
                       T* grad_bias) {
  const int64_t n = norm.batch * norm.inner;
  const T* g = gradient.passed == nullptr ? gradient.g : gradient.made;
  parallel_for(norm.channels, double(n) * norm_ns * 3 + 50, [&](int64_t begin, int64_t end) {
    for (int64_t c = begin; c < end; ++c) {
      const double shift = norm.training ? double(norm.x[c * norm.inner]) : double(norm.running_mean[c]);
      const ChannelSums sums = channel_sums<T, true>(norm, c, gradient, shift);
      const double off = norm.training ? sums.d / double(n) : 0.0, mean = shift + off;
      double var = norm.training ? (sums.dd - sums.d * off) / double(n) : double(norm.running_var[c]);
      if (norm.training && var < 0) var = 0;
      const double inverse = 1 / __builtin_sqrt(var + norm.eps), along = sums.gd - off * sums.g;  // along: sum of g (x - mean)
      if (grad_weight != nullptr) grad_weight[c] = T(along * inverse);
      if (grad_bias != nullptr) grad_bias[c] = T(sums.g);
      if (grad_x == nullptr) continue;
      const double scale = (norm.weight == nullptr ? 1.0 : double(norm.weight[c])) * inverse;
      double along_x = 0, rest = 0;
      if (norm.training) {
        along_x = -scale * inverse * inverse * along / double(n) + 2 * norm.momentum * (g_var == nullptr ? 0.0 : double(g_var[c])) / double(n - 1);
        rest = (norm.momentum * (g_mean == nullptr ? 0.0 : double(g_mean[c])) - scale * sums.g) / double(n);
      }
      const Centre<T> centred(mean);
      const Vec<T> by_g(scale), by_x(along_x), plus(rest);
      for_each_in_channel(norm, c, [&](int64_t at, int64_t count) EXTENSOR_INLINE_LAMBDA {
        Vec<T> value = load_first(g + at, count) * by_g;
        if (norm.training) value = fma(centred(load_first(norm.x + at, count)), by_x, value) + plus;
        store_first(grad_x + at, value, count);
      });
    }
  });
}

}  // namespace

const NormTable& norm_table() {
  static constexpr NormTable table = {{rows<float>, rows_backward<float>, channels<float>, channels_backward<float>},
                                      {rows<double>, rows_backward<double>, channels<double>, channels_backward<double>}};
  return table;
}

}  // namespace extensor::EXTENSOR_ISA
