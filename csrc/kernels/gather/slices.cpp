// Compiled once per instruction set.
#include "kernels/gather/slices.hpp"

#include "core/partial.hpp"

namespace extensor::EXTENSOR_ISA {
namespace {

// The columns of `Vectors` vectors, whose sums stay in registers.
template <int Vectors, class T>
EXTENSOR_INLINE void add_columns(const int64_t* members, int64_t count, int64_t inner, const T* g, T* out) {
  constexpr int lanes = Vec<double>::lanes;
  Vec<double> totals[Vectors];
  for (int v = 0; v < Vectors; ++v) totals[v] = load_as<double>(g + members[0] * inner + v * lanes);
  for (int64_t m = 1; m < count; ++m)
    for (int v = 0; v < Vectors; ++v) totals[v] = totals[v] + load_as<double>(g + members[m] * inner + v * lanes);
  for (int v = 0; v < Vectors; ++v) store_as<T>(out + v * lanes, totals[v]);
}

template <class T>
void add(const int64_t* members, int64_t count, int64_t inner, const T* g, T* out) {
  constexpr int lanes = Vec<double>::lanes, together = 8;
  int64_t c = 0;
  for (; c + together * lanes <= inner; c += together * lanes) add_columns<together>(members, count, inner, g + c, out + c);
  for (; c + lanes <= inner; c += lanes) add_columns<1>(members, count, inner, g + c, out + c);
  for (; c < inner; ++c) {
    double total = double(g[members[0] * inner + c]);
    for (int64_t m = 1; m < count; ++m) total += double(g[members[m] * inner + c]);
    out[c] = T(total);
  }
  for (c = 0; c < inner; ++c) out[c] = T(0) + out[c];  // of a negative zero the sum is 0
}

}  // namespace

const SliceTable& slice_table() {
  static constexpr SliceTable table = {add<float>, add<double>};
  return table;
}

}  // namespace extensor::EXTENSOR_ISA
