// SPDX-License-Identifier: Apache-2.0
#include "host/network/addresses.h"

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <net/if.h>

#include <cstring>
#include <memory>
#include <optional>

namespace tombolo::host {
namespace {

std::optional<NetworkAddress> address_of(const sockaddr* socket) {
  NetworkAddress address{.family = socket->sa_family};
  if (socket->sa_family == AF_INET) {
    const in_addr& of = reinterpret_cast<const sockaddr_in*>(socket)->sin_addr;
    std::memcpy(address.of.data(), &of, sizeof of);
    return address;
  }
  if (socket->sa_family != AF_INET6) return std::nullopt;
  const in6_addr& of = reinterpret_cast<const sockaddr_in6*>(socket)->sin6_addr;
  if (IN6_IS_ADDR_LINKLOCAL(&of)) return std::nullopt;
  std::memcpy(address.of.data(), &of, sizeof of);
  return address;
}

}  // namespace

SocketAddress with_port(const NetworkAddress& address, std::uint16_t port) {
  SocketAddress made;
  if (address.family == AF_INET) {
    auto& socket = reinterpret_cast<sockaddr_in&>(made.storage);
    socket.sin_family = AF_INET;
    socket.sin_port = htons(port);
    std::memcpy(&socket.sin_addr, address.of.data(), sizeof socket.sin_addr);
    made.bytes = sizeof socket;
    return made;
  }
  auto& socket = reinterpret_cast<sockaddr_in6&>(made.storage);
  socket.sin6_family = AF_INET6;
  socket.sin6_port = htons(port);
  std::memcpy(&socket.sin6_addr, address.of.data(), sizeof socket.sin6_addr);
  made.bytes = sizeof socket;
  return made;
}

std::vector<NetworkAddress> own_addresses() {
  ifaddrs* first = nullptr;
  if (getifaddrs(&first) != 0) return {};
  const std::unique_ptr<ifaddrs, void (*)(ifaddrs*)> all(first, &freeifaddrs);
  std::vector<NetworkAddress> found;
  for (const ifaddrs* one = first; one != nullptr; one = one->ifa_next) {
    if ((one->ifa_flags & IFF_UP) == 0 || (one->ifa_flags & IFF_LOOPBACK) != 0) continue;
    if (one->ifa_addr == nullptr) continue;
    if (const auto address = address_of(one->ifa_addr)) found.push_back(*address);
  }
  return found;
}

}  // namespace tombolo::host
