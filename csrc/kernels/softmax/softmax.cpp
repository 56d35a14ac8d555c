// Compiled once per instruction set.
#include "kernels/softmax/softmax.hpp"

#include "core/threads.hpp"
#include "kernels/convert/stored_rows.hpp"
#include "kernels/softmax/columns.hpp"

namespace extensor::EXTENSOR_ISA {
namespace {

template <class T>
void run_rows(Softmax kind, DType stored, int64_t outer, int64_t n, const void* a, const void* b, void* out) {
  parallel_for(outer, double(n) * softmax_ns(kind) * (sizeof(T) / 4.0) + 10, [&](int64_t begin, int64_t end) {
    RowsIn<T> first(a, stored, n), second(b, stored, n);
    RowsOut<T> result(out, stored, n);
    for (int64_t o = begin; o < end; ++o) {
      const T *const x = first.at(o), *const y = second.at(o);
      T* const to = result.at(o);
      switch (kind) {
        case Softmax::forward: softmax_row(x, n, to); break;
        case Softmax::backward: softmax_backward_row(x, y, n, to); break;
        case Softmax::log_forward: log_softmax_row(x, n, to); break;
        case Softmax::log_backward: log_softmax_backward_row(x, y, n, to); break;
      }
      result.done(o);
    }
  });
}

template <class T>
void run_columns(Softmax kind, int64_t outer, int64_t length, int64_t inner, const T* a, const T* b, T* out) {
  // A strip is read two or three times and should stay in the cache, but pieces of rows far apart come in slowly.
  int64_t width = 128 * 1024 / (length * int64_t(sizeof(T)) + 1) / 16 * 16;
  width = width < 256 ? 256 : width > strip_width ? strip_width : width;
  const int64_t strips = (inner + width - 1) / width;
  const double ns = double(length) * double(min_of(width, inner)) * softmax_ns(kind) * (sizeof(T) / 4.0) + 50;
  parallel_for(outer * strips, ns, [&](int64_t begin, int64_t end) {
    Strip<T> strip;
    for (int64_t i = begin; i < end; ++i) {
      const int64_t c = i % strips * width, at = i / strips * length * inner + c, columns = min_of(width, inner - c);
      switch (kind) {
        case Softmax::forward: softmax_columns(a + at, inner, length, columns, out + at, strip); break;
        case Softmax::backward: softmax_backward_columns(a + at, b + at, inner, length, columns, out + at, strip); break;
        case Softmax::log_forward: log_softmax_columns(a + at, inner, length, columns, out + at, strip); break;
        case Softmax::log_backward: log_softmax_backward_columns(a + at, b + at, inner, length, columns, out + at, strip); break;
      }
    }
  });
}

template <class T>
void run(Softmax kind, DType stored, int64_t outer, int64_t length, int64_t inner, const void* a, const void* b, void* out) {
  if (inner == 1) run_rows<T>(kind, stored, outer, length, a, b, out);
  else run_columns(kind, outer, length, inner, static_cast<const T*>(a), static_cast<const T*>(b), static_cast<T*>(out));
}

}  // namespace

const SoftmaxTable& softmax_table() {
  static constexpr SoftmaxTable table = {run<float>, run<double>};
  return table;
}

}  // namespace extensor::EXTENSOR_ISA
