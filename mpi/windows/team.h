// SPDX-License-Identifier: Apache-2.0
// Purpose: the parts of a window that the processes of a communicator keep for the next one: an
// exchange over memory that they share, carriers (windows of the host MPI without memory), and the
// memory of small windows. To make them takes longer than all else of a window.
//
//   std::shared_ptr<Team> team = Team::of(comm);        // null before the first window
//   if (team) exchange = team->meet(mpi_exchange);      // collective
//   ... all have the same team->next(): carrier = team->take(); else team->note_new(...)
//   TOMBOLO_TRY(team->agree(as_new, keep));             // collective
//   if (keep) team->keep(carrier);
//   else team->forget(carrier.handle);                  // it is freed
//
// Invariants: TE1 all processes of a communicator keep the same carriers: each step that changes
//                 them is taken by all, in the same order.
//             TE2 a kept carrier is as new: it has no attributes nor hints of the program, and its
//                 first name and error handler.
//             TE3 carriers are freed with their communicator, or by MPI_Finalize: both are
//                 collective.
//             TE4 no team where several threads may call MPI: they free and make windows of several
//                 communicators in any order, so that the processes would free carriers in
//                 different orders at the end.
// Thread safety: one thread at a time.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "host/mpi/mpi_header.h"
#include "host/segments/segment.h"
#include "mpi/windows/host_progress.h"
#include "mpi/windows/mpi_exchange.h"
#include "runtime/collective/collective.h"
#include "runtime/collective/memory_exchange.h"
#include "runtime/collective/shared_memory.h"
#include "runtime/processes/peer_watch.h"

namespace tombolo::mpi {

struct Carrier {
  MPI_Win handle = MPI_WIN_NULL;
  MPI_Group group = MPI_GROUP_NULL;
  host::Segment memory;  // that a window on it had; perhaps empty
};

class Team {
 public:
  static constexpr std::size_t most_kept = 4;

  // Whether this process can be in one (TE4, TE3).
  static bool possible();
  static std::shared_ptr<Team> of(MPI_Comm comm);
  // Local, but to be done by all processes, which are on one host: the communicator has one from
  // now on. May throw for want of memory. If it fails at one process, all disband().
  static Status found(MPI_Comm comm, const std::vector<runtime::Member>& members);
  static void disband(MPI_Comm comm);
  // Before MPI_Finalize. Collective.
  static void end_all();

  Team(MPI_Comm comm, const std::vector<runtime::Member>& members);
  Team(const Team&) = delete;
  Team& operator=(const Team&) = delete;

  // The exchange over memory; the first call makes it, where that is possible, by means of `slow`.
  // Null where it is not.
  runtime::MemoryExchange* meet(MpiExchange& slow);

  // Before a window, for all that follows but note_new(): may throw for want of memory.
  void prepare();
  // The number of the carrier that take() would give; 0: none. To be compared by all.
  std::uint64_t next() const { return kept_.empty() ? 0 : kept_.back().number; }
  Carrier take();
  // Of a new carrier, before the program has it. May throw for want of memory; then nothing is
  // noted.
  void note_new(MPI_Win handle);
  // Whether all processes keep the carrier that they have done with, which is as new here. An error
  // if one of them has died.
  Status agree(bool as_new, bool& keep);
  void keep(Carrier carrier);
  // The carrier is freed instead.
  void forget(MPI_Win handle);

  // A window of all processes has found that the kernel lets each reach its neighbour's memory.
  bool reaches_by_kernel() const { return reaches_by_kernel_; }
  void note_reach_by_kernel() { reaches_by_kernel_ = true; }
  // Whether it lets this process now: one may have become another user since. True after the
  // neighbour's death, which is the exchange's to tell.
  bool still_reaches() const;

 private:
  struct Kept {
    Carrier carrier;
    std::uint64_t number = 0;
    MPI_Errhandler handler = MPI_ERRHANDLER_NULL;
    std::string name;
  };

  static int at_end_of_communicator(MPI_Comm comm, int key, void* value, void* more);
  static int key();
  runtime::Agreed share_memory(runtime::Collective<MpiExchange>& all);
  void end();
  Kept out_of_use(MPI_Win handle);
  static void free(Kept& kept);

  MPI_Comm comm_;
  int rank_ = 0;
  int size_ = 0;
  std::vector<host::ProcessName> processes_;
  runtime::Member neighbour_;
  bool tried_ = false;
  bool ended_ = false;
  bool reaches_by_kernel_ = false;
  host::Segment memory_;
  HostProgress progress_;
  std::optional<runtime::PeerWatch> watch_;
  std::optional<runtime::MemoryExchange> exchange_;
  std::uint64_t times_kept_ = 0;  // the same at all processes, unlike the carriers tried
  std::vector<Kept> kept_;
  std::vector<Kept> in_use_;
};

}  // namespace tombolo::mpi
