// Counted in blocks: a test stops at the first block that settles it. Compiled once per instruction set.
#include "kernels/reduce/truth.hpp"

#include "core/threads.hpp"
#include "kernels/reduce/states.hpp"

namespace extensor::EXTENSOR_ISA {
namespace {

void store_answer(Truth kind, int64_t count, int64_t length, void* out, int64_t at) {
  if (kind == Truth::count) static_cast<int64_t*>(out)[at] = count;
  else static_cast<uint8_t*>(out)[at] = kind == Truth::any ? count > 0 : count == length;
}

template <class T>
constexpr int64_t block_length = 4096;
template <>
constexpr int64_t block_length<uint8_t> = 8 * 255;  // eight counters of a byte

template <class T>
int64_t count_block(const T* x, int64_t n) {
  uint32_t found = 0;
  for (int64_t i = 0; i < n; ++i) found += x[i] != T(0);
  return found;
}

// Eight bytes at a time, as the digits of one number.
template <>
int64_t count_block(const uint8_t* x, int64_t n) {
  constexpr uint64_t low_bits = 0x0101010101010101, low_seven = 0x7f7f7f7f7f7f7f7f, pairs = 0x00ff00ff00ff00ff;
  uint64_t counts = 0;
  int64_t i = 0;
  for (; i + 8 <= n; i += 8) {
    uint64_t bytes;
    __builtin_memcpy(&bytes, x + i, sizeof bytes);
    counts += (((bytes & low_seven) + low_seven) | bytes) >> 7 & low_bits;
  }
  int64_t found = int64_t(((counts & pairs) + (counts >> 8 & pairs)) * 0x0001000100010001 >> 48);
  for (; i < n; ++i) found += x[i] != 0;
  return found;
}

template <class T>
int64_t count_row(Truth kind, const T* x, int64_t n) {
  int64_t count = 0;
  for (int64_t start = 0; start < n; start += block_length<T>) {
    const int64_t end = min_of(n, start + block_length<T>);
    count += count_block(x + start, end - start);
    if ((kind == Truth::any && count > 0) || (kind == Truth::all && count < end)) break;
  }
  return count;
}

template <class T> struct counter_of;
template <> struct counter_of<uint8_t> { using type = uint8_t; };
template <> struct counter_of<float> { using type = uint32_t; };
template <> struct counter_of<double> { using type = uint64_t; };

// counts[c] += what is true in column c of at most 255 rows. The counters are as wide as the elements, so that a vector
// of one goes with a vector of the other.
template <class T>
void count_columns(const T* x, int64_t row, int64_t rows, int64_t width, int64_t* counts) {
  using Counter = typename counter_of<T>::type;
  Counter found[strip_width] = {};
  for (int64_t r = 0; r < rows; ++r)
    for (int64_t c = 0; c < width; ++c) found[c] = Counter(found[c] + (x[r * row + c] != T(0)));
  for (int64_t c = 0; c < width; ++c) counts[c] += int64_t(found[c]);
}

template <class T>
void run(Truth kind, const ReduceLayout& x, const T* from, void* out) {
  if (has_rows(x)) {
    parallel_for(x.outer, double(x.length) * truth_ns + 2, [&](int64_t begin, int64_t end) {
      for (int64_t o = begin; o < end; ++o) store_answer(kind, count_row(kind, from + o * x.outer_stride, x.length), x.length, out, o);
    });
    return;
  }
  const int64_t strips = ceil_div(x.inner, strip_width);
  parallel_for(x.outer * strips, double(min_of(x.inner, strip_width)) * double(x.length) * truth_ns + 20, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const int64_t o = i / strips, c = i % strips * strip_width, width = min_of(strip_width, x.inner - c);
      int64_t counts[strip_width] = {};
      for (int64_t r = 0; r < x.length; r += 255)
        count_columns(from + o * x.outer_stride + r * x.inner + c, x.inner, min_of(255, x.length - r), width, counts);
      for (int64_t j = 0; j < width; ++j) store_answer(kind, counts[j], x.length, out, o * x.inner + c + j);
    }
  });
}

}  // namespace

const TruthTable& truth_table() {
  static constexpr TruthTable table = {run<uint8_t>, run<float>, run<double>};
  return table;
}

}  // namespace extensor::EXTENSOR_ISA
