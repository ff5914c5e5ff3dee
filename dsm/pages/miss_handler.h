// SPDX-License-Identifier: Apache-2.0
// Purpose: the calls of a page store by page faults when the program's thread meets a closed page.
//
// The calls are made in a signal handler of the thread that has met the page, on an alternate
// stack, while signals of the program wait. The thread was at an ordinary load or store: it may
// hold the lock of a FILE that it prints to, or any lock of its own. So a handler must not
//   - touch the program's view (frame() is for that),
//   - print by stdio, or take a lock that code which accesses the view may hold,
//   - allocate from an allocator whose own data lie in the view. The C library's allocator is fine
//     as long as the memory that it manages is private: then it holds no lock at a fault.
// Thread safety: the thread of the store.
#pragma once

#include "base/status.h"
#include "dsm/protocol/consistency.h"
#include "dsm/protocol/shape.h"

namespace tombolo::dsm {

class MissHandler {
 public:
  virtual ~MissHandler() = default;

  // As those of ConsistencyProtocol: the page is readable, or writable, when they return ok.
  virtual Status read_miss(Page page) = 0;
  virtual Status write_miss(Page page) = 0;

  // Whether the program may use the address, which lies in the view. If not, the fault goes the way
  // of one outside of it: to an earlier handler of SIGSEGV, or it ends the process.
  virtual bool may_access(const void* address) {
    (void)address;
    return true;
  }

  // A miss has failed, or the kernel has refused to open or close the page. The program cannot go
  // on: must not return. Here: says so on stderr, and ends the process with exit status 1.
  virtual void fail(Page page, const Status& why);
};

// The misses of a protocol.
template <ConsistencyProtocol P>
class ProtocolMisses : public MissHandler {
 public:
  explicit ProtocolMisses(P& protocol) : protocol_(protocol) {}
  Status read_miss(Page page) override { return protocol_.read_miss(page); }
  Status write_miss(Page page) override { return protocol_.write_miss(page); }

 private:
  P& protocol_;
};

}  // namespace tombolo::dsm
