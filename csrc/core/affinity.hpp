// Which cores the threads of the pool run on.
#pragma once

#include <atomic>
#include <thread>

#if defined(__linux__)
#include <sched.h>
#define EXTENSOR_HAS_AFFINITY 1
#endif

namespace extensor {

// The cores this process may use now: those of its main thread, which is what `taskset -p` and os.sched_setaffinity change.
class Cores {
 public:
  // Asks the system, which costs a third of a microsecond. False if it does not say.
  bool read();
  int count() const;
  bool operator!=(const Cores& other) const;

 private:
  friend class Place;
#ifdef EXTENSOR_HAS_AFFINITY
  cpu_set_t set_ = {};
#endif
};

// Woken by a caller, a worker is often put on the caller's own core, even when another is idle, and stays there: the two
// then take turns. So a worker leaves word where it runs, and a caller that finds it on its own core sends it away.
class Place {
 public:
  // By the worker, where it runs now.
  void update();

  // By the caller, with the core it runs on: the worker may then run on all of `cores` but that one.
  void leave_to_caller(int here, const Cores& cores);

  // By the caller: the worker may run on `cores`.
  void move_to(const Cores& cores);

  void set_thread(std::thread::native_handle_type thread) { thread_ = thread; }

  // The core of the calling thread, negative if unknown.
  static int of_caller();

 private:
  std::thread::native_handle_type thread_{};
  std::atomic<int> core_{-1};
};

}  // namespace extensor
