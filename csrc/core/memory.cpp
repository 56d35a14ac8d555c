#include "core/memory.hpp"

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdlib>
#include <mutex>
#include <new>
#include <vector>

#include "core/allocation_failure.hpp"

#ifdef __unix__
#include <pthread.h>
#include <unistd.h>
#endif
#ifdef __linux__
#include <sys/mman.h>
#endif

namespace extensor {
namespace {

// Size classes: eight per power of two, so that a buffer is at most an eighth larger than asked for
// and one freed buffer serves many requests.
constexpr int steps_per_doubling = 8;
constexpr int class_count = 64 * steps_per_doubling;
constexpr size_t huge_page = size_t{2} << 20;
// Buffers from this size on, and too small to fill large pages of their own, share slabs of them: the tensors of a network lie
// on more small pages than a processor has addresses for. Their sizes are whole small pages.
#if defined(__linux__) && !defined(__SANITIZE_ADDRESS__)  // which looks for writes behind the end of a buffer
#define EXTENSOR_SLABS
#endif
constexpr size_t smallest_shared = 64 * 1024, largest_shared = 2 * huge_page - 1, slab_bytes = 16 * huge_page;

struct SizeClass {
  int index;
  size_t bytes;
};

SizeClass size_class(size_t bytes) {
  bytes = std::max(bytes, size_t{4096});
  const int exponent = 63 - __builtin_clzll(bytes);
  const size_t step = (size_t{1} << exponent) / steps_per_doubling;
  const size_t rounded = (bytes + step - 1) / step * step;
  const int top = 63 - __builtin_clzll(rounded);
  const int index = top * steps_per_doubling + static_cast<int>((rounded - (size_t{1} << top)) / ((size_t{1} << top) / steps_per_doubling));
  return {index, rounded};
}

#ifdef EXTENSOR_SLABS
bool is_shared(size_t bytes) { return bytes >= smallest_shared && bytes <= largest_shared; }
#else
bool is_shared(size_t) { return false; }
#endif

void* allocate_alone(size_t bytes) {
  const size_t alignment = bytes >= 2 * huge_page ? huge_page : buffer_alignment;
  void* data = std::aligned_alloc(alignment, (bytes + alignment - 1) / alignment * alignment);
#ifdef __linux__
  if (data != nullptr && alignment == huge_page) madvise(data, bytes, MADV_HUGEPAGE);
#endif
  return data;
}

size_t default_limit() {
  const size_t most = size_t{2} << 30;
#ifdef __unix__
  const long pages = sysconf(_SC_PHYS_PAGES), page = sysconf(_SC_PAGESIZE);
  if (pages > 0 && page > 0) return std::min(most, static_cast<size_t>(pages) * static_cast<size_t>(page) / 8);
#endif
  return most;
}

struct Pool {
  std::mutex mutex;
  std::array<std::vector<void*>, class_count> free;
  std::array<std::vector<void*>, class_count> bare;  // places in slabs whose memory went back to the system
  char* slab = nullptr;  // what is left of the last slab
  size_t slab_left = 0;
  size_t bytes = 0;
  size_t limit = default_limit();
};

// Never destroyed: arrays may be freed while the interpreter is being torn down.
Pool& pool() {
  static Pool* const shared = [] {
    Pool* created = new Pool;
#ifdef __unix__
    // A fork while another thread is inside must not leave the child with a locked pool.
    pthread_atfork([] { pool().mutex.lock(); }, [] { pool().mutex.unlock(); }, [] { pool().mutex.unlock(); });
#endif
    return created;
  }();
  return *shared;
}

// A buffer in a slab. What does not fit into the rest of a slab leaves it untouched, and so without memory.
void* allocate_shared(Pool& shared, SizeClass size) {
#ifdef EXTENSOR_SLABS
  std::vector<void*>& bare = shared.bare[static_cast<size_t>(size.index)];
  if (!bare.empty()) {
    void* data = bare.back();
    bare.pop_back();
    return data;
  }
  if (shared.slab_left < size.bytes) {
    const size_t room = slab_bytes + huge_page;
    void* fresh = mmap(nullptr, room, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (fresh == MAP_FAILED) {  // near a limit of the address space: a place of its own
      void* alone = mmap(nullptr, size.bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
      return alone == MAP_FAILED ? nullptr : alone;
    }
    const uintptr_t start = (reinterpret_cast<uintptr_t>(fresh) + huge_page - 1) / huge_page * huge_page;
    shared.slab = reinterpret_cast<char*>(start);
    shared.slab_left = slab_bytes;
    madvise(shared.slab, slab_bytes, MADV_HUGEPAGE);
  }
  void* data = shared.slab;
  shared.slab += size.bytes;
  shared.slab_left -= size.bytes;
  return data;
#else
  (void)shared, (void)size;
  return nullptr;
#endif
}

void* allocate(Pool& shared, SizeClass size) {
  if (!is_shared(size.bytes)) return allocate_alone(size.bytes);
  std::lock_guard<std::mutex> lock(shared.mutex);
  return allocate_shared(shared, size);
}

// Back to the system; of a place in a slab, its memory. The pool is locked.
void give_back(Pool& shared, SizeClass size, void* data) {
#ifdef EXTENSOR_SLABS
  if (is_shared(size.bytes)) {
    madvise(data, size.bytes, MADV_DONTNEED);
    shared.bare[static_cast<size_t>(size.index)].push_back(data);
    return;
  }
#endif
  (void)shared, (void)size;
  std::free(data);
}

// Frees what is above `keep` bytes, largest buffers first.
void shrink(Pool& shared, size_t keep) {
  for (int index = class_count - 1; index >= 0 && shared.bytes > keep; --index) {
    std::vector<void*>& list = shared.free[static_cast<size_t>(index)];
    const size_t top = size_t{1} << (index / steps_per_doubling);
    const size_t bytes = top + static_cast<size_t>(index % steps_per_doubling) * (top / steps_per_doubling);
    while (!list.empty() && shared.bytes > keep) {
      give_back(shared, {index, bytes}, list.back());
      list.pop_back();
      shared.bytes -= bytes;
    }
  }
}

}  // namespace

void* require_buffer(size_t bytes) {
  void* data = acquire_buffer(bytes);
  if (data == nullptr) throw std::bad_alloc();
  return data;
}

void* acquire_buffer(size_t bytes) {
  if (allocation_fails()) return nullptr;
  if (bytes > SIZE_MAX / 4) return nullptr;  // more than any machine has; its size class would overflow
  const SizeClass size = size_class(bytes);
  Pool& shared = pool();
  {
    std::lock_guard<std::mutex> lock(shared.mutex);
    std::vector<void*>& list = shared.free[static_cast<size_t>(size.index)];
    if (!list.empty()) {
      void* data = list.back();
      list.pop_back();
      shared.bytes -= size.bytes;
      return data;
    }
  }
  void* data = allocate(shared, size);
  if (data == nullptr) {
    release_buffers();
    data = allocate(shared, size);
  }
  return data;
}

void recycle_buffer(void* data, size_t bytes) {
  const SizeClass size = size_class(bytes);
  Pool& shared = pool();
  std::lock_guard<std::mutex> lock(shared.mutex);
  if (shared.bytes + size.bytes > shared.limit) {
    give_back(shared, size, data);
    return;
  }
  shared.free[static_cast<size_t>(size.index)].push_back(data);
  shared.bytes += size.bytes;
}

void set_buffer_limit(size_t bytes) {
  Pool& shared = pool();
  std::lock_guard<std::mutex> lock(shared.mutex);
  shared.limit = bytes;
  shrink(shared, bytes);
}

size_t get_buffer_limit() {
  Pool& shared = pool();
  std::lock_guard<std::mutex> lock(shared.mutex);
  return shared.limit;
}

size_t get_buffer_bytes() {
  Pool& shared = pool();
  std::lock_guard<std::mutex> lock(shared.mutex);
  return shared.bytes;
}

void release_buffers() {
  Pool& shared = pool();
  std::lock_guard<std::mutex> lock(shared.mutex);
  shrink(shared, 0);
}

}  // namespace extensor
