// SPDX-License-Identifier: Apache-2.0
// Purpose: private to this folder: the thread of a process that lets the host MPI answer others
// while the program computes, and receives messages.
//
// Invariants: ANT1 messages are received by this thread alone, and all that were sent before the
//                  end are, if only to be dropped: one that is never received may keep the host MPI
//                  from its end.
//             ANT2 it waits in no call of the host MPI: a long message is received between looks,
//                  and those behind it wait.
// Thread safety: progress() and post() by any thread.
#pragma once

#include <atomic>
#include <cstdint>
#include <span>
#include <thread>
#include <vector>

#include "dsm/transport/mpi/one_sided.h"
#include "host/mpi/mpi_header.h"

namespace tombolo::dsm {

class AnsweringThread {
 public:
  // Together. Ends the process, with a message, where the host has no thread.
  explicit AnsweringThread(MPI_Comm comm);
  AnsweringThread(const AnsweringThread&) = delete;
  AnsweringThread& operator=(const AnsweringThread&) = delete;
  // Together; no process may wait for others any more.
  ~AnsweringThread();

  void progress() { look(); }

  // As OneSided.
  void post(int to, std::span<const std::byte> message);
  void listen(OneSided::Listener* listener) { listener_ = listener; }

 private:
  void look();
  void receive();
  bool has_message();
  void run();
  std::uint32_t sent_to_this();

  MPI_Comm comm_ = MPI_COMM_NULL;
  std::vector<std::atomic<std::uint32_t>> posted_;  // by destination
  std::uint32_t received_ = 0;
  std::atomic<bool> ends_{false};
  std::atomic<OneSided::Listener*> listener_{nullptr};
  std::vector<std::byte> message_;
  int from_ = 0;
  MPI_Request arrives_ = MPI_REQUEST_NULL;  // the message, if it is on its way
  std::thread thread_;
};

}  // namespace tombolo::dsm
