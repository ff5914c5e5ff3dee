// SPDX-License-Identifier: Apache-2.0
// Purpose: tells one host from another, and one boot of a host from the next: by the kernel's boot
// identifier and the namespace of process numbers (containers of one host see different numbers).
// Thread safety: yes.
#pragma once

#include <array>
#include <cstdint>

#include "host/processes/process.h"

namespace tombolo::host {

struct HostIdentity {
  std::array<std::uint8_t, 16> boot = {};  // /proc/sys/kernel/random/boot_id; zeros: not known
  std::uint64_t pid_namespace = 0;         // inode of /proc/self/ns/pid

  bool operator==(const HostIdentity&) const = default;
  // Equal for processes that can name each other's descriptors and memory; for comparing only.
  std::uint64_t digest() const;
};

// Of this process. Asks the kernel anew.
HostIdentity this_host();

// Stands for the kernel that runs this process until it is booted anew; never 0.
std::uint64_t boot_number();
std::uint64_t boot_number(const HostIdentity& host);

// A process of any host, for tables that outlive it.
struct Owner {
  HostIdentity host;
  ProcessName process;

  bool operator==(const Owner&) const = default;
};

// This process. Asks the kernel anew, also after a fork.
Owner this_process();

// Certainly dead: never true of a process of another boot, host or namespace of numbers, nor where
// the kernel does not tell its boot.
bool gone(const Owner& owner);

}  // namespace tombolo::host
