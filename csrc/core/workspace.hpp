// Working memory of a kernel, given back when it goes out of scope.
#pragma once

#include <cstddef>
#include <cstdint>

#include "core/memory.hpp"

// In a source that is compiled once per instruction set this is a class of that set: see isa.hpp.
#ifdef EXTENSOR_ISA
namespace extensor::EXTENSOR_ISA {
#else
namespace extensor {
#endif

// Room for `count` elements, aligned to 64 bytes, contents undefined; std::bad_alloc when memory runs out. So many bytes as
// `on_stack` cost nothing.
template <class T, size_t on_stack = 0>
class Workspace {
 public:
  explicit Workspace(int64_t count) : bytes_(size_t(count) * sizeof(T)) {
    if (bytes_ > on_stack) data_ = require_buffer(bytes_);
  }
  ~Workspace() {
    if (bytes_ > on_stack) recycle_buffer(data_, bytes_);
  }
  Workspace(const Workspace&) = delete;
  Workspace& operator=(const Workspace&) = delete;
  T* data() { return static_cast<T*>(data_); }

 private:
  size_t bytes_;
  alignas(64) unsigned char stack_[on_stack == 0 ? 1 : on_stack];
  void* data_ = stack_;
};

}  // namespace extensor
