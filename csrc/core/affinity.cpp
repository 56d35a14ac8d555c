#include "core/affinity.hpp"

#ifdef EXTENSOR_HAS_AFFINITY
#include <pthread.h>
#include <unistd.h>
#endif

namespace extensor {

#ifdef EXTENSOR_HAS_AFFINITY

bool Cores::read() { return sched_getaffinity(getpid(), sizeof set_, &set_) == 0; }

int Cores::count() const { return CPU_COUNT(&set_); }

bool Cores::operator!=(const Cores& other) const { return !CPU_EQUAL(&set_, &other.set_); }

void Place::update() { core_.store(sched_getcpu(), std::memory_order_relaxed); }

void Place::leave_to_caller(int here, const Cores& cores) {
  if (here < 0 || core_.load(std::memory_order_relaxed) != here) return;
  Cores others = cores;
  CPU_CLR(here, &others.set_);
  if (others.count() > 0) move_to(others);
}

void Place::move_to(const Cores& cores) {
  if (pthread_setaffinity_np(thread_, sizeof cores.set_, &cores.set_) == 0) core_.store(-1, std::memory_order_relaxed);
}

int Place::of_caller() { return sched_getcpu(); }

#else

bool Cores::read() { return false; }
int Cores::count() const { return 0; }
bool Cores::operator!=(const Cores&) const { return false; }
void Place::update() {}
void Place::leave_to_caller(int, const Cores&) {}
void Place::move_to(const Cores&) {}
int Place::of_caller() { return -1; }

#endif

}  // namespace extensor
