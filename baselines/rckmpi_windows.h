// SPDX-License-Identifier: Apache-2.0
// Purpose: RCKMPI's one-sided communication, which MPICH's CH3 device builds of messages (000
// sections 3.3.1 and 4.1.2, 001 section 4.4): operations wait in a queue until the epoch is closed,
// and the target has to take part.
//
//   RckmpiWindow window(mpi, memory, bytes);       // collective; memory is private and cached
//   target: window.post(origins);                  window.wait();
//   origin: window.start(targets); window.put(from, 8, target, 0); window.complete();
//
// Messages:
//   post, complete   post: a control message to each origin. complete: waits for those, then sends
//                    the operations; the last carries the end of the epoch, or a message without
//                    data does.
//   fence            all find out how many will send to them, then as in complete.
//   lock, unlock     deferred: nothing at lock; at unlock, if there are operations, the request,
//                    and after the grant the operations, of which the last carries the unlock, and
//                    then the answer that it is done. Immediate: the request at lock, and an
//                    explicit unlock if there is no operation. One's own lock is taken without
//                    messages, and at once.
// A put merged with its lock into one message, which MPICH sends if it is the only operation, is
// left out.
//
// Invariants: RW1 requests for a lock are granted in the order in which the target handles them.
//             RW2 an operation's data is not touched by the caller until the epoch is closed.
//             RW3 operations of one origin on one target happen in order.
// Thread safety: belongs to the program of its core.
#pragma once

#include <cstdint>
#include <deque>
#include <span>
#include <vector>

#include "baselines/rckmpi.h"

namespace tombolo::baselines {

enum class LockKind : std::uint8_t { shared, exclusive };
// When the request for a lock is sent.
enum class LockRequests : std::uint8_t { deferred, immediate };
enum class Combine : std::uint8_t { replace, sum_int64, sum_double };

class RckmpiWindow final : public WindowPackets {
 public:
  // Collective. `memory` is this process's part of the window.
  RckmpiWindow(Rckmpi& mpi, Place memory, std::uint64_t bytes,
               LockRequests requests = LockRequests::deferred);
  ~RckmpiWindow() { mpi_.detach(number_); }
  RckmpiWindow(const RckmpiWindow&) = delete;
  RckmpiWindow& operator=(const RckmpiWindow&) = delete;

  // ---- Operations: `offset` is in the target's part ---------------------------------------------

  void put(Place from, std::uint64_t bytes, std::uint32_t target, std::uint64_t offset);
  void get(Place to, std::uint64_t bytes, std::uint32_t target, std::uint64_t offset);
  // Whole, aligned elements of the kind.
  void accumulate(Place from, std::uint64_t bytes, std::uint32_t target, std::uint64_t offset,
                  Combine combine);

  // ---- Synchronization --------------------------------------------------------------------------

  void fence();
  void post(std::span<const std::uint32_t> origins);
  void wait();
  void start(std::span<const std::uint32_t> targets);
  void complete();
  void lock(LockKind kind, std::uint32_t target);
  void unlock(std::uint32_t target);

  // Collective, before the end of the window unless the run ends early: no process sends to it
  // any more, and nothing of its own waits to be sent.
  void free() {
    mpi_.barrier();
    finish_operations();
  }

  Channel::Incoming on_packet(std::uint32_t from, const Packet& packet) override;

 private:
  static constexpr std::uint8_t ends_epoch = 1;
  static constexpr std::uint8_t unlocks = 2;

  struct Operation {
    Packet packet;
    Place place;  // the origin's
  };
  struct Peer {
    // As its origin.
    std::vector<Operation> queue;
    std::uint32_t posts = 0;  // that it sent and that no epoch has used
    bool locked = false;      // an epoch is open
    LockKind kind = LockKind::shared;
    bool granted = false;
    bool unlocked = false;
  };
  struct LockRequest {
    std::uint32_t from;
    LockKind kind;
  };

  // The software around a packet at either end, and around an operation that is queued, taken out
  // of the queue, or carried out.
  void step() { mpi_.cpu().compute(mpi_.cpu().timing().rma_step); }
  void convert(std::size_t ranks);
  void enqueue(std::uint32_t target, const Packet& packet, Place place);
  Packet packet_of(PacketType type) const;
  void control(std::uint32_t to, PacketType type, std::int32_t tag = 0);
  void issue(std::uint32_t target, std::uint8_t last_flags);
  void issue_all(std::span<const std::uint32_t> targets);
  void do_own_operations();
  void request_lock(std::uint32_t target);
  void finish_operations();

  // As a target.
  void ended(std::uint32_t from, std::uint8_t flags);
  void add_request(std::uint32_t from, LockKind kind);
  void grant_locks();
  void release_lock();
  Place at(std::uint64_t offset, std::uint64_t bytes) const;
  void combine(Place from, const Packet& packet);
  Channel::Incoming on_put(std::uint32_t from, const Packet& packet);
  Channel::Incoming on_accumulate(std::uint32_t from, const Packet& packet);
  Channel::Incoming on_get(std::uint32_t from, const Packet& packet);
  Channel::Incoming on_response(const Packet& packet);

  Rckmpi& mpi_;
  Place memory_;
  std::uint64_t bytes_;
  LockRequests requests_;
  std::uint16_t number_;
  std::vector<Peer> peers_;
  std::vector<std::uint32_t> targets_;  // of the open access epoch
  std::vector<Operation> under_way_;    // gets, by Packet::request
  std::uint64_t unfinished_ = 0;        // operations that were issued
  std::int64_t open_ = 0;               // origins that have not ended their epochs
  std::deque<LockRequest> waiting_;
  std::uint32_t sharers_ = 0;
  bool exclusive_ = false;
};

}  // namespace tombolo::baselines
