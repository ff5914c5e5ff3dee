// SPDX-License-Identifier: Apache-2.0
#include "runtime/collective/socket_exchange.h"

#include <fmt/format.h>
#include <sys/socket.h>

#include <cerrno>
#include <cstdint>
#include <cstring>

namespace tombolo::runtime {

Status SocketExchange::make(int size, std::vector<Ends>& out) {
  std::vector<Ends> ends(static_cast<std::size_t>(size));
  for (int rank = 1; rank < size; ++rank) {
    int pair[2];
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) != 0)
      return Status::io(fmt::format("socketpair for process {} of {}: {}; see ulimit -n", rank,
                                    size, std::strerror(errno)));
    ends[0].emplace_back(pair[0]);
    ends[static_cast<std::size_t>(rank)].emplace_back(pair[1]);
  }
  out = std::move(ends);
  return {};
}

Status SocketExchange::give_up(Status why) {
  broken_ = std::move(why);
  ends_.clear();  // the peers' next call on these streams fails as well
  return broken_;
}

Status SocketExchange::send(std::size_t end, const void* data, std::size_t bytes) {
  TOMBOLO_TRY(broken_);
  const auto* at = static_cast<const std::byte*>(data);
  while (bytes > 0) {
    const ssize_t sent = ::send(ends_[end].get(), at, bytes, MSG_NOSIGNAL);
    if (sent < 0 && errno == EINTR) continue;
    if (sent < 0)
      return give_up(Status::process_failed(
          peer_at(end),
          fmt::format("process {} has left: {}", peer_at(end), std::strerror(errno))));
    at += sent;
    bytes -= static_cast<std::size_t>(sent);
  }
  return {};
}

Status SocketExchange::receive(std::size_t end, void* data, std::size_t bytes) {
  TOMBOLO_TRY(broken_);
  auto* at = static_cast<std::byte*>(data);
  while (bytes > 0) {
    const ssize_t got = recv(ends_[end].get(), at, bytes, 0);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0)
      return give_up(
          Status::process_failed(peer_at(end), fmt::format("process {} has left", peer_at(end))));
    at += got;
    bytes -= static_cast<std::size_t>(got);
  }
  return {};
}

Status SocketExchange::to_all_others(const void* data, std::size_t bytes, int but_for) {
  for (int rank = 1; rank < size_; ++rank)
    if (rank != but_for) TOMBOLO_TRY(send(static_cast<std::size_t>(rank - 1), data, bytes));
  return {};
}

Status SocketExchange::gather(const void* mine, void* everyones, std::size_t bytes) {
  const std::size_t whole = bytes * static_cast<std::size_t>(size_);
  if (rank_ != 0) {
    TOMBOLO_TRY(send(0, mine, bytes));
    return receive(0, everyones, whole);
  }
  auto* const all = static_cast<std::byte*>(everyones);
  if (bytes > 0) std::memcpy(all, mine, bytes);  // either may be null without bytes
  for (int rank = 1; rank < size_; ++rank)
    TOMBOLO_TRY(receive(static_cast<std::size_t>(rank - 1),
                        all + bytes * static_cast<std::size_t>(rank), bytes));
  return to_all_others(all, whole, 0);
}

Status SocketExchange::broadcast(void* data, std::size_t bytes, int root) {
  if (rank_ == 0) {
    if (root != 0) TOMBOLO_TRY(receive(static_cast<std::size_t>(root - 1), data, bytes));
    return to_all_others(data, bytes, root);
  }
  if (rank_ == root) return send(0, data, bytes);
  return receive(0, data, bytes);
}

bool SocketExchange::all(bool yes) {
  // The conjunction of all answers, and back: process 0 alone needs the single ones.
  std::uint8_t answer = yes ? 1 : 0;
  if (rank_ != 0)
    return send(0, &answer, sizeof answer).ok() && receive(0, &answer, sizeof answer).ok() &&
           answer != 0;
  for (int rank = 1; rank < size_; ++rank) {
    std::uint8_t theirs = 0;
    if (!receive(static_cast<std::size_t>(rank - 1), &theirs, sizeof theirs).ok()) return false;
    answer = answer != 0 && theirs != 0 ? 1 : 0;
  }
  return to_all_others(&answer, sizeof answer, 0).ok() && answer != 0;
}

}  // namespace tombolo::runtime
