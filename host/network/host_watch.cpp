// SPDX-License-Identifier: Apache-2.0
#include "host/network/host_watch.h"

#include <fmt/format.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/random.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <utility>

#include "host/processes/no_signals.h"
#include "host/processes/start_thread.h"

namespace tombolo::host {
namespace {

using std::chrono::milliseconds;

constexpr char goodbye = 1;

Status failed(const char* call) {
  return Status::io(fmt::format("{}: {}", call, std::strerror(errno)));
}

void set(int socket, int level, int option, int value) {
  // A kernel that does not know an option watches by its own times.
  (void)setsockopt(socket, level, option, &value, sizeof value);
}

int new_socket(int family) { return socket(family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0); }

// One that hosts with addresses of either kind can reach, if the kernel has both.
Descriptor listening_socket() {
  for (const int family : {AF_INET6, AF_INET}) {
    Descriptor made(new_socket(family));
    if (!made.valid()) continue;
    if (family == AF_INET6) set(made.get(), IPPROTO_IPV6, IPV6_V6ONLY, 0);
    const SocketAddress any = with_port({.family = static_cast<std::uint32_t>(family)}, 0);
    if (bind(made.get(), any.get(), any.bytes) != 0) continue;
    if (listen(made.get(), SOMAXCONN) == 0) return made;
  }
  return Descriptor();
}

std::uint16_t port_of(int socket) {
  sockaddr_in6 address{};  // the port of either kind lies there
  socklen_t bytes = sizeof address;
  if (getsockname(socket, reinterpret_cast<sockaddr*>(&address), &bytes) != 0) return 0;
  return ntohs(address.sin6_port);
}

bool is_connected(int socket) {
  int error = 0;
  socklen_t bytes = sizeof error;
  return getsockopt(socket, SOL_SOCKET, SO_ERROR, &error, &bytes) == 0 && error == 0;
}

void begin_to_connect(std::span<const NetworkAddress> addresses, std::uint16_t port,
                      std::vector<Descriptor>& out) {
  const std::vector<NetworkAddress> own = own_addresses();
  for (const NetworkAddress& address : addresses) {
    if (address.family == 0) break;
    // As a bridge of containers, which each host has by the same address.
    if (std::ranges::find(own, address) != own.end()) continue;
    Descriptor made(new_socket(static_cast<int>(address.family)));
    if (!made.valid()) continue;
    const SocketAddress to = with_port(address, port);
    if (connect(made.get(), to.get(), to.bytes) == 0 || errno == EINPROGRESS)
      out.push_back(std::move(made));
  }
}

// The first of them that is connected; those that fail are left out.
Descriptor first_connected(std::vector<Descriptor> sockets, milliseconds patience) {
  while (!sockets.empty()) {
    std::vector<pollfd> wanted;
    for (const Descriptor& each : sockets)
      wanted.push_back({.fd = each.get(), .events = POLLOUT, .revents = 0});
    const int ready = poll(wanted.data(), wanted.size(), static_cast<int>(patience.count()));
    if (ready < 0 && errno == EINTR) continue;
    if (ready <= 0) break;
    for (std::size_t i = sockets.size(); i-- > 0;) {
      if (wanted[i].revents == 0) continue;
      if (is_connected(sockets[i].get())) return std::move(sockets[i]);
      sockets.erase(sockets.begin() + static_cast<std::ptrdiff_t>(i));
    }
  }
  return Descriptor();
}

}  // namespace

// HWT1: the kernel asks once a second, and gives up when it has heard nothing for the limit.
void HostWatch::be_watched(int socket) const {
  const auto limit_s = static_cast<int>(limit_.count());
  set(socket, SOL_SOCKET, SO_KEEPALIVE, 1);
  set(socket, IPPROTO_TCP, TCP_KEEPIDLE, 1);
  set(socket, IPPROTO_TCP, TCP_KEEPINTVL, 1);
  set(socket, IPPROTO_TCP, TCP_KEEPCNT, limit_s - 1);
  set(socket, IPPROTO_TCP, TCP_USER_TIMEOUT, limit_s * 1000);
}

Status HostWatch::invite(Invitation& out) {
  listener_ = listening_socket();
  if (!listener_.valid()) return failed("socket");
  out.port = port_of(listener_.get());
  std::vector<NetworkAddress> own = own_addresses();
  own.resize(std::min(own.size(), Invitation::most));
  std::ranges::copy(own, out.addresses.begin());
  if (getrandom(out.secret.data(), out.secret.size(), 0) < 0) return failed("getrandom");
  invitation_ = out;
  return {};
}

Status HostWatch::join(const Invitation& invitation, int member) {
  std::vector<Descriptor> sockets;
  begin_to_connect(invitation.addresses, invitation.port, sockets);
  Peer peer{.member = center, .socket = first_connected(std::move(sockets), usual_patience)};
  if (!peer.socket.valid()) return Status::io("no address of the other host can be reached by TCP");
  be_watched(peer.socket.get());
  const Hello hello{.secret = invitation.secret, .member = member};
  if (send(peer.socket.get(), &hello, sizeof hello, MSG_NOSIGNAL) != sizeof hello)
    return failed("send");
  peers_.push_back(std::move(peer));
  return {};
}

std::vector<int> HostWatch::take(std::span<const int> members, milliseconds patience) {
  using Clock = std::chrono::steady_clock;
  const Clock::time_point end = Clock::now() + patience;
  std::vector<Guest> guests;
  while (peers_.size() < members.size()) {
    std::vector<pollfd> wanted = {{.fd = listener_.get(), .events = POLLIN, .revents = 0}};
    for (const Guest& guest : guests)
      wanted.push_back({.fd = guest.socket.get(), .events = POLLIN, .revents = 0});
    // All of them have come before, and their words are under way.
    const auto left = std::chrono::ceil<milliseconds>(end - Clock::now()).count();
    const int ready =
        poll(wanted.data(), wanted.size(), static_cast<int>(std::max<decltype(left)>(left, 0)));
    if (ready < 0 && errno == EINTR) continue;
    if (ready <= 0) break;
    for (std::size_t i = 0; i < guests.size(); ++i)
      if (wanted[i + 1].revents != 0) greet(guests[i], members);
    std::erase_if(guests, [](const Guest& guest) { return !guest.socket.valid(); });
    if (wanted[0].revents == 0) continue;
    Descriptor came(accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (came.valid())
      guests.push_back({.socket = std::move(came), .hello = {}});
    else if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM)
      break;  // it would stay the first of the queue
  }
  listener_.reset(-1);
  std::vector<int> taken;
  for (const Peer& peer : peers_) taken.push_back(peer.member);
  return taken;
}

// HWT4. A guest without a socket is done with.
void HostWatch::greet(Guest& guest, std::span<const int> members) {
  auto* const at = reinterpret_cast<std::byte*>(&guest.hello) + guest.bytes;
  const ssize_t came = recv(guest.socket.get(), at, sizeof guest.hello - guest.bytes, 0);
  if (came < 0 && (errno == EAGAIN || errno == EINTR)) return;
  if (came > 0) guest.bytes += static_cast<std::size_t>(came);
  if (came > 0 && guest.bytes < sizeof guest.hello) return;
  Descriptor socket = std::move(guest.socket);
  const int member = guest.hello.member;
  if (came <= 0 || guest.hello.secret != invitation_.secret) return;
  if (std::ranges::find(members, member) == members.end()) return;
  if (std::ranges::find(peers_, member, &Peer::member) != peers_.end()) return;
  be_watched(socket.get());
  peers_.push_back({.member = member, .socket = std::move(socket)});
}

Status HostWatch::begin(Lost lost) {
  if (peers_.empty()) return {};
  lost_ = std::move(lost);
  has_begun_ = true;
  const NoSignals none;  // they are the program's threads'
  return start_thread(
      "that watches the other hosts", [this] { watch(); }, thread_);
}

void HostWatch::end() {
  if (!has_begun_) return;
  has_begun_ = false;
  ends_ = true;
  for (const Peer& peer : peers_) {
    (void)send(peer.socket.get(), &goodbye, sizeof goodbye, MSG_NOSIGNAL);
    shutdown(peer.socket.get(), SHUT_WR);
  }
  if (thread_.joinable())
    thread_.join();
  else
    watch();
  peers_.clear();
}

// Until all have left: a goodbye, an end and an error each wake it.
void HostWatch::watch() {
  while (!std::ranges::all_of(peers_, &Peer::has_left)) {
    std::vector<pollfd> wanted;
    for (const Peer& peer : peers_)
      wanted.push_back(
          {.fd = peer.has_left ? -1 : peer.socket.get(), .events = POLLIN, .revents = 0});
    if (poll(wanted.data(), wanted.size(), -1) < 0) continue;
    for (std::size_t i = 0; i < peers_.size(); ++i)
      if (wanted[i].revents != 0) look(peers_[i]);
  }
}

void HostWatch::look(Peer& peer) {
  char said = 0;
  const ssize_t came = recv(peer.socket.get(), &said, sizeof said, MSG_DONTWAIT);
  if (came < 0 && (errno == EAGAIN || errno == EINTR)) return;
  const int error = came < 0 ? errno : 0;
  peer.has_left = true;  // with a goodbye, or without
  if (came > 0 || ends_) return;
  const bool closed = error == 0 || error == ECONNRESET || error == EPIPE;
  lost_(peer.member, closed ? Loss::end : Loss::silence);
}

}  // namespace tombolo::host
