// The sum of the rows of a matrix of half precision, as the gradient of a bias: added up in float64, rounded once.
// Compiled once per instruction set.
#include "core/partial.hpp"
#include "core/threads.hpp"
#include "core/whole.hpp"
#include "kernels/elementwise/convert.hpp"
#include "kernels/matmul/half.hpp"

namespace extensor::EXTENSOR_ISA {
namespace {

constexpr int64_t strip = 128;  // columns that are added up together

template <class S>
void widen_some(const S* from, int64_t count, float* to) {
  if constexpr (std::is_same_v<S, Float16>) widen_float16(from, to, count);
  else widen_bfloat16(from, to, count);
}

template <class S>
void sum_rows(int64_t rows, int64_t columns, const S* x, int64_t row, int64_t column, S* out) {
  parallel_for(ceil_div(columns, strip), double(rows * min_of(columns, strip)) * 0.1, [&](int64_t begin, int64_t end) {
    for (int64_t j = begin * strip; j < min_of(columns, end * strip); j += strip) {
      const int64_t count = min_of(strip, columns - j);
      double sums[strip] = {};
      float wide[strip] = {};
      for (int64_t i = 0; i < rows; ++i) {
        const S* const from = x + i * row + j * column;
        if (column == 1) widen_some(from, count, wide);
        else for (int64_t c = 0; c < count; ++c) widen_some(from + c * column, 1, wide + c);
        for (int64_t c = 0; c < count; c += Floats::lanes) add_to_sums(sums + c, load(wide + c));
      }
      for (int64_t c = 0; c < count; ++c) wide[c] = float(sums[c]);
      if constexpr (std::is_same_v<S, Float16>) narrow_float16(wide, out + j, count);
      else narrow_bfloat16(wide, out + j, count);
    }
  });
}

}  // namespace

void sum_half_rows(DType dtype, int64_t rows, int64_t columns, const void* x, int64_t row, int64_t column, void* out) {
  if (dtype == DType::float16) sum_rows(rows, columns, static_cast<const Float16*>(x), row, column, static_cast<Float16*>(out));
  else sum_rows(rows, columns, static_cast<const BFloat16*>(x), row, column, static_cast<BFloat16*>(out));
}

}  // namespace extensor::EXTENSOR_ISA
