#include "core/cgroup.hpp"

#include <algorithm>
#include <fstream>
#include <sstream>

namespace extensor {
namespace {

// Inside a container the path may lead outside what is mounted; the root is read in any case.
double least_up_to(const std::string& root, std::string path, CgroupFigure figure) {
  double least = figure(root);
  while (path.size() > 1) {
    least = std::min(least, figure(root + path));
    path.resize(path.find_last_of('/'));
  }
  return least;
}

}  // namespace

// Lines of /proc/self/cgroup read "0::/path" (v2) or "4:cpu,cpuacct:/path" (v1).
double least_cgroup_figure(const char* controller, CgroupFigure version_2, CgroupFigure version_1) {
  double least = unlimited;
  std::ifstream file("/proc/self/cgroup");
  for (std::string line; std::getline(file, line);) {
    std::istringstream fields(line);
    std::string id, controllers, path;
    if (!std::getline(fields, id, ':') || !std::getline(fields, controllers, ':') || !std::getline(fields, path)) continue;
    if (path.empty() || path[0] != '/') continue;
    const std::string name = controller;
    if (controllers.empty()) least = std::min(least, least_up_to("/sys/fs/cgroup", path, version_2));
    else if (("," + controllers + ",").find("," + name + ",") != std::string::npos)
      least = std::min(least, least_up_to("/sys/fs/cgroup/" + name, path, version_1));
  }
  return least;
}

}  // namespace extensor
