// SPDX-License-Identifier: Apache-2.0
// Purpose: system calls of a program whose memory is pages that its processes open and close: the
// kernel fails with EFAULT on closed ones. So the pages of a call's arguments are opened before it.
//
//   reads and writes            all of their buffers, or fewer: then the call transfers less
//   calls with other buffers    those by the sizes in the arguments
//   all others                  each argument that is an address of the memory: two pages from
//                               there on, which hold any structure of fixed size, and a path
//
// Invariants: SYC1 the pages stay open until the call is made: nothing of the program runs between.
//             SYC2 handlers of signals run on the alternate stack: the kernel cannot store to a
//                  closed one.
//             SYC3 calls that reach memory in other ways, or later, are refused by name: ENOSYS.
// Thread safety: the thread of the memory.
#pragma once

#include <sys/uio.h>

#include <array>
#include <span>

#include "dsm/threads/program_memory.h"
#include "host/faults/caught_calls.h"

struct msghdr;

namespace tombolo::dsm {

// Before a call that starts another program: opens the memory that the kernel, and the new process
// before it runs that program, read of this one's. Of a text, and of texts with a null at the end.
void read_text(const char* text);
void read_texts(char* const* texts);

class SystemCalls final : public host::CallTarget {
 public:
  // `most_bytes`: of the pages of one call, of those that the cache holds.
  // `first`: is asked before; null: none.
  SystemCalls(ProgramMemory& memory, std::uint64_t most_bytes, host::CallTarget* first = nullptr)
      : memory_(memory), most_bytes_(most_bytes), first_(first) {}

  bool before(host::SystemCall& call) override;
  void after(const host::SystemCall& call) override;

 private:
  bool owns(std::uint64_t address) const;
  std::uint64_t open(std::uint64_t address, std::uint64_t bytes, bool write);
  void open_structures(const host::SystemCall& call);
  void open_buffers(host::SystemCall& call, std::uint64_t& buffers, std::uint64_t& count,
                    bool write);
  void open_message(host::SystemCall& call, bool write);
  bool transfer(host::SystemCall& call);
  bool about_memory(host::SystemCall& call);
  bool about_signals(host::SystemCall& call);
  bool start(host::SystemCall& call);

  ProgramMemory& memory_;
  std::uint64_t most_bytes_;
  host::CallTarget* first_;
  std::array<std::uint64_t, 4> action_{};  // the kernel's of a signal
  std::uint64_t mask_ = 0;
};

}  // namespace tombolo::dsm
