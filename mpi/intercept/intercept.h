// SPDX-License-Identifier: Apache-2.0
// Purpose: declarations for every file of this folder. Each stands for one MPI call: windows of
// ours are served, all others go to the host MPI unchanged.
// Thread safety: as MPI asks of the call.
#pragma once

#include "host/mpi/host.h"
#include "mpi/windows/communication.h"
#include "mpi/windows/mpi_window.h"
#include "runtime/findings/call_sites.h"

// A function of MPI's C interface, visible to the program in front of the host MPI's own.
#define TOMBOLO_MPI_CALL extern "C" __attribute__((visibility("default")))

// Short calls that programs repeat lie together, with the functions they call: one after a long
// computation finds its code on a few pages.
extern "C" {
#define TOMBOLO_HOT(call) [[gnu::hot]] decltype(call) call
TOMBOLO_HOT(MPI_Put);
TOMBOLO_HOT(MPI_Get);
TOMBOLO_HOT(MPI_Win_lock);
TOMBOLO_HOT(MPI_Win_unlock);
TOMBOLO_HOT(MPI_Win_lock_all);
TOMBOLO_HOT(MPI_Win_unlock_all);
TOMBOLO_HOT(MPI_Win_flush);
TOMBOLO_HOT(MPI_Win_flush_all);
TOMBOLO_HOT(MPI_Win_flush_local);
TOMBOLO_HOT(MPI_Win_flush_local_all);
TOMBOLO_HOT(MPI_Win_fence);
#undef TOMBOLO_HOT
}

namespace tombolo::mpi {

using machine::Home;
using sync::Access;
using tombolo::Status;

// The window of ours behind `win`, or null; told of the call, and where in the program it came
// from, if its machine reports that.
inline MpiWindow* window_at_call(MPI_Win win, const void* caller) {
  MpiWindow* const window = find_window(win);
  if (window == nullptr) [[unlikely]]
    return nullptr;
  window->count_call();
  if (window->sited) [[unlikely]]
    window->engine().set_site(runtime::call_site(caller));
  return window;
}

// MPI_MODE_* bits as promises; an unknown bit is MPI_ERR_ASSERT.
inline windows::Assertions promises(int assertion) {
  return {.no_check = (assertion & MPI_MODE_NOCHECK) != 0,
          .no_store = (assertion & MPI_MODE_NOSTORE) != 0,
          .no_put = (assertion & MPI_MODE_NOPUT) != 0,
          .no_precede = (assertion & MPI_MODE_NOPRECEDE) != 0,
          .no_succeed = (assertion & MPI_MODE_NOSUCCEED) != 0};
}
constexpr int all_modes =
    MPI_MODE_NOCHECK | MPI_MODE_NOSTORE | MPI_MODE_NOPUT | MPI_MODE_NOPRECEDE | MPI_MODE_NOSUCCEED;

}  // namespace tombolo::mpi
