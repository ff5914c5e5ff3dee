// SPDX-License-Identifier: Apache-2.0
// Purpose: the processes that this one was started with, as an exchange
// (runtime/collective/exchange.h): by our launcher on one host, or by that of the host MPI. Both
// kinds of programs agree over it at their start, by steps of a Collective, and go on in all
// processes or in none: a refused start ends all, after one message.
//
//   runtime::Collective all(job);
//   if (const runtime::Agreed begun = begin(all); !begun.ok())
//     job.end(begun, begun.status().message());
//
// Invariants: DJB1 of several causes the first process's that has one is told.
//             DJB2 no process leaves before the cause is told: the launcher ends all once one has.
//             DJB3 a job of the host MPI is finished: one that is not leaves its memory in /dev/shm
//                  behind.
// Thread safety: one thread at a time.
#pragma once

#include <memory>
#include <string_view>

#include "dsm/memory/settings.h"
#include "dsm/transport/mpi/one_sided.h"
#include "runtime/collective/collective.h"
#include "runtime/collective/socket_exchange.h"

namespace tombolo::dsm {

class Job {
 public:
  // This process is alone.
  Job();
  explicit Job(std::unique_ptr<OneSided> mpi);
  // With the processes of our launcher, if that has started this one; else, for transport mpi, with
  // those of the host MPI's; else alone.
  static Status join(TransportKind transport, std::unique_ptr<Job>& out);

  int rank() const { return mpi_ ? mpi_->rank() : sockets_->rank(); }
  int size() const { return mpi_ ? mpi_->size() : sockets_->size(); }
  Status gather(const void* mine, void* everyones, std::size_t bytes) {
    return mpi_ ? mpi_->gather(mine, everyones, bytes) : sockets_->gather(mine, everyones, bytes);
  }
  Status broadcast(void* data, std::size_t bytes, int root) {
    return mpi_ ? mpi_->broadcast(data, bytes, root) : sockets_->broadcast(data, bytes, root);
  }
  bool all(bool yes) { return mpi_ ? mpi_->all(yes) : sockets_->all(yes); }

  // Null unless the host MPI has started the processes.
  OneSided* one_sided() { return mpi_.get(); }
  // Together, the last of all calls.
  void finish() {
    if (mpi_) mpi_->finish();
  }
  // All processes call it, in place of finish(), once they have agreed on a failure.
  [[noreturn]] void end(const runtime::Agreed& failure, std::string_view cause);

 private:
  std::unique_ptr<runtime::SocketExchange> sockets_;
  std::unique_ptr<OneSided> mpi_;
};

}  // namespace tombolo::dsm
