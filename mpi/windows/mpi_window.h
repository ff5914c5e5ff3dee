// SPDX-License-Identifier: Apache-2.0
// Purpose: one MPI window that we serve: the engine behind it, and the data of MPI calls on it. The
// handle that the program holds is a window of the host MPI without memory (the carrier), so that
// names, attributes, error handlers and conversions stay the host's.
//
// Invariants: MW1 a handle is in the registry exactly while we serve its window; all other handles
//                 are the host's.
//             MW2 all processes of a window agree on whether it is served.
//             MW3 the data that a call looks at is on one page: after a long computation each
//                 further page costs a walk through cold page tables. The data of each process is
//                 elsewhere if there are many processes, and so is the engine of `stale`, which is
//                 large.
// Thread safety: the registry may be used from any thread; a window as its engine says.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <memory_resource>
#include <mutex>
#include <optional>
#include <vector>

#include "host/mpi/mpi_header.h"
#include "mpi/processes/job.h"
#include "mpi/windows/attached.h"
#include "mpi/windows/handle_table.h"
#include "mpi/windows/host_progress.h"
#include "mpi/windows/progress_pace.h"
#include "mpi/windows/team.h"
#include "runtime/collective/shared_memory.h"
#include "runtime/processes/peer_watch.h"
#include "windows/engine.h"

namespace tombolo::mpi {

// The data of each process in a window besides its memory; exchanged at creation. Trivially
// copyable.
struct PeerRecord {
  std::int64_t disp_unit = 1;
  std::uint64_t attached = 0;  // Attached::published()
  std::uint64_t atomic_bytes = 0;
  std::uint64_t alignment = 0;  // of its memory, as it asks for it; a power of 2, or 0
  sync::LockKind locks{};
  bool backoff = true;
  bool reader_bias = true;
  bool contiguous = true;  // allocate_shared: one region after the other
  bool served = true;
};

// A group's members as ranks of a window, kept for the next call with the same group.
struct GroupRanks {
  MPI_Group group = MPI_GROUP_NULL;
  std::uint64_t generation = 0;  // see forget_groups()
  std::vector<machine::Home> ranks;
};

// The facts about a peer that a communication call needs.
struct Extent {
  std::uint64_t bytes = 0;
  std::int64_t disp_unit = 1;
};

// The layout is dictated by MW3: the data that every call looks at fills the first page, in this
// order, and the object starts on a page. All else is an ordinary member of the second one.
class MpiWindow {
 public:
  static constexpr std::size_t page = 4096;

  alignas(page) MPI_Win handle = MPI_WIN_NULL;
  int size = 0;
  const Extent* extents = nullptr;  // of all processes, from extend()
  bool sited = false;               // the machine reports call sites
  int flavor = 0;                   // MPI_WIN_FLAVOR_*

 private:
  windows::Engine* serving_ = nullptr;
  std::atomic<std::uint32_t> calls_until_progress_{0};
  static constexpr std::size_t room_bytes = page - 64;
  alignas(64) std::array<std::byte, room_bytes> room_;
  std::pmr::monotonic_buffer_resource first_page_{room_.data(), room_.size()};
  std::pmr::monotonic_buffer_resource more_memory_;

 public:
  int rank = 0;
  int model = 0;              // MPI_WIN_UNIFIED or MPI_WIN_SEPARATE
  bool tells_losses = false;  // the machine sees when bytes are lost
  std::uint64_t made_at = 0;  // the call that made it, if the machine reports call sites
  std::vector<PeerRecord> peers;
  MPI_Group group = MPI_GROUP_NULL;

  // The values of the predefined attributes.
  void* base = nullptr;
  MPI_Aint bytes = 0;
  int disp_unit = 1;

  // The carrier goes there if it is still as new at the end; null: it is freed.
  std::shared_ptr<Team> team;
  bool as_new = true;  // it has no attributes nor hints of the program

  std::array<GroupRanks, 4> groups;
  std::size_t next_group = 0;

  // Dynamic windows: the own memory, and a view of each process's.
  Attached attached;
  std::mutex views_mutex;
  std::vector<AttachedView> views;

  // The memory of all processes, while the window is created and as long as it is served.
  std::optional<runtime::SharedMemory> memory;

  bool dynamic() const { return flavor == MPI_WIN_FLAVOR_DYNAMIC; }
  windows::Engine& engine() { return *serving_; }
  // To be called at each call of the program: a program that polls a window may wait for a peer
  // that cannot go on before a message of ours has arrived, so that the host MPI makes progress
  // once in so many calls, as long as that takes a small part of the time. relaxed: of calls that
  // threads count at once some may be missed.
  void count_call() {
    const std::uint32_t left = calls_until_progress_.load(std::memory_order_relaxed);
    if (left == 0) [[unlikely]]
      return let_host_progress();
    calls_until_progress_.store(left - 1, std::memory_order_relaxed);
  }
  void let_host_progress();
  // At once, however long that takes.
  void drive_host() { (void)progress_.idle().ok(); }
  // Makes the engine on `memory`.
  Status serve(const runtime::Options& options, const windows::EngineOptions& engine_options,
               machine::WaitPolicy waiting);

 private:
  // For the regions of the peers: the first page if half of it is enough for all.
  std::pmr::memory_resource& memory_for_peers();
  // Fills `extents`.
  void extend();

  // The engine uses the watch, that uses the progress, and both use the memory.
  HostProgress progress_;
  ProgressPace pace_;
  std::optional<runtime::PeerWatch> watch_;
  runtime::EnginePointer engine_;
};
static_assert(sizeof(MpiWindow) == 2 * MpiWindow::page, "the first page holds the data of MW3");

namespace detail {

// Never destroyed: windows may be asked about while the program's static objects are.
union ServedWindows {
  constexpr ServedWindows() : by_handle() {}
  ~ServedWindows() {}
  HandleTable<MPI_Win, MpiWindow> by_handle;
};
inline constinit ServedWindows served_windows;

}  // namespace detail

// The window behind `handle`, or null if it is the host's.
inline MpiWindow* find_window(MPI_Win handle) {
  return detail::served_windows.by_handle.find(handle);
}
void register_window(std::unique_ptr<MpiWindow> window);
// Takes the window out of the registry. Its handle may be another window's by now.
std::unique_ptr<MpiWindow> unregister_window(MpiWindow* window);

// Calls visit(window) for all windows that are served. None may be made or freed meanwhile.
void for_each_window(const std::function<void(MpiWindow&)>& visit);

// Calls the window's error handler with the MPI error that stands for `status`, and returns it. If
// that ends the job, the host MPI names its own MPI_Win_call_errhandler: the program's call and the
// cause are told before.
[[gnu::cold]] int raise(MpiWindow& window, const Status& status, const char* call);
// The same for an MPI error class. By default the call is the function that raises it.
[[gnu::cold]] int raise(MpiWindow& window, int error, const char* call = __builtin_FUNCTION());
// The MPI error code for a status, with its message as text.
int error_code(const Status& status, const char* call);

// For calls of the engine: MPI_SUCCESS, or the result of raise().
inline int conclude(MpiWindow& window, const Status& status, const char* call) {
  if (status.ok()) [[likely]]
    return MPI_SUCCESS;
  return raise(window, status, call);
}

}  // namespace tombolo::mpi
