// SPDX-License-Identifier: Apache-2.0
#include "host/processes/host_identity.h"

#include <sys/stat.h>
#include <unistd.h>

#include <cstring>
#include <fstream>
#include <functional>
#include <string>
#include <string_view>

namespace tombolo::host {
namespace {

// 32 hexadecimal digits between dashes.
std::array<std::uint8_t, 16> boot_id() {
  std::array<std::uint8_t, 16> id = {};
  std::ifstream file("/proc/sys/kernel/random/boot_id");
  std::string text;
  file >> text;
  std::size_t digit = 0;
  for (const char c : text) {
    if (c == '-' || digit == 32) continue;
    const int value = c <= '9' ? c - '0' : (c | 32) - 'a' + 10;
    id[digit / 2] = static_cast<std::uint8_t>(id[digit / 2] << 4 | (value & 15));
    ++digit;
  }
  return id;
}

}  // namespace

std::uint64_t HostIdentity::digest() const {
  std::array<char, sizeof boot + sizeof pid_namespace> bytes;
  std::memcpy(bytes.data(), boot.data(), sizeof boot);
  std::memcpy(bytes.data() + sizeof boot, &pid_namespace, sizeof pid_namespace);
  return std::hash<std::string_view>{}({bytes.data(), bytes.size()});
}

HostIdentity this_host() {
  HostIdentity identity{.boot = boot_id()};
  struct stat shape = {};
  if (stat("/proc/self/ns/pid", &shape) == 0) identity.pid_namespace = shape.st_ino;
  return identity;
}

std::uint64_t boot_number(const HostIdentity& host) {
  std::uint64_t number = 0;
  std::memcpy(&number, host.boot.data(), sizeof number);
  return number == 0 ? 1 : number;
}

std::uint64_t boot_number() { return boot_number(this_host()); }

Owner this_process() { return {this_host(), process_named(getpid())}; }

bool gone(const Owner& owner) {
  const HostIdentity here = this_host();
  if (here.boot == decltype(here.boot){} || owner.host != here) return false;
  return has_ended(owner.process);
}

}  // namespace tombolo::host
