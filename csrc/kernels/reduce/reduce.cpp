// Compiled once per instruction set.
#include "kernels/reduce/reduce.hpp"

#include "kernels/reduce/half_sum.hpp"
#include "kernels/reduce/logsumexp.hpp"
#include "kernels/reduce/moments.hpp"
#include "kernels/reduce/states.hpp"

namespace extensor::EXTENSOR_ISA {
namespace {

template <class Op, class T>
void reduce_with(const ReduceLayout& x, const T* from, T* out, double element_ns, double ddof) {
  const double count = double(x.pieces * x.length);
  if (has_rows(x)) {
    for_each_row<Op>(x, from, element_ns, [&](int64_t o, State total) EXTENSOR_INLINE_LAMBDA { out[o] = T(Op::result(total, count, ddof)); });
    return;
  }
  for_each_strip<Op>(x, from, element_ns, [&](int64_t o, int64_t c, int64_t width, const State* totals) EXTENSOR_INLINE_LAMBDA {
    T* to = out + o * x.inner + c;
    for (int64_t i = 0; i < width; ++i) to[i] = T(Op::result(totals[i], count, ddof));
  });
}

template <class T>
void reduce_any(Reduction kind, const ReduceLayout& x, const T* from, T* out, double ddof) {
  const double ns = reduce_ns(kind, sizeof(T) / 4.0);
  switch (kind) {
    case Reduction::sum: return reduce_with<Fold<T, Add, double>>(x, from, out, ns, ddof);
    case Reduction::mean: return reduce_with<Fold<T, Add, double, true>>(x, from, out, ns, ddof);
    case Reduction::prod: return reduce_with<Fold<T, Multiply, double>>(x, from, out, ns, ddof);
    case Reduction::max: return reduce_with<Fold<T, Largest, T>>(x, from, out, ns, ddof);
    case Reduction::min: return reduce_with<Fold<T, Smallest, T>>(x, from, out, ns, ddof);
    case Reduction::variance: return reduce_with<Moments<T, false>>(x, from, out, ns, ddof);
    case Reduction::std: return reduce_with<Moments<T, true>>(x, from, out, ns, ddof);
    case Reduction::logsumexp: return reduce_with<LogSumExp<T>>(x, from, out, ns, ddof);
  }
}

}  // namespace

const ReduceTable& reduce_table() {
  static constexpr ReduceTable table = {reduce_any<float>, reduce_any<double>, reduce_half};
  return table;
}

}  // namespace extensor::EXTENSOR_ISA
