// One pool of threads for all kernels.
//
// Work is cut into chunks whose boundaries depend on the amount of work alone, never on the number of
// threads. Every thread has a share of neighbouring chunks, the same in every call, and helps with the others' when it is done
// with its own. A kernel that joins its per-chunk results in
// chunk order therefore gives the same bits on any number of threads.
#pragma once

#include <cstdint>
#include <type_traits>

namespace extensor {

// Threads a kernel may use, the caller included: what was set, else EXTENSOR_NUM_THREADS, else as many as the affinity mask, as
// it is now, and the cgroup quota allow. Where the system refuses to start a thread, a kernel runs on those there are.
int get_num_threads();
void set_num_threads(int count);

// How `items` pieces of work of `cost_ns` nanoseconds each are cut: chunk k is
// [k * size, min(items, (k + 1) * size)). One chunk if the work is too small to share.
struct Chunks {
  int64_t size;
  int64_t count;
  bool light = false;  // not worth waking a thread for, but a thread that is awake may help
};
Chunks plan_chunks(int64_t items, double cost_ns);

namespace detail {
using ChunkFunction = void (*)(void* context, int64_t begin, int64_t end);
void run_chunks(int64_t items, Chunks chunks, ChunkFunction function, void* context);
}  // namespace detail

// Calls body(begin, end) once for every chunk. The calling thread works too; if the pool is busy with
// another caller, or this is a call from inside a body, it does all the work itself.
template <class Body>
void parallel_chunks(int64_t items, Chunks chunks, Body&& body) {
  using Plain = std::remove_reference_t<Body>;
  detail::run_chunks(
      items, chunks, [](void* context, int64_t begin, int64_t end) { (*static_cast<Plain*>(context))(begin, end); },
      const_cast<void*>(static_cast<const void*>(&body)));
}

template <class Body>
void parallel_for(int64_t items, double cost_ns, Body&& body) {
  parallel_chunks(items, plan_chunks(items, cost_ns), static_cast<Body&&>(body));
}

}  // namespace extensor
