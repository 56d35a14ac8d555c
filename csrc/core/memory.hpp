// Freed buffers are kept and handed out again: a fresh large block costs more in page faults than the
// arithmetic that fills it. One that nobody asked for in ten seconds goes back to the system, and so does what another process,
// or another part of this one, needs more.
#pragma once

#include <cstddef>
#include <cstdint>

namespace extensor {

constexpr size_t buffer_alignment = 64;

// A buffer of at least `bytes` bytes, aligned to 64, contents undefined; nullptr when memory is out.
void* acquire_buffer(size_t bytes);

// The same for memory that a kernel cannot do without: std::bad_alloc when memory is out. Python sees a MemoryError, from
// whichever thread it came.
void* require_buffer(size_t bytes);

// Gives a buffer back. `bytes` is what it was acquired with.
void recycle_buffer(void* data, size_t bytes);

// The pool keeps at most this many bytes of free buffers; what is above goes back to the system at once. Starts as an eighth
// of what the process may have, at most 2 GiB. Set to `automatic_buffer_limit` it is that again, else it stays as it was set.
constexpr size_t automatic_buffer_limit = ~size_t{0};
void set_buffer_limit(size_t bytes);
size_t get_buffer_limit();

// A buffer that waited longer than this for its next user is not kept. Ten seconds, unless a test is in a hurry.
void set_buffer_wait(int64_t milliseconds);

// Bytes, with what rounding sizes up costs.
struct BufferFigures {
  size_t used, peak;  // in buffers that are out, now and at most
  size_t cached;      // in buffers that are kept
  size_t limit;       // of those
  size_t mapped;      // addresses held for both
};
BufferFigures buffer_figures();

// Gives all kept buffers back to the system; returns their bytes.
size_t release_buffers();

}  // namespace extensor
