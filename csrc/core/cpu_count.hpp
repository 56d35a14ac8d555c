#pragma once

namespace extensor {

// Processors this process may use: the affinity mask, cut down to the CPU quota of its cgroups.
int usable_cpu_count();

}  // namespace extensor
