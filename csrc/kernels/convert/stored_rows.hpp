// Rows as they lie in memory: of T, or of a half type, of which a kernel of float32 sees a few at a time, widened in memory that stays
// in the cache. What it writes is rounded once, on the way out.
// Included only by sources that are compiled once per instruction set.
#pragma once

#include "core/dtype.hpp"
#include "core/workspace.hpp"
#include "kernels/elementwise/convert.hpp"

namespace extensor::EXTENSOR_ISA {

inline void widen_from(DType half, const uint16_t* from, float* to, int64_t n) {
  half == DType::float16 ? widen_float16(from, to, n) : widen_bfloat16(from, to, n);
}
inline void narrow_to(DType half, const float* from, uint16_t* to, int64_t n) {
  half == DType::float16 ? narrow_float16(from, to, n) : narrow_bfloat16(from, to, n);
}

// Room for `most` rows of `length` elements, which is needed for half types alone. Absent data may be nullptr.
template <class T>
class RowsIn {
 public:
  RowsIn(const void* data, DType stored, int64_t length, int64_t most = 1)
      : data_(data), stored_(stored), length_(length), room_(is_half(stored) && data != nullptr ? most * length : 0) {}
  // Rows first .. first + count, until the next call.
  const T* at(int64_t first, int64_t count = 1) {
    if (data_ == nullptr) return nullptr;
    if constexpr (sizeof(T) == 4) {
      if (is_half(stored_)) {
        widen_from(stored_, static_cast<const uint16_t*>(data_) + first * length_, room_.data(), count * length_);
        return room_.data();
      }
    }
    return static_cast<const T*>(data_) + first * length_;
  }

 private:
  const void* data_;
  DType stored_;
  int64_t length_;
  Workspace<T> room_;
};

template <class T>
class RowsOut {
 public:
  RowsOut(void* data, DType stored, int64_t length, int64_t most = 1)
      : data_(data), stored_(stored), length_(length), room_(is_half(stored) && data != nullptr ? most * length : 0) {}
  // Where rows from `first` on are to be written.
  T* at(int64_t first) {
    if (data_ == nullptr || is_half(stored_)) return data_ == nullptr ? nullptr : room_.data();
    return static_cast<T*>(data_) + first * length_;
  }
  // They are written.
  void done(int64_t first, int64_t count = 1) {
    if constexpr (sizeof(T) == 4) {
      if (data_ != nullptr && is_half(stored_))
        narrow_to(stored_, room_.data(), static_cast<uint16_t*>(data_) + first * length_, count * length_);
    }
  }

 private:
  void* data_;
  DType stored_;
  int64_t length_;
  Workspace<T> room_;
};

}  // namespace extensor::EXTENSOR_ISA
