// A copy of the part of a source that a block of outputs sees, in an order in which every tap reads it in one piece.
//
//   window[channel, row, phase, index] = source[channel, first_row + row, index * step + phase + first_column]
//
// Zeros stand where the source ends. With the columns sorted by their phase, neighbours in the output are neighbours
// in the window for every step, so a vector of outputs is a plain load at an offset that depends on the tap alone.
#pragma once

#include "core/whole.hpp"
#include "core/wide.hpp"
#include "core/workspace.hpp"
#include "kernels/conv/maps.hpp"

namespace extensor::EXTENSOR_ISA {

// This many elements and what is missing to whole vectors.
template <class T>
constexpr int64_t whole_vectors(int64_t count) {
  return ceil_div(count, Vec<T>::lanes) * Vec<T>::lanes;
}

// And to whole wide vectors: what decides how sums are made is not to depend on the registers.
template <class T>
constexpr int64_t whole_wides(int64_t count) {
  return ceil_div(count, wide_lanes<T>) * wide_lanes<T>;
}

inline int64_t least_shift(const ConvAxis& axis) {
  int64_t least = axis.taps > 0 ? axis.shift[0] : 0;
  for (int64_t t = 1; t < axis.taps; ++t) least = min_of(least, axis.shift[t]);
  return least;
}

inline int64_t shift_span(const ConvAxis& axis) {
  const int64_t least = least_shift(axis);
  int64_t span = 0;
  for (int64_t t = 0; t < axis.taps; ++t) span = max_of(span, axis.shift[t] - least);
  return span;
}

// Room for what is made of the weight: that of the call, or the kept one, which may be filled already.
template <class T>
class WeightRoom {
 public:
  WeightRoom(KeptWeight* kept, int64_t count) : kept_(kept), bytes_(size_t(count) * sizeof(T)) {
    if (kept_ == nullptr) {
      data_ = require_buffer(bytes_);
    } else if (!kept_->is_filled) {
      if (kept_->data != nullptr) recycle_buffer(kept_->data, kept_->bytes);
      kept_->data = nullptr;
      kept_->data = require_buffer(bytes_), kept_->bytes = bytes_;
    }
  }
  ~WeightRoom() {
    if (kept_ == nullptr) recycle_buffer(data_, bytes_);
  }
  WeightRoom(const WeightRoom&) = delete;
  WeightRoom& operator=(const WeightRoom&) = delete;
  bool is_filled() const { return kept_ != nullptr && kept_->is_filled; }
  void set_filled() {
    if (kept_ != nullptr) kept_->is_filled = true;
  }
  T* data() { return static_cast<T*>(kept_ == nullptr ? data_ : kept_->data); }

 private:
  KeptWeight* kept_;
  size_t bytes_;
  void* data_ = nullptr;
};

// What follows a convolution, if it is told so.
template <class T>
EXTENSOR_INLINE Vec<T> relu_if(bool wanted, Vec<T> value) {
  return wanted ? at_least(Vec<T>(0.0), value) : value;
}

struct Window {
  int64_t channels, first_row, rows, first_column, step, phase_length;

  // For `count` rows of outputs, `lanes` of them at a time.
  Window(int64_t channels_, const ConvAxis& row_axis, const ConvAxis& column_axis, int64_t count, int64_t lanes)
      : channels(channels_),
        first_row(least_shift(row_axis)),
        rows((count - 1) * row_axis.step + shift_span(row_axis) + 1),
        first_column(least_shift(column_axis)),
        step(column_axis.step),
        phase_length(ceil_div(column_axis.count, lanes) * lanes + shift_span(column_axis) / column_axis.step) {}

  int64_t row_length() const { return step * phase_length; }
  int64_t plane() const { return rows * row_length(); }
  int64_t size() const { return channels * plane(); }

  // Where a tap of the first output lies.
  int64_t offset(int64_t channel, int64_t row_shift, int64_t column_shift) const {
    const int64_t column = column_shift - first_column;
    return channel * plane() + (row_shift - first_row) * row_length() + column % step * phase_length + column / step;
  }
};

// Rows of small images are too short for a call of the C library each. The last vector overlaps the one before it.
template <class T>
EXTENSOR_INLINE void copy_piece(const T* from, int64_t count, T* to) {
  constexpr int lanes = Vec<T>::lanes;
  if (count < lanes) return store_first(to, load_first(from, count), count);
  for (int64_t i = 0; i + lanes < count; i += lanes) store(to + i, load(from + i));
  store(to + count - lanes, load(from + count - lanes));
}

template <class T>
EXTENSOR_INLINE void clear_piece(int64_t count, T* to) {
  constexpr int lanes = Vec<T>::lanes;
  if (count == 0) return;
  if (count < lanes) return store_first(to, Vec<T>(0.0), count);
  for (int64_t i = 0; i + lanes < count; i += lanes) store(to + i, Vec<T>(0.0));
  store(to + count - lanes, Vec<T>(0.0));
}

template <class T>
void copy_row(const T* from, int64_t width, const Window& w, T* to) {
  if (w.step == 1) {
    const int64_t before = min_of(w.phase_length, max_of(0, -w.first_column));
    const int64_t skipped = max_of(0, w.first_column);
    const int64_t count = max_of(0, min_of(w.phase_length - before, width - skipped));
    clear_piece(before, to);
    copy_piece(from + skipped, count, to + before);
    clear_piece(w.phase_length - before - count, to + before + count);
    return;
  }
  for (int64_t phase = 0; phase < w.step; ++phase, to += w.phase_length) {
    const int64_t column = w.first_column + phase;
    const int64_t begin = min_of(w.phase_length, column >= 0 ? 0 : ceil_div(-column, w.step));
    const int64_t end = max_of(begin, min_of(w.phase_length, column >= width ? 0 : ceil_div(width - column, w.step)));
    const T* first = from + column;
    for (int64_t i = 0; i < begin; ++i) to[i] = T(0);
    if (w.step == 2)
      for (int64_t i = begin; i < end; ++i) to[i] = first[2 * i];
    else
      for (int64_t i = begin; i < end; ++i) to[i] = first[w.step * i];
    for (int64_t i = end; i < w.phase_length; ++i) to[i] = T(0);
  }
}

// Whether any tap of any output looks at row r of the window.
inline bool is_seen(const ConvAxis& rows, int64_t first_row, int64_t r) {
  if (rows.step == 1) return true;
  for (int64_t t = 0; t < rows.taps; ++t)
    if ((r - rows.shift[t] + first_row) % rows.step == 0) return true;
  return false;
}

// What the outputs from row `start` of `rows` on see.
template <class T>
void copy_window(const T* source, const ConvAxis& rows, int64_t width, int64_t start, const Window& w, T* to) {
  bool all_seen = true;
  for (int64_t r = 0; r < rows.step; ++r) all_seen = all_seen && is_seen(rows, w.first_row, r);
  for (int64_t channel = 0; channel < w.channels; ++channel, source += rows.source * width) {
    for (int64_t r = 0; r < w.rows; ++r, to += w.row_length()) {
      if (!all_seen && !is_seen(rows, w.first_row, r)) continue;
      const int64_t row = start * rows.step + w.first_row + r;
      if (row >= 0 && row < rows.source) copy_row(source + row * width, width, w, to);
      else clear_piece(w.row_length(), to);
    }
  }
}

}  // namespace extensor::EXTENSOR_ISA
