// SPDX-License-Identifier: Apache-2.0
// Purpose: private to this folder: the processes that this one was started with, as an exchange
// (runtime/collective/exchange.h): by our launcher on one host, or by that of the host MPI.
// Thread safety: one thread at a time.
#pragma once

#include <memory>

#include "dsm/memory/settings.h"
#include "dsm/transport/mpi/one_sided.h"
#include "runtime/collective/socket_exchange.h"

namespace tombolo::dsm {

class Job {
 public:
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

 private:
  std::unique_ptr<runtime::SocketExchange> sockets_;
  std::unique_ptr<OneSided> mpi_;
};

}  // namespace tombolo::dsm
