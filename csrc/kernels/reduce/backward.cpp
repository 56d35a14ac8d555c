// Two numbers describe a slice; then each of its elements is one line of arithmetic with them. A row, or a strip of
// columns, is written while it is still in the cache from being read. Compiled once per instruction set.
#include "kernels/reduce/backward.hpp"

#include "core/threads.hpp"
#include "kernels/reduce/extremes.hpp"
#include "kernels/reduce/logsumexp_backward.hpp"
#include "kernels/reduce/moments.hpp"
#include "kernels/reduce/product_backward.hpp"
#include "kernels/reduce/states.hpp"

namespace extensor::EXTENSOR_ISA {
namespace {

// What an element's gradient is computed from, in the precision it is computed in.
template <class A>
struct Pair {
  A first, second;
};

// The extreme elements share the gradient equally; a nan makes all of its slice nan.
template <class T, class Step>
struct ExtremeGradient {
  using Statistics = Extremes<T, Step>;
  using Number = T;
  static EXTENSOR_INLINE Pair<T> describe(State slice, T g, double, double) {
    const bool is_nan = slice.first != slice.first;
    return {T(slice.first), is_nan ? T(slice.first) : g / T(slice.second)};
  }
  static EXTENSOR_INLINE Vec<T> at(Vec<T> x, Vec<T> extreme, Vec<T> share) { return keep(x == extreme || isnan(extreme), share); }
};

// g * 2 / (n - ddof) * (x - mean), and for a deviation g / std / (n - ddof) * (x - mean).
template <class T, class Of>
struct CenteredGradient {
  using Statistics = Of;
  using Number = double;
  static EXTENSOR_INLINE double freedom(double count, double ddof) { return count < ddof ? 0.0 : count - ddof; }
  static EXTENSOR_INLINE Vec<double> at(Vec<double> x, Vec<double> mean, Vec<double> factor) { return factor * (x - mean); }
};
template <class T>
struct VarianceGradient : CenteredGradient<T, Fold<T, Add, double>> {
  static EXTENSOR_INLINE Pair<double> describe(State slice, T g, double count, double ddof) {
    return {slice.first / count, double(g) * (2.0 / VarianceGradient::freedom(count, ddof))};
  }
};
template <class T>
struct DeviationGradient : CenteredGradient<T, Moments<T, true>> {
  static EXTENSOR_INLINE Pair<double> describe(State slice, T g, double count, double ddof) {
    const double divisor = DeviationGradient::freedom(count, ddof), deviation = __builtin_sqrt(slice.second / divisor);
    return {slice.first, (deviation == 0 ? 0.0 : double(g) / deviation) * (1.0 / divisor)};
  }
};

// The numbers of one slice for every element, or those of each column.
template <class A>
struct Same {
  Vec<A> value;
  EXTENSOR_INLINE explicit Same(A number) : value(double(number)) {}
  EXTENSOR_INLINE Vec<A> at(int64_t) const { return value; }
};
template <class A>
struct Each {
  const A* from;
  EXTENSOR_INLINE Vec<A> at(int64_t i) const { return load(from + i); }
};

template <class Gradient, class T, class Numbers>
EXTENSOR_INLINE void write_vectors(const T* x, int64_t n, const Numbers& first, const Numbers& second, T* out) {
  using Number = typename Gradient::Number;
  constexpr int lanes = Vec<Number>::lanes;
  int64_t i = 0;
  for (; i + lanes <= n; i += lanes) store_as(out + i, Gradient::at(load_as<Number>(x + i), first.at(i), second.at(i)));
  if (i == n) return;
  T last[lanes];
  store_as(last, Gradient::at(load_first_as<Number>(x + i, n - i, Number(0)), first.at(i), second.at(i)));
  for (int64_t j = i; j < n; ++j) out[j] = last[j - i];
}

template <class Gradient, class T>
void run_rows(const ReduceLayout& layout, const T* g, const T* x, T* out, double element_ns, double ddof) {
  using Number = typename Gradient::Number;
  const int64_t length = layout.length;
  for_each_row<typename Gradient::Statistics>(layout, x, element_ns, [&](int64_t o, State slice) {
    const Pair<Number> numbers = Gradient::describe(slice, g[o], double(length), ddof);
    const Same<Number> first(numbers.first), second(numbers.second);
    const auto write = [&](int64_t begin, int64_t end) {
      write_vectors<Gradient>(x + o * length + begin, end - begin, first, second, out + o * length + begin);
    };
    if (layout.outer >= enough_results) write(0, length);
    else parallel_for(length, element_ns, write);
  });
}

template <class Gradient, class T>
void run_columns(const ReduceLayout& layout, const T* g, const T* x, T* out, double element_ns, double ddof) {
  using Number = typename Gradient::Number;
  const int64_t length = layout.length, inner = layout.inner;
  for_each_strip<typename Gradient::Statistics>(layout, x, element_ns, [&](int64_t o, int64_t c, int64_t width, const State* slices) {
    Number first[strip_width + Vec<Number>::lanes], second[strip_width + Vec<Number>::lanes];
    for (int64_t i = 0; i < width; ++i) {
      const Pair<Number> numbers = Gradient::describe(slices[i], g[o * inner + c + i], double(length), ddof);
      first[i] = numbers.first, second[i] = numbers.second;
    }
    for (int64_t i = width; i < width + Vec<Number>::lanes; ++i) first[i] = second[i] = 0;
    parallel_for(length, double(width) * element_ns, [&](int64_t begin, int64_t end) {
      for (int64_t r = begin; r < end; ++r) {
        const int64_t at = (o * length + r) * inner + c;
        write_vectors<Gradient>(x + at, width, Each<Number>{first}, Each<Number>{second}, out + at);
      }
    });
  });
}

template <class Gradient, class T>
void run_with(const ReduceLayout& layout, const T* g, const T* x, T* out, double element_ns, double ddof) {
  if (has_rows(layout)) run_rows<Gradient>(layout, g, x, out, element_ns, ddof);
  else run_columns<Gradient>(layout, g, x, out, element_ns, ddof);
}

template <class T>
void run(ReduceGradient kind, const ReduceLayout& layout, const T* g, const T* x, T* out, double ddof) {
  const double ns = reduce_backward_ns(kind) * (sizeof(T) / 4.0);
  switch (kind) {
    case ReduceGradient::max: return run_with<ExtremeGradient<T, Largest>>(layout, g, x, out, ns, ddof);
    case ReduceGradient::min: return run_with<ExtremeGradient<T, Smallest>>(layout, g, x, out, ns, ddof);
    case ReduceGradient::variance: return run_with<VarianceGradient<T>>(layout, g, x, out, ns, ddof);
    case ReduceGradient::std: return run_with<DeviationGradient<T>>(layout, g, x, out, ns, ddof);
    case ReduceGradient::prod: return product_backward(layout, g, x, out, ns);
    case ReduceGradient::logsumexp:
      return has_rows(layout) ? logsumexp_backward_rows(layout, g, x, out, ns) : logsumexp_backward_columns(layout, g, x, out, ns);
  }
}

// Every result to all elements of its slice.
template <class T, class Divide>
EXTENSOR_INLINE void spread(const ReduceLayout& layout, const T* g, T* out, const Divide& divided) {
  const int64_t length = layout.length, inner = layout.inner;
  for (int64_t o = 0; o < layout.outer; ++o, g += inner, out += length * inner) {
    if (inner == 1) {
      const T value = divided(*g);
      for (int64_t i = 0; i < length; ++i) out[i] = value;
      continue;
    }
    for (int64_t i = 0; i < inner; ++i) out[i] = divided(g[i]);
    for (int64_t r = 1; r < length; ++r) __builtin_memcpy(out + r * inner, out, size_t(inner) * sizeof(T));
  }
}

template <class T>
void spread_divided(const ReduceLayout& layout, const T* g, T* out, double divisor) {
  const T by = T(divisor);
  spread(layout, g, out, [by](T value) EXTENSOR_INLINE_LAMBDA { return value / by; });
}

void spread_bits(const ReduceLayout& layout, const uint16_t* g, uint16_t* out) {
  spread(layout, g, out, [](uint16_t value) EXTENSOR_INLINE_LAMBDA { return value; });
}

}  // namespace

const ReduceBackwardTable& reduce_backward_table() {
  static constexpr ReduceBackwardTable table = {run<float>, run<double>, spread_bits, spread_divided<float>, spread_divided<double>};
  return table;
}

}  // namespace extensor::EXTENSOR_ISA
