// SPDX-License-Identifier: Apache-2.0
// Purpose: one MPI window that we serve: the engine behind it, and what MPI calls ask of it. The
// handle that the program holds is a window of the host MPI without memory (the carrier), so that
// names, attributes, error handlers and conversions stay the host's.
//
// Invariants: M1 a handle is in the registry exactly while we serve its window; all other handles
//                are the host's.
//             M2 all processes of a window agree on whether it is served.
//             M3 what a call looks at is on one page: after a long computation each further page
//                costs a walk through cold page tables. What is there for each process is
//                elsewhere if there are many, and so is the engine of `stale`, which is large.
// Thread safety: the registry may be used from any thread; a window as its engine says.
#pragma once

#include <array>
#include <memory>
#include <memory_resource>
#include <mutex>
#include <vector>

#include "host/memory/own_memory.h"
#include "host/processes/peer_processes.h"
#include "host/segments/segment.h"
#include "mpi/host/mpi_header.h"
#include "mpi/runtime/job.h"
#include "mpi/windows/attached.h"
#include "mpi/windows/engines.h"
#include "mpi/windows/handle_table.h"
#include "windows/engine.h"

namespace tombolo::mpi {

// What each process contributes to a window; exchanged at creation. Trivially copyable.
struct PeerRecord {
  std::uint64_t host = 0;
  std::uint64_t bytes = 0;
  std::uint64_t address = 0;  // of the memory in its process, where that matters
  host::ProcessName process;
  std::int64_t disp_unit = 1;
  std::uint64_t probe = 0;     // the address of a number that a peer may try to read
  std::uint64_t attached = 0;  // Attached::published()
  std::uint64_t atomic_bytes = 0;
  MachineKind machine = MachineKind::coherent;
  sync::LockKind locks{};
  bool native_atomics = true;
  bool atomics_asked = false;  // by the user
  bool backoff = true;
  bool reader_bias = true;
  bool contiguous = true;  // allocate_shared: one region after the other
  bool served = true;
  bool remap = true;     // MPI_Win_create: may replace the memory by some that peers can map
  bool pooled = false;   // has its windows in a pool that several hosts can map
  bool threads = false;  // several threads may call
};

// A group's members as ranks of a window, kept for the next call with the same group.
struct GroupRanks {
  MPI_Group group = MPI_GROUP_NULL;
  std::uint64_t generation = 0;  // see forget_groups()
  std::vector<machine::Home> ranks;
};

// What a communication call asks about a peer.
struct Extent {
  std::uint64_t bytes = 0;
  std::int64_t disp_unit = 1;
};

class MpiWindow {
 public:
  static constexpr std::size_t kPage = 4096;

  // What every call looks at comes first, in one line of the cache.
  alignas(kPage) MPI_Win handle = MPI_WIN_NULL;
  int size = 0;
  const Extent* extents = nullptr;  // of all processes, from extend()
  bool sited = false;               // the machine reports call sites
  int flavor = 0;                   // MPI_WIN_FLAVOR_*

 private:
  windows::Engine* serving_ = nullptr;
  static constexpr std::size_t kRoom = kPage - 64;
  alignas(64) std::array<std::byte, kRoom> room_;
  std::pmr::monotonic_buffer_resource memory_{room_.data(), room_.size()};
  std::pmr::monotonic_buffer_resource more_memory_;

 public:
  // For the engine: part of the page (M3), or more. Not for several threads.
  std::pmr::memory_resource& memory() { return memory_; }
  // For the regions of the peers, mapped in part or not: the same if half of the page is enough for
  // all.
  std::pmr::memory_resource& memory_for_peers() {
    constexpr std::size_t each =
        sizeof(machine::DataRegion) + sizeof(coherent::Part) + sizeof(Extent);
    const std::size_t needed = peers.size() * each;
    return needed <= kRoom / 2 ? memory_ : more_memory_;
  }

  int rank = 0;
  int model = 0;  // MPI_WIN_UNIFIED or MPI_WIN_SEPARATE
  std::vector<PeerRecord> peers;
  MPI_Group group = MPI_GROUP_NULL;

  // What the predefined attributes point at.
  void* base = nullptr;
  MPI_Aint bytes = 0;
  int disp_unit = 1;

  std::array<GroupRanks, 4> groups;
  std::size_t next_group = 0;

  // Dynamic windows: the own memory, and what was seen of each process's.
  Attached attached;
  std::mutex views_mutex;
  std::vector<AttachedView> views;

  bool dynamic() const { return flavor == MPI_WIN_FLAVOR_DYNAMIC; }
  windows::Engine& engine() { return *serving_; }
  void serve_by(EnginePointer engine) {
    engine_ = std::move(engine);
    serving_ = engine_.get();
  }
  // Fills `extents`, once the peers are known.
  void extend() {
    std::pmr::polymorphic_allocator<Extent> allocator(&memory_for_peers());
    Extent* const all = allocator.allocate(peers.size());
    for (std::size_t r = 0; r < peers.size(); ++r)
      std::construct_at(all + r, Extent{peers[r].bytes, peers[r].disp_unit});
    extents = all;
  }

  // In the order of destruction, last first: the engine uses all of the others.
  host::Segment segment_;
  host::OwnMemory::Use use_;           // MPI_Win_create: of this process's memory
  std::vector<host::Segment> mapped_;  // MPI_Win_create: of the peers' memory what could be mapped
  std::unique_ptr<PeerWatch> watch_;

 private:
  EnginePointer engine_;
};
static_assert(sizeof(MpiWindow) == 2 * MpiWindow::kPage, "the first page holds what M3 says");

namespace detail {

// Never destroyed: windows may be asked about while the program's static objects are.
union ServedWindows {
  constexpr ServedWindows() : by_handle() {}
  ~ServedWindows() {}
  HandleTable<MPI_Win, MpiWindow> by_handle;
};
inline constinit ServedWindows served_windows;

}  // namespace detail

// The window behind `handle`, or null if it is the host's. A nanosecond or two.
inline MpiWindow* find_window(MPI_Win handle) {
  return detail::served_windows.by_handle.find(handle);
}
void register_window(std::unique_ptr<MpiWindow> window);
// Takes the window out of the registry. Its handle may be another window's by now.
std::unique_ptr<MpiWindow> unregister_window(MpiWindow* window);

// A return address as a number that means the same in every process of the job: its distance from
// the start of the program's executable.
std::uint64_t call_site(const void* caller);

// Calls the window's error handler with the MPI error that stands for `status`, and returns it.
[[gnu::cold]] int raise(MpiWindow& window, const Status& status, const char* call);
// The same for an MPI error class.
[[gnu::cold]] int raise(MpiWindow& window, int error);
// The MPI error code for a status, with its message as text.
int error_code(const Status& status, const char* call);

// For calls of the engine: MPI_SUCCESS, or what raise() returns.
inline int conclude(MpiWindow& window, const Status& status, const char* call) {
  if (status.ok()) [[likely]]
    return MPI_SUCCESS;
  return raise(window, status, call);
}

}  // namespace tombolo::mpi
