// SPDX-License-Identifier: Apache-2.0
#include "host/processes/processors.h"

#include <sched.h>
#include <unistd.h>

namespace tombolo::host {

std::uint32_t processors() {
  const long online = sysconf(_SC_NPROCESSORS_ONLN);
  if (online > 0) return static_cast<std::uint32_t>(online);
  cpu_set_t set;
  CPU_ZERO(&set);
  if (sched_getaffinity(0, sizeof set, &set) == 0)
    return static_cast<std::uint32_t>(CPU_COUNT(&set));
  return 1;
}

}  // namespace tombolo::host
