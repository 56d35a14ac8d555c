// What vectors along the channels see: pixels are read one by one, so rows stay as they are. The source itself if no tap
// ever looks beyond it, else a copy with zeros around it.
#pragma once

#include <utility>

#include "kernels/conv/window.hpp"
#include "kernels/matmul/pack.hpp"

namespace extensor::EXTENSOR_ISA {

inline bool stays_inside(const ConvAxis& axis) {
  const int64_t least = least_shift(axis);
  return least >= 0 && (axis.count - 1) * axis.step + least + shift_span(axis) < axis.source;
}

// The axis of the same taps with every place between its outputs an output, too.
inline ConvAxis without_steps(ConvAxis axis) {
  axis.count = (axis.count - 1) * axis.step + 1;
  axis.step = 1;
  return axis;
}

class Sight {
 public:
  // For blocks of `count` rows of outputs.
  Sight(int64_t channels, const ConvAxis& rows, const ConvAxis& columns, int64_t count)
      : rows_(rows),
        width_(columns.source),
        window_(channels, rows, without_steps(columns), count, 1),
        in_place_(stays_inside(rows) && stays_inside(columns)) {}

  int64_t row_length() const { return in_place_ ? width_ : window_.row_length(); }
  int64_t copied() const { return in_place_ ? 0 : window_.size(); }

  int64_t offset(int64_t channel, int64_t row_shift, int64_t column_shift) const {
    if (in_place_) return (channel * rows_.source + row_shift) * width_ + column_shift;
    return window_.offset(channel, row_shift, column_shift);
  }

  // Where the offsets of the block that starts with row `first` begin; `room` is for the copy.
  template <class T>
  const T* look(const T* source, int64_t first, T* room) const {
    if (in_place_) return source + first * rows_.step * width_;
    copy_window(source, rows_, width_, first, window_, room);
    return room;
  }

 private:
  ConvAxis rows_;
  int64_t width_;
  Window window_;
  bool in_place_;
};

}  // namespace extensor::EXTENSOR_ISA
