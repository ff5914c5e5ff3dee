// SPDX-License-Identifier: Apache-2.0
// Purpose: the exchange of a communicator's processes, by collective calls of the host MPI
// (runtime/collective/exchange.h). Thread safety: as those calls.
#pragma once

#include <cstddef>

#include "base/status.h"
#include "host/mpi/host.h"

namespace tombolo::mpi {

class MpiExchange {
 public:
  explicit MpiExchange(MPI_Comm comm) : comm_(comm) {
    host().Comm_rank(comm_, &rank_);
    host().Comm_size(comm_, &size_);
  }

  int rank() const { return rank_; }
  int size() const { return size_; }
  Status gather(const void* mine, void* everyones, std::size_t bytes) {
    const int n = static_cast<int>(bytes);
    return done(host().Allgather(mine, n, MPI_BYTE, everyones, n, MPI_BYTE, comm_));
  }
  Status broadcast(void* data, std::size_t bytes, int root) {
    return done(host().Bcast(data, static_cast<int>(bytes), MPI_BYTE, root, comm_));
  }
  bool all(bool yes) {
    int in = yes ? 1 : 0;
    int out = 0;
    return host().Allreduce(&in, &out, 1, MPI_INT, MPI_MIN, comm_) == MPI_SUCCESS && out != 0;
  }

 private:
  static Status done(int error) {
    if (error == MPI_SUCCESS) return {};
    return Status::io("the host MPI failed to tell the processes of each other");
  }

  MPI_Comm comm_;
  int rank_ = 0;
  int size_ = 1;
};

}  // namespace tombolo::mpi
