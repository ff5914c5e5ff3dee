// SPDX-License-Identifier: Apache-2.0
#include "host/processes/fixed_addresses.h"

#include <fmt/format.h>
#include <sys/personality.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <climits>
#include <cstring>

namespace tombolo::host {
namespace {

Status refused(const char* call) {
  return Status::unsupported(fmt::format(
      "this process cannot turn the randomization of its addresses off ({}: {}); start the program "
      "by setarch -R, or allow personality() in its container",
      call, std::strerror(errno)));
}

}  // namespace

Status have_fixed_addresses(char** arguments) {
  constexpr unsigned long ask = 0xffffffff;
  const int now = personality(ask);
  if (now >= 0 && (now & ADDR_NO_RANDOMIZE) != 0) return {};
  if (now < 0 || personality(static_cast<unsigned long>(now) | ADDR_NO_RANDOMIZE) < 0)
    return refused("personality");
  // Some kernels take the call and change nothing: this would be done for ever.
  if ((personality(ask) & ADDR_NO_RANDOMIZE) == 0) return refused("personality");
  std::array<char, PATH_MAX> file{};
  if (readlink("/proc/self/exe", file.data(), file.size() - 1) < 0) return refused("readlink");
  execv(file.data(), arguments);
  return refused("execve");
}

}  // namespace tombolo::host
