// How many CPUs this process may use.
#pragma once

namespace gaf {

// CPUs of the calling thread's affinity mask, not more than the container's CPU quota (cgroup v1 and v2, the tightest
// of the group and its parents) rounded up. At least 1.
int host_cores();

// Quota in CPUs from the text of `cpu.max` ("max 100000", "150000 100000"); 0 = no limit or not understood.
double cpu_quota(const char* cpu_max);

}  // namespace gaf
