// SPDX-License-Identifier: Apache-2.0
// Purpose: private to this folder: ends this process once another host of the job is gone: one that
// is cut off says nothing more, and the host MPI may wait for it for ever. Process 0 and each one
// on another host watch each other (host/network/host_watch.h).
//
// Invariants: HLS1 a process whose other host is silent ends itself with a message, and the
//                  launcher of the host MPI ends the others. Processes of process 0's own host
//                  are the launcher's to notice.
//             HLS2 of processes other than 0 the first one of a host tells first; the others wait
//                  a moment, by which the launcher has ended them.
//             HLS3 a host that no TCP connection reaches is told of at the start: only the host MPI
//                  notices its loss.
// Thread safety: one thread.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "host/mpi/mpi_header.h"
#include "host/network/host_watch.h"
#include "host/processes/host_identity.h"

namespace tombolo::dsm {

class HostLosses {
 public:
  // Together; begins to watch.
  explicit HostLosses(MPI_Comm comm);
  HostLosses(const HostLosses&) = delete;
  HostLosses& operator=(const HostLosses&) = delete;
  // Together.
  ~HostLosses() = default;

 private:
  struct Place {
    std::array<char, 64> host{};
    std::array<std::uint8_t, 16> boot{};
    std::int64_t process = 0;

    // Also two hosts of one kernel, as containers are.
    bool is_on_host_of(const Place& other) const {
      return host == other.host && boot == other.boot;
    }
  };

  void learn_places(MPI_Comm comm);
  void connect(MPI_Comm comm, const std::vector<int>& elsewhere);
  void warn(const std::vector<int>& elsewhere, const std::vector<char>& taken) const;
  [[noreturn]] void lost(int rank, host::HostWatch::Loss how) const;

  int rank_ = 0;
  std::vector<Place> places_;  // by rank
  host::HostWatch watch_;      // ends before the rest
};

}  // namespace tombolo::dsm
