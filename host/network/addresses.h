// SPDX-License-Identifier: Apache-2.0
// Purpose: the addresses by which other hosts may reach this one over IP. Thread safety: yes.
#pragma once

#include <netinet/in.h>
#include <sys/socket.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace tombolo::host {

// Trivially copyable, so that processes can tell it to each other.
struct NetworkAddress {
  std::uint32_t family = 0;           // AF_INET: the first 4 bytes; AF_INET6: all
  std::array<std::uint8_t, 16> of{};  // as in a packet

  bool operator==(const NetworkAddress&) const = default;
};

struct SocketAddress {
  sockaddr_storage storage{};
  socklen_t bytes = 0;

  const sockaddr* get() const { return reinterpret_cast<const sockaddr*>(&storage); }
};
SocketAddress with_port(const NetworkAddress& address, std::uint16_t port);

// Of the interfaces that are up; without those that mean another host elsewhere (loopback, local to
// a link). Empty where the kernel does not tell.
std::vector<NetworkAddress> own_addresses();

}  // namespace tombolo::host
