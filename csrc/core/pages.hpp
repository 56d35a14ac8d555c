// Memory from the system by whole pages, and back to it.
#pragma once

#include <cstddef>

#if defined(__linux__) && !defined(__SANITIZE_ADDRESS__)  // which looks for writes behind the end of a buffer
#define EXTENSOR_PAGES
#endif

namespace extensor {

// From this size on buffers are made of pages. Their sizes must be multiples of `page_step`.
constexpr size_t smallest_paged = 64 * 1024, page_step = 8 * 1024;

#ifdef EXTENSOR_PAGES

// Buffers too small to fill large pages of their own share slabs of them: the tensors of a network lie on more small pages
// than a processor has addresses for. A larger one is mapped alone. Not for several threads at once.
class Pages {
 public:
  // nullptr when memory is out.
  void* allocate(size_t bytes);
  // The memory goes back to the system at once; a slab's addresses when nobody uses any of it.
  void free(void* data, size_t bytes);
  // Addresses held, used or not.
  size_t mapped() const { return mapped_; }

 private:
  struct Slab;
  Slab* find(const void* data) const;
  void* map_alone(size_t bytes);
  Slab* map_slab();
  void unmap(Slab* slab);

  Slab* slabs_ = nullptr;  // a list
  size_t mapped_ = 0;
};

#endif

}  // namespace extensor
