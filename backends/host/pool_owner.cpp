// SPDX-License-Identifier: Apache-2.0
#include "backends/host/pool_owner.h"

#include <fmt/format.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <fstream>
#include <optional>
#include <sstream>
#include <string>

namespace tombolo::host {
namespace {

struct Life {
  char state = 0;
  std::uint64_t start_time = 0;
};

// State and start time from /proc/PID/stat. The name of the program, in parentheses, may hold
// anything, so that the fields are counted from the last parenthesis.
std::optional<Life> life_of(std::int32_t pid) {
  std::ifstream file(fmt::format("/proc/{}/stat", pid));
  std::string text;
  if (!std::getline(file, text)) return {};
  const auto name_end = text.rfind(')');
  if (name_end == std::string::npos) return {};
  std::istringstream fields(text.substr(name_end + 1));
  Life life;
  fields >> life.state;
  std::string skipped;
  for (int field = 4; field < 22; ++field) fields >> skipped;
  if (!(fields >> life.start_time)) return {};
  return life;
}

// The kernel's boot identifier: 32 hexadecimal digits between dashes.
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

std::uint64_t pid_namespace() {
  struct stat shape = {};
  return stat("/proc/self/ns/pid", &shape) == 0 ? shape.st_ino : 0;
}

}  // namespace

std::uint64_t boot_number() {
  const auto id = boot_id();
  std::uint64_t number = 0;
  std::memcpy(&number, id.data(), sizeof number);
  return number == 0 ? 1 : number;
}

Owner this_process() {
  Owner owner;
  owner.boot = boot_id();
  owner.pid_namespace = pid_namespace();
  owner.pid = getpid();
  owner.start_time = life_of(owner.pid).value_or(Life{}).start_time;
  return owner;
}

bool same_host(const Owner& owner) {
  // Without /proc neither is known, and nobody is declared gone.
  const auto boot = boot_id();
  return boot != decltype(boot){} && owner.boot == boot && owner.pid_namespace == pid_namespace();
}

bool gone(const Owner& owner) {
  if (!same_host(owner)) return false;
  const auto life = life_of(owner.pid);
  if (!life) return kill(owner.pid, 0) != 0 && errno == ESRCH;
  if (owner.start_time != 0 && life->start_time != owner.start_time) return true;
  return life->state == 'Z' || life->state == 'X';  // its memory is no longer mapped
}

}  // namespace tombolo::host
