// SPDX-License-Identifier: Apache-2.0
// Purpose: RCKMPI's two-sided messages upon its channel, as MPICH's CH3 device does them (000
// sections 2.3.3, 3.4.1 and 4.1.2): the baseline of the papers.
//
//   Rckmpi mpi(cpu, rank, cores);
//   Request received = mpi.irecv(ghost, bytes, left, message_tag);
//   Request sent = mpi.isend(line, bytes, right, message_tag);
//   ... compute: nothing moves meanwhile but the first fragment ...
//   mpi.wait_all({received, sent});
//   mpi.finish();
//
// Short messages are sent at once (eager): into the buffer of the matching receive, or into one of
// the library's if there is none yet. Longer ones ask first (rendezvous).
//
// Invariants: RK1 messages from one process match receives in the order in which they were sent.
//             RK2 a receive has room for its message: it is the caller's mistake otherwise.
//             RK3 the library's own messages have tags below 0, which any does not match.
// Thread safety: belongs to the program of its core.
#pragma once

#include <deque>
#include <map>
#include <memory>
#include <span>

#include "baselines/rckmpi_channel.h"

namespace tombolo::baselines {

inline constexpr std::int32_t any = -1;  // source or tag of a receive

struct RequestState {
  bool done = false;
  std::uint32_t from = 0;
  std::int32_t tag = 0;
  std::uint64_t bytes = 0;
};
using Request = std::shared_ptr<RequestState>;

// The handler of packets that name a window.
class WindowPackets {
 public:
  virtual Channel::Incoming on_packet(std::uint32_t from, const Packet& packet) = 0;

 protected:
  ~WindowPackets() = default;
};

class Rckmpi {
 public:
  static constexpr std::uint64_t eager_bytes = 131'072;  // MPICH 3.1.3: CH3_EAGER_MAX_MSG_SIZE

  Rckmpi(Cpu& cpu, std::uint32_t rank, const std::vector<CoreId>& cores, Omitted omitted = {});

  Cpu& cpu() { return cpu_; }
  PrivateMemory& memory() { return memory_; }
  Channel& channel() { return channel_; }
  std::uint32_t rank() const { return channel_.rank(); }
  std::uint32_t size() const { return channel_.size(); }

  // ---- Messages: tags from 0 --------------------------------------------------------------------

  Request isend(Place from, std::uint64_t bytes, std::uint32_t to, std::int32_t tag);
  Request irecv(Place to, std::uint64_t bytes, std::int32_t from, std::int32_t tag);
  void send(Place from, std::uint64_t bytes, std::uint32_t to, std::int32_t tag);
  RequestState recv(Place to, std::uint64_t bytes, std::int32_t from, std::int32_t tag);
  bool test(const Request& request);
  void wait(const Request& request);
  void wait_all(std::span<const Request> requests);
  void wait_all(std::initializer_list<Request> requests) {
    wait_all(std::span<const Request>(requests.begin(), requests.size()));
  }

  // ---- Collectives ------------------------------------------------------------------------------

  // Dissemination: a process makes progress for others until all have come.
  void barrier();
  // `bytes` for each process, by rank, in both places.
  void all_to_all(Place from, Place to, std::uint64_t bytes);
  // Sums of `count` numbers over all processes, for all. Binomial trees.
  void all_reduce(std::uint64_t* numbers, std::size_t count);

  // At the end of the program: messages sent reach their process, and others are answered.
  void finish();

  // ---- For the layer above ----------------------------------------------------------------------

  // A call of the library.
  void enter() { cpu_.compute(cpu_.timing().library_call); }
  template <class Predicate>
  void progress_until(Predicate&& predicate) {
    while (!predicate()) channel_.progress();
  }
  // Hands packets of one-sided communication to their window. Windows get the same number in all
  // processes if all make them in the same order.
  std::uint16_t attach(WindowPackets* window);
  void detach(std::uint16_t window) { windows_[window] = nullptr; }

 private:
  struct Posted {
    Place to;
    std::uint64_t bytes;
    std::int32_t from;
    std::int32_t tag;
    Request request;
  };
  // A message, or the question whether one may come, that no receive was posted for.
  struct Unexpected {
    Packet packet;
    std::uint32_t from;
    Place data;
    bool arrived = false;
    std::function<void()> wanted;  // by a receive that matches it while it arrives
  };
  struct Rendezvous {
    Place place;
    Request request;
  };

  static bool matches(std::int32_t from, std::int32_t tag, std::uint32_t of, std::int32_t has) {
    return (from == any || from == static_cast<std::int32_t>(of)) &&
           (tag == any ? has >= 0 : tag == has);
  }

  Request start_send(Place from, std::uint64_t bytes, std::uint32_t to, std::int32_t tag);
  Request start_recv(Place to, std::uint64_t bytes, std::int32_t from, std::int32_t tag);
  void send_to_self(const Packet& packet, Place from);
  void finish_wait(const Request& request);
  void take_unexpected(std::shared_ptr<Unexpected> message, Place to, const Request& request);
  void agree(std::uint32_t from, const Packet& asked, Place to, const Request& request);
  bool take_posted(std::uint32_t from, const Packet& packet, Posted* posted);
  static void fill(const Request& request, std::uint32_t from, const Packet& packet);

  Channel::Incoming on_eager(std::uint32_t from, const Packet& packet);
  Channel::Incoming on_request_to_send(std::uint32_t from, const Packet& packet);
  Channel::Incoming on_clear_to_send(std::uint32_t from, const Packet& packet);
  Channel::Incoming on_rendezvous_data(std::uint32_t from, const Packet& packet);
  Channel::Incoming on_window_packet(std::uint32_t from, const Packet& packet);

  Cpu& cpu_;
  PrivateMemory memory_;
  Channel channel_;
  std::deque<Posted> posted_;
  std::deque<std::shared_ptr<Unexpected>> unexpected_;
  std::map<std::uint32_t, Rendezvous> rendezvous_;  // by number of request, of both sides
  std::uint32_t next_rendezvous_ = 0;
  std::vector<WindowPackets*> windows_;
};

}  // namespace tombolo::baselines
