// What the control groups of this process allow it.
#pragma once

#include <limits>
#include <string>

namespace extensor {

constexpr double unlimited = std::numeric_limits<double>::infinity();

// Reads a figure from the files of a group; `unlimited` if it has none.
using CgroupFigure = double (*)(const std::string& directory);

// The least figure on the way from the groups of this process up to the root of their hierarchy, for version 2 and for the
// controller of that name in version 1. Infinite without groups.
double least_cgroup_figure(const char* controller, CgroupFigure version_2, CgroupFigure version_1);

}  // namespace extensor
