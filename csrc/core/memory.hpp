// Freed buffers are kept and handed out again: a fresh large block costs more in page faults than the
// arithmetic that fills it.
#pragma once

#include <cstddef>

namespace extensor {

constexpr size_t buffer_alignment = 64;

// A buffer of at least `bytes` bytes, aligned to 64, contents undefined; nullptr when memory is out.
void* acquire_buffer(size_t bytes);

// The same for memory that a kernel cannot do without: std::bad_alloc when memory is out. Python sees a MemoryError, from
// whichever thread it came.
void* require_buffer(size_t bytes);

// Gives a buffer back. `bytes` is what it was acquired with.
void recycle_buffer(void* data, size_t bytes);

// The pool keeps at most this many bytes of free buffers; what is above goes back to the system at once.
void set_buffer_limit(size_t bytes);
size_t get_buffer_limit();

// Bytes of free buffers held now, and a way to give them all back.
size_t get_buffer_bytes();
void release_buffers();

}  // namespace extensor
