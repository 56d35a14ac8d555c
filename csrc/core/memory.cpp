#include "core/memory.hpp"

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <ctime>
#include <mutex>
#include <new>
#include <vector>

#include "core/allocation_failure.hpp"
#include "core/memory_limits.hpp"
#include "core/pages.hpp"

#ifdef __unix__
#include <pthread.h>
#endif
#ifdef __GLIBC__
#include <malloc.h>
#endif

namespace extensor {
namespace {

// Size classes: eight per power of two, so that a buffer is at most an eighth larger than asked for
// and one freed buffer serves many requests.
constexpr int steps_per_doubling = 8;
constexpr int class_count = 64 * steps_per_doubling;
constexpr size_t smallest_class = 4096;

// A buffer that waited so long for its next user belongs to work that is over. To get the memory back costs a tenth of a
// second for each gigabyte, so a program that comes back to its old sizes later loses little.
constexpr int64_t longest_wait_ms = 10'000;
// Ages and the need of others are looked at this often at most; the latter if the pool keeps enough to matter.
constexpr int64_t look_ms = 250;
constexpr size_t worth_a_look = size_t{32} << 20;

constexpr size_t largest_limit = size_t{2} << 30;

struct SizeClass {
  int index;
  size_t bytes;
};

SizeClass size_class(size_t bytes) {
  bytes = std::max(bytes, smallest_class);
  const int exponent = 63 - __builtin_clzll(bytes);
  const size_t step = (size_t{1} << exponent) / steps_per_doubling;
  const size_t rounded = (bytes + step - 1) / step * step;
  const int top = 63 - __builtin_clzll(rounded);
  const int index = top * steps_per_doubling + static_cast<int>((rounded - (size_t{1} << top)) / ((size_t{1} << top) / steps_per_doubling));
  return {index, rounded};
}

size_t class_bytes(int index) {
  const size_t top = size_t{1} << (index / steps_per_doubling);
  return top + static_cast<size_t>(index % steps_per_doubling) * (top / steps_per_doubling);
}
static_assert(smallest_paged % (page_step * steps_per_doubling) == 0, "sizes of paged buffers are whole steps");

// A clock that is cheap to read; its hand moves every few milliseconds.
int64_t now_ms() {
#ifdef __linux__
  timespec time;
  if (clock_gettime(CLOCK_MONOTONIC_COARSE, &time) == 0) return int64_t{time.tv_sec} * 1000 + time.tv_nsec / 1'000'000;
#endif
  return std::chrono::duration_cast<std::chrono::milliseconds>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

size_t default_limit() { return std::min(largest_limit, usable_memory() / 8); }

struct Kept {
  void* data;
  int64_t since;  // in milliseconds
};

class Pool {
 public:
  void* acquire(size_t bytes) {
    const SizeClass size = size_class(bytes);
    std::lock_guard<std::mutex> lock(mutex);
    std::vector<Kept>& list = kept_[static_cast<size_t>(size.index)];
    void* data = nullptr;
    if (!list.empty()) {
      data = list.back().data;
      list.pop_back();
      cached_ -= size.bytes;
    } else {
      look_around(now_ms());
      data = allocate(size.bytes);
      if (data == nullptr && cached_ > 0) {
        shrink(0);
        data = allocate(size.bytes);
      }
      if (data == nullptr) return nullptr;
    }
    used_ += size.bytes;
    peak_ = std::max(peak_, used_);
    return data;
  }

  void recycle(void* data, size_t bytes) {
    const SizeClass size = size_class(bytes);
    std::lock_guard<std::mutex> lock(mutex);
    used_ -= size.bytes;
    const int64_t now = now_ms();
    if (cached_ + size.bytes > limit_ || !keep(size, {data, now})) give_back(data, size.bytes);
    look_around(now);
  }

  size_t release() {
    std::lock_guard<std::mutex> lock(mutex);
    const size_t before = cached_;
    shrink(0);
    return before;
  }

  void set_limit(size_t bytes) {
    std::lock_guard<std::mutex> lock(mutex);
    limit_ = bytes == automatic_buffer_limit ? default_limit() : bytes;
    shrink(limit_);
  }

  void set_wait(int64_t milliseconds) {
    std::lock_guard<std::mutex> lock(mutex);
    longest_wait_ = milliseconds;
    next_look_ = 0;
  }

  BufferFigures figures() {
    std::lock_guard<std::mutex> lock(mutex);
#ifdef EXTENSOR_PAGES
    return {used_, peak_, cached_, limit_, small_ + pages_.mapped()};
#else
    return {used_, peak_, cached_, limit_, small_};
#endif
  }

  std::mutex mutex;

 private:
  void* allocate(size_t bytes) {
#ifdef EXTENSOR_PAGES
    if (bytes >= smallest_paged) return pages_.allocate(bytes);
#endif
    void* data = std::aligned_alloc(buffer_alignment, bytes);
    if (data != nullptr) small_ += bytes;
    return data;
  }

  void give_back(void* data, size_t bytes) {
#ifdef EXTENSOR_PAGES
    if (bytes >= smallest_paged) return pages_.free(data, bytes);
#endif
    small_ -= bytes;
    std::free(data);
  }

  bool keep(SizeClass size, Kept kept) {
    try {
      kept_[static_cast<size_t>(size.index)].push_back(kept);
    } catch (const std::bad_alloc&) {
      return false;
    }
    cached_ += size.bytes;
    return true;
  }

  // The buffers of a class are handed out last in, first out: those that waited longest come first.
  void drop_first(int index, size_t count) {
    std::vector<Kept>& list = kept_[static_cast<size_t>(index)];
    const size_t bytes = class_bytes(index);
    for (size_t i = 0; i < count; ++i) give_back(list[i].data, bytes);
    list.erase(list.begin(), list.begin() + static_cast<ptrdiff_t>(count));
    cached_ -= count * bytes;
  }

  void drop_older_than(int64_t since) {
    for (int index = 0; index < class_count; ++index) {
      const std::vector<Kept>& list = kept_[static_cast<size_t>(index)];
      size_t count = 0;
      while (count < list.size() && list[count].since < since) ++count;
      if (count > 0) drop_first(index, count);
    }
  }

  // Gives back what is above `keep` bytes: always the buffer that has waited longest, of two the larger.
  void shrink(size_t keep) {
    while (cached_ > keep) {
      int oldest = -1;
      for (int index = class_count - 1; index >= 0; --index) {
        const std::vector<Kept>& list = kept_[static_cast<size_t>(index)];
        if (list.empty()) continue;
        if (oldest < 0 || list[0].since < kept_[static_cast<size_t>(oldest)][0].since) oldest = index;
      }
      const size_t bytes = class_bytes(oldest), excess = cached_ - keep;
      const size_t count = keep == 0 ? kept_[static_cast<size_t>(oldest)].size() : 1;
      drop_first(oldest, std::min(count, (excess + bytes - 1) / bytes));
    }
  }

  // Now and then: drops what is too old, and what is more than half of the memory that there would be without it.
  void look_around(int64_t now) {
    if (now < next_look_ || cached_ == 0) return;
    next_look_ = now + std::min(look_ms, longest_wait_);
    drop_older_than(now - longest_wait_);
    if (cached_ < worth_a_look) return;
    size_t available;
    try {
      available = available_memory();
    } catch (const std::bad_alloc&) {
      available = 0;
    }
    if (available < cached_) shrink((available + cached_) / 2);
  }

  std::array<std::vector<Kept>, class_count> kept_;
  size_t used_ = 0, peak_ = 0, cached_ = 0, small_ = 0;
  size_t limit_ = default_limit();
  int64_t next_look_ = 0, longest_wait_ = longest_wait_ms;
#ifdef EXTENSOR_PAGES
  Pages pages_;
#endif
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

}  // namespace

void* require_buffer(size_t bytes) {
  void* data = acquire_buffer(bytes);
  if (data == nullptr) throw std::bad_alloc();
  return data;
}

void* acquire_buffer(size_t bytes) {
  if (allocation_fails()) return nullptr;
  if (bytes > SIZE_MAX / 4) return nullptr;  // more than any machine has; its size class would overflow
  return pool().acquire(bytes);
}

void recycle_buffer(void* data, size_t bytes) { pool().recycle(data, bytes); }

void set_buffer_limit(size_t bytes) { pool().set_limit(bytes); }

size_t get_buffer_limit() { return pool().figures().limit; }

void set_buffer_wait(int64_t milliseconds) { pool().set_wait(milliseconds); }

BufferFigures buffer_figures() { return pool().figures(); }

size_t release_buffers() {
  const size_t released = pool().release();
#ifdef __GLIBC__
  malloc_trim(0);  // and what lies idle between the small ones
#endif
  return released;
}

}  // namespace extensor
