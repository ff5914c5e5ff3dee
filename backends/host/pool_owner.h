// SPDX-License-Identifier: Apache-2.0
// Purpose: names a process so that another can tell, much later, whether it is still there: its
// number alone is reused.
//
// Invariants: O1 gone() is true only if the process is certainly dead: a process of another boot,
//                host or pid namespace is never declared gone.
// Thread safety: yes.
#pragma once

#include <array>
#include <cstdint>

namespace tombolo::host {

struct Owner {
  std::array<std::uint8_t, 16> boot = {};  // of the kernel, /proc/sys/kernel/random/boot_id
  std::uint64_t pid_namespace = 0;         // inode of /proc/self/ns/pid
  std::uint64_t start_time = 0;            // in clock ticks since boot; 0: unknown
  std::int32_t pid = 0;

  bool operator==(const Owner&) const = default;
};

// Stands for the kernel that runs this process until it is booted anew; never 0.
std::uint64_t boot_number();

// This process. Asks the kernel anew after a fork.
Owner this_process();

// Whether `owner` ran under the same kernel and pid namespace as this process.
bool same_host(const Owner& owner);

// Whether `owner` is certainly dead (O1).
bool gone(const Owner& owner);

}  // namespace tombolo::host
