#include "core/cpu_count.hpp"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <fstream>
#include <string>
#include <thread>

#ifdef __linux__
#include <sched.h>
#include <unistd.h>
#endif

#include "core/cgroup.hpp"

namespace extensor {
namespace {

#ifdef __linux__

int affinity_count() {
  for (int size = CPU_SETSIZE; size <= 64 * CPU_SETSIZE; size *= 2) {
    cpu_set_t* set = CPU_ALLOC(size);
    const size_t bytes = CPU_ALLOC_SIZE(size);
    const bool known = sched_getaffinity(getpid(), bytes, set) == 0;  // of the main thread: see affinity.hpp
    const int count = known ? CPU_COUNT_S(bytes, set) : 0;
    CPU_FREE(set);
    if (known) return count;
  }
  return 0;
}

// cgroup v2: "max 100000" or "150000 100000", quota and period in microseconds.
double quota_v2(const std::string& directory) {
  std::ifstream file(directory + "/cpu.max");
  std::string quota;
  double period = 0;
  if (!(file >> quota >> period) || quota == "max" || period <= 0) return unlimited;
  return std::strtod(quota.c_str(), nullptr) / period;
}

double quota_v1(const std::string& directory) {
  double quota = 0, period = 0;
  std::ifstream(directory + "/cpu.cfs_quota_us") >> quota;
  std::ifstream(directory + "/cpu.cfs_period_us") >> period;
  return quota > 0 && period > 0 ? quota / period : unlimited;
}

double cgroup_quota() { return least_cgroup_figure("cpu", quota_v2, quota_v1); }

#else

int affinity_count() { return 0; }
double cgroup_quota() { return unlimited; }

#endif

}  // namespace

int usable_cpu_count() {
  int count = affinity_count();
  if (count < 1) count = static_cast<int>(std::thread::hardware_concurrency());
  static const double quota = std::ceil(cgroup_quota());  // files to read: once
  if (quota < count) count = static_cast<int>(quota);
  return std::max(count, 1);
}

}  // namespace extensor
