// SPDX-License-Identifier: Apache-2.0
#include "baselines/rckmpi_windows.h"

#include <cstring>
#include <utility>

namespace tombolo::baselines {

RckmpiWindow::RckmpiWindow(Rckmpi& mpi, Place memory, std::uint64_t bytes, LockRequests requests)
    : mpi_(mpi),
      memory_(memory),
      bytes_(bytes),
      requests_(requests),
      number_(mpi.attach(this)),
      peers_(mpi.size()) {
  mpi_.barrier();  // no packet comes before its window is there
}

// ---- The origin's operations --------------------------------------------------------------------

Packet RckmpiWindow::packet_of(PacketType type) const {
  return {.type = type, .flags = 0, .window = number_, .tag = 0};
}

void RckmpiWindow::enqueue(std::uint32_t target, const Packet& packet, Place place) {
  TOMBOLO_CHECK(target < mpi_.size(), "an operation on rank {} of {}", target, mpi_.size());
  mpi_.enter();
  step();
  peers_[target].queue.push_back({packet, place});
}

void RckmpiWindow::put(Place from, std::uint64_t bytes, std::uint32_t target,
                       std::uint64_t offset) {
  Packet packet = packet_of(PacketType::put);
  packet.bytes = bytes;
  packet.data = static_cast<std::uint32_t>(bytes);
  packet.offset = offset;
  enqueue(target, packet, from);
}

void RckmpiWindow::get(Place to, std::uint64_t bytes, std::uint32_t target, std::uint64_t offset) {
  Packet packet = packet_of(PacketType::get);
  packet.bytes = bytes;
  packet.offset = offset;
  enqueue(target, packet, to);
}

void RckmpiWindow::accumulate(Place from, std::uint64_t bytes, std::uint32_t target,
                              std::uint64_t offset, Combine combine) {
  Packet packet = packet_of(PacketType::accumulate);
  packet.tag = static_cast<std::int32_t>(combine);
  packet.bytes = bytes;
  packet.data = static_cast<std::uint32_t>(bytes);
  packet.offset = offset;
  enqueue(target, packet, from);
}

void RckmpiWindow::control(std::uint32_t to, PacketType type, std::int32_t tag) {
  Packet packet = packet_of(type);
  packet.tag = tag;
  step();
  ++unfinished_;
  mpi_.channel().send(to, packet, {}, [this] { --unfinished_; });
}

// Sends the operations queued for a target; the last carries the flags.
void RckmpiWindow::issue(std::uint32_t target, std::uint8_t last_flags) {
  std::vector<Operation> queue;
  queue.swap(peers_[target].queue);
  for (std::size_t i = 0; i < queue.size(); ++i) {
    Operation& operation = queue[i];
    step();  // taken out
    step();  // its packet
    if (i + 1 == queue.size()) operation.packet.flags = last_flags;
    ++unfinished_;
    if (operation.packet.type == PacketType::get) {
      operation.packet.request = static_cast<std::uint32_t>(under_way_.size());
      under_way_.push_back(operation);
      mpi_.channel().send(target, operation.packet);
    } else {
      mpi_.channel().send(target, operation.packet, operation.place, [this] { --unfinished_; });
    }
  }
}

void RckmpiWindow::issue_all(std::span<const std::uint32_t> targets) {
  for (const std::uint32_t target : targets) {
    if (target == mpi_.rank()) continue;
    if (peers_[target].queue.empty()) {
      control(target, PacketType::complete);
    } else {
      issue(target, ends_epoch);
    }
  }
}

void RckmpiWindow::finish_operations() {
  mpi_.progress_until([this] { return unfinished_ == 0; });
  under_way_.clear();
}

void RckmpiWindow::do_own_operations() {
  std::vector<Operation> queue;
  queue.swap(peers_[mpi_.rank()].queue);
  for (const auto& [packet, place] : queue) {
    step();  // taken out
    step();  // carried out
    const Place there = at(packet.offset, packet.bytes);
    if (packet.type == PacketType::put) copy(mpi_.cpu(), place, there, packet.bytes);
    if (packet.type == PacketType::get) copy(mpi_.cpu(), there, place, packet.bytes);
    if (packet.type == PacketType::accumulate) combine(place, packet);
  }
}

// ---- Active targets -----------------------------------------------------------------------------

// Ranks of a group into those of the window (000 section 3.5.4).
void RckmpiWindow::convert(std::size_t ranks) {
  const scc::Timing& timing = mpi_.cpu().timing();
  mpi_.cpu().compute(timing.convert_group + timing.convert_rank * static_cast<std::int64_t>(ranks));
}

void RckmpiWindow::post(std::span<const std::uint32_t> origins) {
  mpi_.enter();
  convert(origins.size());
  for (const std::uint32_t origin : origins) {
    if (origin == mpi_.rank()) {
      ++peers_[origin].posts;
    } else {
      control(origin, PacketType::post);
    }
  }
  open_ += static_cast<std::int64_t>(origins.size());
}

void RckmpiWindow::wait() {
  mpi_.enter();
  mpi_.progress_until([this] { return open_ == 0; });
}

void RckmpiWindow::start(std::span<const std::uint32_t> targets) {
  mpi_.enter();
  TOMBOLO_CHECK(targets_.empty(), "rank {} starts a second access epoch", mpi_.rank());
  targets_.assign(targets.begin(), targets.end());
}

void RckmpiWindow::complete() {
  mpi_.enter();
  convert(targets_.size());
  for (const std::uint32_t target : targets_) {
    mpi_.progress_until([&] { return peers_[target].posts > 0; });
    --peers_[target].posts;
    if (target != mpi_.rank()) continue;
    do_own_operations();
    --open_;
  }
  issue_all(targets_);
  finish_operations();
  targets_.clear();
}

void RckmpiWindow::fence() {
  mpi_.enter();
  std::vector<std::uint64_t> origins(mpi_.size());
  std::vector<std::uint32_t> targets;
  for (std::uint32_t target = 0; target < mpi_.size(); ++target) {
    if (target == mpi_.rank() || peers_[target].queue.empty()) continue;
    targets.push_back(target);
    origins[target] = 1;
  }
  mpi_.all_reduce(origins.data(), origins.size());
  // An origin may have ended its part already: only the sum counts.
  open_ += static_cast<std::int64_t>(origins[mpi_.rank()]);
  do_own_operations();
  issue_all(targets);
  finish_operations();
  mpi_.progress_until([this] { return open_ == 0; });
}

// ---- Passive targets, as the origin -------------------------------------------------------------

void RckmpiWindow::request_lock(std::uint32_t target) {
  peers_[target].granted = false;
  if (target == mpi_.rank()) {
    add_request(target, peers_[target].kind);
  } else {
    control(target, PacketType::lock_request, static_cast<std::int32_t>(peers_[target].kind));
  }
}

void RckmpiWindow::lock(LockKind kind, std::uint32_t target) {
  mpi_.enter();
  step();  // the lock is queued like an operation
  TOMBOLO_CHECK(target < mpi_.size() && !peers_[target].locked,
                "rank {} locks rank {} of {} again, or it is not there", mpi_.rank(), target,
                mpi_.size());
  peers_[target].locked = true;
  peers_[target].kind = kind;
  const bool own = target == mpi_.rank();
  if (own || requests_ == LockRequests::immediate) request_lock(target);
  if (own) mpi_.progress_until([&] { return peers_[target].granted; });
}

void RckmpiWindow::unlock(std::uint32_t target) {
  mpi_.enter();
  Peer& peer = peers_[target];
  TOMBOLO_CHECK(peer.locked, "rank {} unlocks rank {}, which it has not locked", mpi_.rank(),
                target);
  step();  // and taken out
  peer.locked = false;
  if (target == mpi_.rank()) {
    do_own_operations();
    return release_lock();
  }
  if (requests_ == LockRequests::deferred) {
    if (peer.queue.empty()) return;
    request_lock(target);
  }
  mpi_.progress_until([&] { return peer.granted; });
  peer.unlocked = false;
  if (peer.queue.empty()) {
    control(target, PacketType::unlock);
  } else {
    issue(target, unlocks);
  }
  mpi_.progress_until([&] { return peer.unlocked; });
  finish_operations();
}

// ---- The target ---------------------------------------------------------------------------------

Place RckmpiWindow::at(std::uint64_t offset, std::uint64_t bytes) const {
  TOMBOLO_CHECK(offset <= bytes_ && bytes <= bytes_ - offset,
                "rank {}: an operation on {} bytes at {} of a window of {}", mpi_.rank(), bytes,
                offset, bytes_);
  return memory_ + offset;
}

// The operation was the last of its origin's epoch, or a message said so.
void RckmpiWindow::ended(std::uint32_t from, std::uint8_t flags) {
  if ((flags & ends_epoch) != 0) --open_;
  if ((flags & unlocks) == 0) return;
  control(from, PacketType::unlock_done);
  release_lock();
}

void RckmpiWindow::add_request(std::uint32_t from, LockKind kind) {
  waiting_.push_back({from, kind});
  grant_locks();
}

void RckmpiWindow::grant_locks() {
  while (!waiting_.empty() && !exclusive_) {
    const LockRequest next = waiting_.front();
    if (next.kind == LockKind::exclusive && sharers_ > 0) return;
    waiting_.pop_front();
    exclusive_ = next.kind == LockKind::exclusive;
    if (!exclusive_) ++sharers_;
    if (next.from == mpi_.rank()) {
      peers_[next.from].granted = true;
    } else {
      control(next.from, PacketType::lock_granted);
    }
  }
}

void RckmpiWindow::release_lock() {
  if (exclusive_) {
    exclusive_ = false;
  } else {
    --sharers_;
  }
  grant_locks();
}

void RckmpiWindow::combine(Place from, const Packet& packet) {
  Cpu& cpu = mpi_.cpu();
  const Place to = at(packet.offset, packet.bytes);
  const auto kind = static_cast<Combine>(packet.tag);
  if (kind == Combine::replace) return copy(cpu, from, to, packet.bytes);
  const auto add = [&]<class T>(T) {
    for (std::uint64_t done = 0; done + sizeof(T) <= packet.bytes; done += sizeof(T)) {
      T theirs, ours;
      load(cpu, from + done, &theirs, sizeof theirs);
      load(cpu, to + done, &ours, sizeof ours);
      ours += theirs;
      cpu.compute(cpu.timing().loop);
      store(cpu, to + done, &ours, sizeof ours);
    }
  };
  if (kind == Combine::sum_int64) add(std::int64_t{});
  if (kind == Combine::sum_double) add(double{});
}

Channel::Incoming RckmpiWindow::on_put(std::uint32_t from, const Packet& packet) {
  return {at(packet.offset, packet.bytes), [=, this] {
            step();  // carried out
            ended(from, packet.flags);
          }};
}

// Operands are in a buffer of the library first.
Channel::Incoming RckmpiWindow::on_accumulate(std::uint32_t from, const Packet& packet) {
  const Place buffer = mpi_.memory().borrow(packet.data);
  return {buffer, [=, this] {
            step();  // carried out
            combine(buffer, packet);
            mpi_.memory().give_back(buffer, packet.data);
            ended(from, packet.flags);
          }};
}

Channel::Incoming RckmpiWindow::on_get(std::uint32_t from, const Packet& packet) {
  Packet response = packet_of(PacketType::get_response);
  response.request = packet.request;
  response.bytes = packet.bytes;
  response.data = static_cast<std::uint32_t>(packet.bytes);
  return {{}, [=, this] {
            step();  // carried out, by a packet
            // The epoch lasts until the last byte of the window is on its way.
            mpi_.channel().send(from, response, at(packet.offset, packet.bytes),
                                [=, this] { ended(from, packet.flags); });
          }};
}

Channel::Incoming RckmpiWindow::on_response(const Packet& packet) {
  return {under_way_.at(packet.request).place, [this] { --unfinished_; }};
}

Channel::Incoming RckmpiWindow::on_packet(std::uint32_t from, const Packet& packet) {
  Peer& peer = peers_[from];
  const auto kind = static_cast<LockKind>(packet.tag);
  step();
  switch (packet.type) {
    case PacketType::post:
      ++peer.posts;
      return {};
    case PacketType::complete:
      return {{}, [=, this] { ended(from, ends_epoch); }};
    case PacketType::put:
      return on_put(from, packet);
    case PacketType::accumulate:
      return on_accumulate(from, packet);
    case PacketType::get:
      return on_get(from, packet);
    case PacketType::get_response:
      return on_response(packet);
    case PacketType::lock_request:
      return {{}, [=, this] { add_request(from, kind); }};
    case PacketType::lock_granted:
      peer.granted = true;
      return {};
    case PacketType::unlock:
      return {{}, [=, this] { ended(from, unlocks); }};
    case PacketType::unlock_done:
      peer.unlocked = true;
      return {};
    default:
      TOMBOLO_CHECK(false, "a window gets a packet of type {}", static_cast<int>(packet.type));
      return {};
  }
}

}  // namespace tombolo::baselines
