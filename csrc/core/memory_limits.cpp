#include "core/memory_limits.hpp"

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <fstream>
#include <limits>
#include <string>

#include "core/cgroup.hpp"

#ifdef __unix__
#include <sys/resource.h>
#include <unistd.h>
#endif

namespace extensor {
namespace {

constexpr size_t most = std::numeric_limits<size_t>::max();

size_t as_size(double bytes) { return bytes < 1e18 ? static_cast<size_t>(std::max(bytes, 0.0)) : most; }

// The number in a file of one word; `missing` if there is none, as in "max".
double number_in(const std::string& path, double missing) {
  double value;
  return std::ifstream(path) >> value ? value : missing;
}

// The number behind a word at the start of a line, in the unit of the file; `missing` if there is none.
double number_after(const char* path, const std::string& word, double missing) {
  std::ifstream file(path);
  for (std::string first, line; file >> first; std::getline(file, line)) {
    double value;
    if (first == word && file >> value) return value;
  }
  return missing;
}

double limit_v2(const std::string& group) { return number_in(group + "/memory.max", unlimited); }
double limit_v1(const std::string& group) { return number_in(group + "/memory.limit_in_bytes", unlimited); }

// Pages of files that were not used lately are dropped before a group runs out of memory.
double left_v2(const std::string& group) {
  const double limit = limit_v2(group);
  if (limit == unlimited) return unlimited;
  return limit - number_in(group + "/memory.current", 0) + number_after((group + "/memory.stat").c_str(), "inactive_file", 0);
}
double left_v1(const std::string& group) {
  const double limit = limit_v1(group);
  if (limit > 1e18) return unlimited;
  return limit - number_in(group + "/memory.usage_in_bytes", 0) +
         number_after((group + "/memory.stat").c_str(), "total_inactive_file", 0);
}

#ifdef __unix__
size_t process_limit(int resource) {
  rlimit limit;
  return getrlimit(resource, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY ? size_t(limit.rlim_cur) : most;
}
#endif

}  // namespace

size_t usable_memory() {
  size_t bytes = as_size(least_cgroup_figure("memory", limit_v2, limit_v1));
#ifdef __unix__
  const long pages = sysconf(_SC_PHYS_PAGES), page = sysconf(_SC_PAGESIZE);
  if (pages > 0 && page > 0) bytes = std::min(bytes, size_t(pages) * size_t(page));
  bytes = std::min({bytes, process_limit(RLIMIT_AS), process_limit(RLIMIT_DATA)});
#endif
  return bytes;
}

size_t available_memory() {
  size_t bytes = as_size(least_cgroup_figure("memory", left_v2, left_v1));
  bytes = std::min(bytes, as_size(1024 * number_after("/proc/meminfo", "MemAvailable:", unlimited)));
#ifdef __unix__
  const size_t limit = process_limit(RLIMIT_AS);
  if (limit != most) {
    const size_t used = as_size(1024 * number_after("/proc/self/status", "VmSize:", 0));
    bytes = std::min(bytes, limit > used ? limit - used : 0);
  }
#endif
  return bytes;
}

}  // namespace extensor
