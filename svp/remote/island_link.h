// SPDX-License-Identifier: Apache-2.0
// Purpose: the link of a process to all others of its job: to those of its island by the memory
// that they share, to the rest by the host MPI.
// Thread safety: as its parts.
#pragma once

#include <algorithm>
#include <optional>
#include <utility>

#include "svp/links/host_link.h"
#include "svp/links/link.h"
#include "svp/records/process_records.h"
#include "svp/remote/island.h"

namespace tombolo::svp {

// `Near` is a link between the homes of the island. `far` is null if that is the whole job.
template <Link Near>
class IslandLink {
 public:
  IslandLink(Near& near, const Island& island, HostLink* far)
      : near_(near), island_(island), far_(far) {}

  Site self() const { return island_.sites[near_.self()]; }
  Site sites() const { return static_cast<Site>(island_.homes.size()); }
  std::size_t most_bytes() const {
    return far_ == nullptr ? near_.most_bytes() : std::min(near_.most_bytes(), far_->most_bytes());
  }

  bool try_send(const VirtualChannel& to, Kind kind, std::span<const std::byte> bytes) {
    const bool sent = send(to, kind, bytes);
    if (sent) ProcessRecords::here().remote_bytes().add(bytes.size());
    return sent;
  }
  // From the island: that is known without a look into the host MPI.
  bool has_arrivals() { return near_.has_arrivals(); }
  template <class Take>
  bool poll(Take&& take) {
    const bool any = near_.has_arrivals() && near_.poll([&](Message message) {
      message.channel.peer = island_.sites[message.channel.peer];
      return take(message);
    });
    return far_ == nullptr ? any : far_->poll(take) || any;
  }
  Status wait() { return near_.wait(); }

  bool moves(const VirtualChannel& channel) const {
    return !island_.has(channel.peer) && far_->moves(channel);
  }
  void move_out(const VirtualChannel& channel, std::span<const std::byte> from) {
    ProcessRecords::here().remote_bytes().add(from.size());
    far_->move_out(channel, from);
  }
  void move_in(const VirtualChannel& channel, std::span<std::byte> to) {
    far_->move_in(channel, to);
  }
  void move_away(const VirtualChannel& channel, std::uint64_t bytes) {
    far_->move_away(channel, bytes);
  }
  bool is_moving(const VirtualChannel& channel) const {
    return far_ != nullptr && far_->is_moving(channel);
  }

  std::optional<HostLink::Loss> next_loss() {
    return far_ == nullptr ? std::nullopt : far_->next_loss();
  }

 private:
  bool send(const VirtualChannel& to, Kind kind, std::span<const std::byte> bytes) {
    if (!island_.has(to.peer)) return far_->try_send(to, kind, bytes);
    VirtualChannel near = to;
    near.peer = island_.homes[to.peer];
    return near_.try_send(near, kind, bytes);
  }

  Near& near_;
  const Island& island_;
  HostLink* far_;
};

}  // namespace tombolo::svp
