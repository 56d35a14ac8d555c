#include "core/cpu_count.hpp"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <fstream>
#include <limits>
#include <sstream>
#include <string>
#include <thread>

#ifdef __linux__
#include <sched.h>
#endif

namespace extensor {
namespace {

constexpr double unlimited = std::numeric_limits<double>::infinity();

#ifdef __linux__

int affinity_count() {
  for (int size = CPU_SETSIZE; size <= 64 * CPU_SETSIZE; size *= 2) {
    cpu_set_t* set = CPU_ALLOC(size);
    const size_t bytes = CPU_ALLOC_SIZE(size);
    const bool known = sched_getaffinity(0, bytes, set) == 0;
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

// The tightest quota on the way from a group up to the root of its hierarchy. Inside a container the
// path may lead outside what is mounted; the root is read in any case.
template <class Quota>
double tightest_quota(const std::string& root, std::string path, Quota quota) {
  double tightest = quota(root);
  while (path.size() > 1) {
    tightest = std::min(tightest, quota(root + path));
    path.resize(path.find_last_of('/'));
  }
  return tightest;
}

// Lines of /proc/self/cgroup read "0::/path" (v2) or "4:cpu,cpuacct:/path" (v1).
double cgroup_quota() {
  double tightest = unlimited;
  std::ifstream file("/proc/self/cgroup");
  for (std::string line; std::getline(file, line);) {
    std::istringstream fields(line);
    std::string id, controllers, path;
    if (!std::getline(fields, id, ':') || !std::getline(fields, controllers, ':') || !std::getline(fields, path)) continue;
    if (path.empty() || path[0] != '/') continue;
    if (controllers.empty()) {
      tightest = std::min(tightest, tightest_quota("/sys/fs/cgroup", path, quota_v2));
    } else if (("," + controllers + ",").find(",cpu,") != std::string::npos) {
      tightest = std::min(tightest, tightest_quota("/sys/fs/cgroup/cpu", path, quota_v1));
    }
  }
  return tightest;
}

#else

int affinity_count() { return 0; }
double cgroup_quota() { return unlimited; }

#endif

}  // namespace

int usable_cpu_count() {
  int count = affinity_count();
  if (count < 1) count = static_cast<int>(std::thread::hardware_concurrency());
  const double quota = std::ceil(cgroup_quota());
  if (quota < count) count = static_cast<int>(quota);
  return std::max(count, 1);
}

}  // namespace extensor
