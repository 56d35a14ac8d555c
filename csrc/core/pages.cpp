#include "core/pages.hpp"

#ifdef EXTENSOR_PAGES

#include <sys/mman.h>

#include <cstdint>
#include <new>

namespace extensor {
namespace {

constexpr size_t huge_page = size_t{2} << 20;
constexpr size_t slab_bytes = 16 * huge_page, largest_shared = 2 * huge_page - 1;
constexpr int steps_per_slab = int(slab_bytes / page_step);

// A multiple of `alignment` bytes at a multiple of it, so that large pages fit. nullptr when there are no addresses left.
void* map_aligned(size_t bytes, size_t alignment) {
  void* fresh = mmap(nullptr, bytes + alignment, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (fresh == MAP_FAILED) return nullptr;
  char* const begin = static_cast<char*>(fresh);
  const size_t before = (alignment - reinterpret_cast<uintptr_t>(begin) % alignment) % alignment;
  if (before > 0) munmap(begin, before);
  if (alignment > before) munmap(begin + before + bytes, alignment - before);
  madvise(begin + before, bytes, MADV_HUGEPAGE);
  return begin + before;
}

constexpr size_t whole_pages(size_t bytes) { return (bytes + huge_page - 1) / huge_page * huge_page; }

}  // namespace

// A bit for each step that is taken.
struct Pages::Slab {
  char* begin;
  Slab* next;
  int taken_steps = 0;
  int too_large = steps_per_slab + 1;  // no gap is this long
  uint64_t taken[steps_per_slab / 64] = {};

  bool is_taken(int step) const { return taken[step / 64] >> (step % 64) & 1; }

  // Where the first gap of `steps` steps begins, -1 if there is none.
  int find_gap(int steps) {
    if (steps >= too_large || steps_per_slab - taken_steps < steps) return -1;
    int free = 0;
    for (int step = 0; step < steps_per_slab; ++step) {
      if (step % 64 == 0 && taken[step / 64] == ~uint64_t{0}) {
        free = 0, step += 63;
        continue;
      }
      free = is_taken(step) ? 0 : free + 1;
      if (free == steps) return step + 1 - steps;
    }
    too_large = steps;
    return -1;
  }

  void mark(int first, int steps, bool as_taken) {
    for (int step = first; step < first + steps; ++step) taken[step / 64] ^= uint64_t{1} << (step % 64);
    taken_steps += as_taken ? steps : -steps;
    if (!as_taken) too_large = steps_per_slab + 1;
  }
};

Pages::Slab* Pages::find(const void* data) const {
  const char* place = static_cast<const char*>(data);
  Slab* slab = slabs_;
  while (slab != nullptr && (place < slab->begin || place >= slab->begin + slab_bytes)) slab = slab->next;
  return slab;
}

Pages::Slab* Pages::map_slab() {
  Slab* slab = new (std::nothrow) Slab;
  if (slab == nullptr) return nullptr;
  slab->begin = static_cast<char*>(map_aligned(slab_bytes, huge_page));
  if (slab->begin == nullptr) {
    delete slab;
    return nullptr;
  }
  slab->next = slabs_;
  slabs_ = slab;
  mapped_ += slab_bytes;
  return slab;
}

void Pages::unmap(Slab* slab) {
  Slab** link = &slabs_;
  while (*link != slab) link = &(*link)->next;
  *link = slab->next;
  munmap(slab->begin, slab_bytes);
  mapped_ -= slab_bytes;
  delete slab;
}

void* Pages::map_alone(size_t bytes) {
  void* data = nullptr;
  if (bytes > largest_shared) data = map_aligned(whole_pages(bytes), huge_page);
  if (data == nullptr) {  // near a limit of the address space: no room for alignment
    data = mmap(nullptr, bytes > largest_shared ? whole_pages(bytes) : bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (data == MAP_FAILED) return nullptr;
  }
  mapped_ += bytes > largest_shared ? whole_pages(bytes) : bytes;
  return data;
}

void* Pages::allocate(size_t bytes) {
  if (bytes > largest_shared) return map_alone(bytes);
  const int steps = int(bytes / page_step);
  for (Slab* slab = slabs_; slab != nullptr; slab = slab->next) {
    const int first = slab->find_gap(steps);
    if (first < 0) continue;
    slab->mark(first, steps, true);
    return slab->begin + size_t(first) * page_step;
  }
  Slab* slab = map_slab();
  if (slab == nullptr) return map_alone(bytes);
  slab->mark(0, steps, true);
  return slab->begin;
}

void Pages::free(void* data, size_t bytes) {
  Slab* slab = bytes > largest_shared ? nullptr : find(data);
  if (slab == nullptr) {
    const size_t mapped = bytes > largest_shared ? whole_pages(bytes) : bytes;
    munmap(data, mapped);
    mapped_ -= mapped;
    return;
  }
  slab->mark(int((static_cast<char*>(data) - slab->begin) / ptrdiff_t(page_step)), int(bytes / page_step), false);
  if (slab->taken_steps == 0) unmap(slab);
  else madvise(data, bytes, MADV_DONTNEED);
}

}  // namespace extensor

#endif
