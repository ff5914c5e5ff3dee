// SPDX-License-Identifier: Apache-2.0
// Purpose: private to this folder: the thread of a process that lets the host MPI answer others
// while the program computes, and notices processes that are gone. Process 0 and each other one
// send each other a beat now and then: a host whose network is cut off says nothing more, and no
// connection breaks.
//
// Invariants: HBT1 a process that hears nothing for OneSided::silence_limit ends itself with a
//                  message, and the launcher of the host MPI ends the others. The time in which
//                  this process was itself kept from running does not count.
//             HBT2 of processes other than 0 the first one of a host tells first; the others wait
//                  a moment, by which the launcher has ended them.
//             HBT3 messages are received by this thread alone.
// Thread safety: progress() and post() by any thread.
#pragma once

#include <atomic>
#include <chrono>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "dsm/transport/mpi/one_sided.h"
#include "host/mpi/mpi_header.h"

namespace tombolo::dsm {

class Heartbeat {
 public:
  // Together; begins to beat.
  explicit Heartbeat(MPI_Comm comm);
  Heartbeat(const Heartbeat&) = delete;
  Heartbeat& operator=(const Heartbeat&) = delete;
  // Together; no process may wait for others any more.
  ~Heartbeat();

  void progress() { look(); }

  // As OneSided.
  void post(int to, std::span<const std::byte> message);
  void listen(OneSided::Listener* listener) { listener_ = listener; }

 private:
  using Clock = std::chrono::steady_clock;
  // Another process that beats for this one.
  struct Peer {
    int rank = 0;
    MPI_Request sends = MPI_REQUEST_NULL;
    MPI_Request hears = MPI_REQUEST_NULL;
    char beat = 0;
    char heard = 0;
    Clock::time_point last{};
  };

  void learn_names();
  void say_last(Peer& peer);
  void hear_last(Peer& peer);
  void look();
  void receive();
  void run();
  void beat();
  void listen(Peer& peer, Clock::time_point now);
  void check(const Peer& peer, Clock::time_point now) const;
  [[noreturn]] void lost(const Peer& peer) const;

  MPI_Comm comm_ = MPI_COMM_NULL;
  int rank_ = 0;
  int size_ = 1;
  int first_here_ = 0;              // of this host's processes
  std::vector<std::string> names_;  // by rank: "process 12 on host a"
  std::vector<Peer> peers_;
  std::atomic<bool> ends_{false};
  std::atomic<OneSided::Listener*> listener_{nullptr};
  std::vector<std::byte> message_;
  std::thread thread_;
};

}  // namespace tombolo::dsm
