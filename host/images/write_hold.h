// SPDX-License-Identifier: Apache-2.0
// Purpose: keeps the other threads of this process from storing to pages while the pages are
// replaced by others with the same contents: libraries have threads of their own, also in programs
// that have one. A thread that stores meanwhile waits.
//
//   WriteHold hold;
//   if (hold.take(pages)) { ... copy, map the copy in their place ... }
//
// Means: the pages are protected, and a handler of SIGSEGV lets a store be tried again. The
// kernel's own stores for another thread (a read() into the pages) or another process (a copy by
// process_vm_writev) fail with EFAULT meanwhile, a matter of microseconds; they would be lost.
//
// Invariants: WH1 a hold is refused where a thread blocks SIGSEGV at that moment: it would die of
//                 a store. So it is where the program has put a handler of its own over ours.
//             WH2 any other fault goes to the handler that the program had before.
//             WH3 after the hold the pages can be read and written, whatever is mapped there.
//             WH4 a store that met a hold is tried again, however late its signal comes: any store
//                 to a page that can be written to by now is, as if it had come a moment later.
//                 But it is once between two holds, so that a fault of another cause goes on (WH2).
// Thread safety: one hold at a time in a process.
#pragma once

#include <cstdint>

#include "host/memory/address_space.h"

namespace tombolo::host {

class WriteHold {
 public:
  WriteHold() = default;
  ~WriteHold() { release(); }
  WriteHold(const WriteHold&) = delete;
  WriteHold& operator=(const WriteHold&) = delete;

  // False if other threads cannot be kept from storing. Without other threads the pages are
  // protected, too, if the kernel does it.
  bool take(const AddressRange& pages);
  void release();

 private:
  AddressRange pages_;  // protected
};

// The process's threads but the caller's, and whether their stores can be held now. There are some
// that cannot be where the kernel does not tell.
enum class OtherThreads : std::uint8_t { none, held, not_held };
OtherThreads other_threads();

// As take(), without protecting anything yet.
inline bool can_hold_writes() { return other_threads() != OtherThreads::not_held; }

}  // namespace tombolo::host
