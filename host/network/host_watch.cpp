// SPDX-License-Identifier: Apache-2.0
#include "host/network/host_watch.h"

#include <fmt/format.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <thread>
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

// Receives up to `until` bytes of a message. False: the other end has closed, or there is an error.
template <class Message>
bool receive(int socket, Message& message, std::size_t& bytes, std::size_t until) {
  auto* const at = reinterpret_cast<std::byte*>(&message) + bytes;
  const ssize_t came = recv(socket, at, until - bytes, 0);
  if (came > 0) bytes += static_cast<std::size_t>(came);
  return came > 0 || (came < 0 && (errno == EAGAIN || errno == EINTR));
}

// A new connection has room for the few bytes of a message.
template <class Message>
bool say(int socket, const Message& message) {
  return send(socket, &message, sizeof message, MSG_NOSIGNAL) ==
         static_cast<ssize_t>(sizeof message);
}

int milliseconds_until(std::chrono::steady_clock::time_point end) {
  const auto left = std::chrono::ceil<milliseconds>(end - std::chrono::steady_clock::now());
  return static_cast<int>(std::max(left, milliseconds(0)).count());
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
  const auto secret = random_bytes();
  if (!secret) return failed("getrandom");
  out.secret = *secret;
  invitation_ = out;
  return {};
}

// ---- A member -----------------------------------------------------------------------------------

std::vector<HostWatch::Candidate> HostWatch::begin_to_connect(const Invitation& invitation) {
  const std::vector<NetworkAddress> own = own_addresses();
  std::vector<Candidate> made;
  for (const NetworkAddress& address : invitation.addresses) {
    if (address.family == 0) break;
    // As a bridge of containers, which each host has by the same address.
    if (std::ranges::find(own, address) != own.end()) continue;
    Descriptor socket(new_socket(static_cast<int>(address.family)));
    const auto nonce = random_bytes();
    if (!socket.valid() || !nonce) continue;
    const SocketAddress to = with_port(address, invitation.port);
    if (connect(socket.get(), to.get(), to.bytes) != 0 && errno != EINPROGRESS) continue;
    made.push_back({.socket = std::move(socket), .nonce = *nonce, .answer = {}});
  }
  return made;
}

Status HostWatch::join(const Invitation& invitation, int member, milliseconds patience) {
  const auto end = std::chrono::steady_clock::now() + patience;
  std::vector<Candidate> candidates = begin_to_connect(invitation);
  while (!candidates.empty()) {
    std::vector<pollfd> wanted;
    for (const Candidate& each : candidates) {
      const short events = each.has_said_hello ? POLLIN : POLLOUT;
      wanted.push_back({.fd = each.socket.get(), .events = events, .revents = 0});
    }
    const int ready = poll(wanted.data(), wanted.size(), milliseconds_until(end));
    if (ready < 0 && errno == EINTR) continue;
    if (ready <= 0) break;
    for (std::size_t i = 0; i < candidates.size(); ++i) {
      if (wanted[i].revents == 0 || !meet(candidates[i], invitation, member)) continue;
      be_watched(candidates[i].socket.get());
      peers_.push_back({.member = center, .socket = std::move(candidates[i].socket)});
      return {};
    }
    std::erase_if(candidates, [](const Candidate& each) { return !each.socket.valid(); });
  }
  return Status::io(
      "no address of the other host can be reached by TCP, or strangers answer there");
}

// HWT4: true once the center has proven itself. A candidate without a socket is done with.
bool HostWatch::meet(Candidate& candidate, const Invitation& invitation, int member) {
  Descriptor socket = std::move(candidate.socket);
  if (!candidate.has_said_hello) {
    const Hello hello{.nonce = candidate.nonce, .member = member};
    if (!is_connected(socket.get()) || !say(socket.get(), hello)) return false;
    candidate.has_said_hello = true;
    candidate.socket = std::move(socket);
    return false;
  }
  const Answer& answer = candidate.answer;
  if (!receive(socket.get(), candidate.answer, candidate.bytes, sizeof answer)) return false;
  if (candidate.bytes == sizeof answer) {
    const Challenge challenge{
        .of_center = answer.nonce, .of_member = candidate.nonce, .member = member};
    if (!proves(answer.proof, invitation.secret, ProvingRole::center, challenge)) return false;
    if (!say(socket.get(), proof_of(invitation.secret, ProvingRole::member, challenge)))
      return false;
  }
  candidate.socket = std::move(socket);
  return candidate.bytes == sizeof answer;
}

// ---- The center ---------------------------------------------------------------------------------

void HostWatch::serve(milliseconds time) {
  const auto end = std::chrono::steady_clock::now() + time;
  int left = milliseconds_until(end);
  while (serve_once(milliseconds(left)) && left > 0) left = milliseconds_until(end);
}

std::vector<int> HostWatch::take(std::span<const int> members, milliseconds patience) {
  const auto end = std::chrono::steady_clock::now() + patience;
  const auto has_come = [&](int member) {
    return std::ranges::find(peers_, member, &Peer::member) != peers_.end();
  };
  // The last words of members are under way. Strangers that keep coming do not prolong it.
  int left = milliseconds_until(end);
  while (!std::ranges::all_of(members, has_come) && serve_once(milliseconds(left)) && left > 0)
    left = milliseconds_until(end);
  listener_.reset(-1);
  guests_.clear();
  std::erase_if(peers_, [&](const Peer& peer) {
    return std::ranges::find(members, peer.member) == members.end();
  });
  std::vector<int> taken;
  for (const Peer& peer : peers_) taken.push_back(peer.member);
  return taken;
}

// HWT5. Those that have said hello may be members whose proofs are under way.
bool HostWatch::send_guest_away() {
  if (guests_.empty()) return false;
  const auto is_mute = [](const Guest& guest) { return guest.bytes < sizeof(Hello); };
  const auto mute = std::ranges::find_if(guests_, is_mute);
  guests_.erase(mute != guests_.end() ? mute : guests_.begin());
  return true;
}

// False: the host has no room for it, so that it stays the first of the queue.
bool HostWatch::accept_guest() {
  if (guests_.size() == most_guests) send_guest_away();
  for (;;) {
    Descriptor came(accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (came.valid()) {
      if (const auto nonce = random_bytes())
        guests_.push_back({.socket = std::move(came), .nonce = *nonce, .words = {}});
      return true;
    }
    if (errno != EMFILE && errno != ENFILE && errno != ENOBUFS && errno != ENOMEM) return true;
    if (!send_guest_away()) return false;
  }
}

// False: nothing came in that time.
bool HostWatch::serve_once(milliseconds time) {
  std::vector<pollfd> wanted = {{.fd = listener_.get(), .events = POLLIN, .revents = 0}};
  for (const Guest& guest : guests_)
    wanted.push_back({.fd = guest.socket.get(), .events = POLLIN, .revents = 0});
  const int ready = poll(wanted.data(), wanted.size(), static_cast<int>(time.count()));
  if (ready < 0 && errno == EINTR) return true;
  if (ready <= 0) return false;
  for (std::size_t i = 0; i < guests_.size(); ++i)
    if (wanted[i + 1].revents != 0) greet(guests_[i]);
  std::erase_if(guests_, [](const Guest& guest) { return !guest.socket.valid(); });
  if (wanted[0].revents == 0) return true;
  constexpr milliseconds until_room(10);
  if (!accept_guest()) std::this_thread::sleep_for(std::min(time, until_room));
  return true;
}

Challenge HostWatch::challenge_of(const Guest& guest) const {
  const Hello& hello = guest.words.hello;
  return {.of_center = guest.nonce, .of_member = hello.nonce, .member = hello.member};
}

// HWT4. A guest without a socket is done with.
void HostWatch::greet(Guest& guest) {
  Descriptor socket = std::move(guest.socket);
  const bool had_said_hello = guest.bytes >= sizeof(Hello);
  const std::size_t until = had_said_hello ? sizeof guest.words : sizeof(Hello);
  if (!receive(socket.get(), guest.words, guest.bytes, until)) return;
  if (!had_said_hello && guest.bytes == sizeof(Hello)) {
    const Answer answer{
        .nonce = guest.nonce,
        .proof = proof_of(invitation_.secret, ProvingRole::center, challenge_of(guest))};
    if (!say(socket.get(), answer)) return;
  }
  if (guest.bytes < sizeof guest.words) {
    guest.socket = std::move(socket);
    return;
  }
  const int member = guest.words.hello.member;
  if (!proves(guest.words.proof, invitation_.secret, ProvingRole::member, challenge_of(guest)))
    return;
  if (std::ranges::find(peers_, member, &Peer::member) != peers_.end()) return;
  be_watched(socket.get());
  peers_.push_back({.member = member, .socket = std::move(socket)});
}

// ---- Both ---------------------------------------------------------------------------------------

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
