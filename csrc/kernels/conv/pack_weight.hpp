// Panels of a weight in the order of the steps: what every map of map.cpp multiplies with.
//
//   to[step * width + r] = weight[output r of the panel, step], 0 for outputs that do not exist
//
// Steps go by rows of the kernel first, so neighbours of a panel lie far apart in the weight. For each input the elements of the
// kernel are transposed, a strip at a time, and put into order afterwards.
#pragma once

#include "kernels/conv/steps.hpp"
#include "kernels/matmul/pack.hpp"

namespace extensor::EXTENSOR_ISA {

// Element by element.
template <class T>
void pack_steps_plainly(const ConvMap<T>& m, const T* panel, int64_t count, int64_t width, T* to) {
  for_steps(m, [&](int64_t c, int64_t p, int64_t q) {
    const T* from = panel + c * m.weight_input + m.rows.element[p] * m.weight_row + m.columns.element[q];
    for (int64_t r = 0; r < width; ++r) *to++ = r < count ? from[r * m.weight_output] : T(0);
  });
}

// The panel of `count` outputs from `panel` on. May write up to one vector behind its end.
template <class T>
void pack_steps(const ConvMap<T>& m, const T* panel, int64_t count, int64_t width, T* to) {
  constexpr int64_t lanes = Vec<T>::lanes, strip = part_lanes<T>;
  const int64_t kernel = m.rows.taps * m.columns.taps, groups = ceil_div(width, lanes);
  // Each input's kernel, all of whose elements are taken, lies in one piece.
  const bool dense = m.weight_row == m.columns.taps && kernel == min_of(m.weight_input, m.weight_output);
  if (!dense || kernel < strip) return pack_steps_plainly(m, panel, count, width, to);
  Workspace<T, 16 * 1024> turned(groups * m.inputs * kernel * lanes);  // [group, input, element of the kernel, lane]
  T* next = turned.data();
  for (int64_t first = 0; first < width; first += lanes) {
    const Mask<T> existing = lanes_below<T>(int(max_of(0, min_of(lanes, count - first))));
    const T* rows[lanes];
    for (int64_t lane = 0; lane < lanes; ++lane) rows[lane] = panel + min_of(first + lane, count - 1) * m.weight_output;
    for (int64_t c = 0; c < m.inputs; ++c, next += kernel * lanes) {
      for (int64_t n = 0; n < kernel; n += strip) {
        const int64_t at = min_of(n, kernel - strip);  // the last strip overlaps the one before it
        Vec<T> columns[strip];
        load_transposed(rows, c * m.weight_input + at, columns);
        for (int64_t i = 0; i < strip; ++i) store(next + (at + i) * lanes, keep(existing, columns[i]));
      }
    }
  }
  for_steps(m, [&](int64_t c, int64_t p, int64_t q) {
    const T* from = turned.data() + (c * kernel + m.rows.element[p] * m.weight_row + m.columns.element[q]) * lanes;
    // Lanes beyond the panel spill into the place of the next step, which is written after them.
    for (int64_t first = 0; first < width; first += lanes, from += m.inputs * kernel * lanes) store(to + first, load(from));
    to += width;
  });
}

}  // namespace extensor::EXTENSOR_ISA
