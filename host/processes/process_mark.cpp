// SPDX-License-Identifier: Apache-2.0
#include "host/processes/process_mark.h"

#include <fmt/format.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <functional>
#include <string>

namespace tombolo::host {
namespace {

Descriptor new_socket() { return Descriptor(socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0)); }

struct Address {
  sockaddr_un storage{.sun_family = AF_UNIX, .sun_path = {}};
  socklen_t bytes = 0;

  // Names may be longer than the kernel's: the end, which differs most, is there as it is.
  explicit Address(std::string_view name) {
    const std::string_view end = name.substr(name.size() - std::min<std::size_t>(name.size(), 64));
    const std::string text =
        fmt::format("tombolo {:016x} {}", std::hash<std::string_view>{}(name), end);
    // The first byte stays 0, which means that the name is of no file.
    std::copy(text.begin(), text.end(), storage.sun_path + 1);
    bytes = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + text.size());
  }
  const sockaddr* get() const { return reinterpret_cast<const sockaddr*>(&storage); }
};

}  // namespace

Taken ProcessMark::take(std::string_view name) {
  Descriptor made = new_socket();
  const Address address(name);
  if (!made.valid()) return Taken::refused;
  if (bind(made.get(), address.get(), address.bytes) != 0)
    return errno == EADDRINUSE ? Taken::by_another : Taken::refused;
  socket_ = std::move(made);
  return Taken::yes;
}

MarkLookup::MarkLookup() : socket_(new_socket()) {}

bool MarkLookup::is_taken(std::string_view name) const {
  const Address address(name);
  return connect(socket_.get(), address.get(), address.bytes) == 0;
}

}  // namespace tombolo::host
