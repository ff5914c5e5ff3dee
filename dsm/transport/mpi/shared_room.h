// SPDX-License-Identifier: Apache-2.0
// Purpose: whether each host of a job has room for the memory that its processes share: host MPIs
// keep it in /dev/shm, which containers have little of, and a page without room ends a process by
// SIGBUS, by which no user finds the cause.
//
//   all = gathered(room_here(bytes));
//   TOMBOLO_TRY(check_rooms(all));    // the same answer in all processes
//
// Thread safety: functions without state.
#pragma once

#include <fmt/format.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <limits>
#include <span>

#include "base/status.h"
#include "host/processes/host_identity.h"

namespace tombolo::dsm {

// Of one process. Trivially copyable: it goes to the others.
struct SharedRoom {
  static constexpr std::uint64_t unlimited = std::numeric_limits<std::uint64_t>::max();

  std::array<char, 64> host{};
  std::array<std::uint8_t, 16> boot{};
  std::uint64_t wanted_bytes = 0;
  std::uint64_t free_bytes = unlimited;

  bool is_on_host_of(const SharedRoom& other) const {
    return host == other.host && boot == other.boot;
  }
};

// `folder`: in tests another one. A folder that cannot be asked has no limit.
inline SharedRoom room_here(std::uint64_t wanted_bytes, const char* folder = "/dev/shm") {
  SharedRoom room{.boot = host::this_host().boot, .wanted_bytes = wanted_bytes};
  gethostname(room.host.data(), room.host.size() - 1);
  struct statvfs system {};
  if (statvfs(folder, &system) == 0 && system.f_blocks != 0)
    room.free_bytes = std::uint64_t{system.f_bavail} * system.f_frsize;
  return room;
}

// By rank. A process that is alone on its host shares no memory. Errors: no_memory.
inline Status check_rooms(std::span<const SharedRoom> all) {
  for (const SharedRoom& first : all) {
    std::uint64_t processes = 0;
    std::uint64_t wanted_bytes = 0;
    std::uint64_t free_bytes = SharedRoom::unlimited;
    for (const SharedRoom& each : all) {
      if (!each.is_on_host_of(first)) continue;
      ++processes;
      wanted_bytes += each.wanted_bytes;
      free_bytes = std::min(free_bytes, each.free_bytes);
    }
    if (processes > 1 && wanted_bytes > free_bytes)
      return Status::no_memory(
          fmt::format("the {} processes on host {} need {} bytes of /dev/shm, which has {} left: "
                      "enlarge it (mount -o remount,size=..., docker run --shm-size), or give a "
                      "smaller --memory",
                      processes, first.host.data(), wanted_bytes, free_bytes));
  }
  return {};
}

}  // namespace tombolo::dsm
