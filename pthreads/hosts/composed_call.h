// SPDX-License-Identifier: Apache-2.0
// Purpose: system calls that forwarded_call.h knows in a simpler form only: those with several
// buffers, with sets of descriptors, or with a mask of signals. Here one is turned into the simpler
// call, with memory of this object, and the simpler one's result into its own.
//
//   ComposedCall composed(call);          // kind_of(call) is `forwarded`
//   ... composed.simple() is made ...
//   composed.finish(call);
//
//   readv, writev, preadv, pwritev        a call with one buffer
//   sendmsg, recvmsg                      likewise, without an address and without control data
//   select, pselect6, ppoll               poll
//   epoll_pwait                           epoll_wait
//
// Limits: a call with a mask of signals is refused: signals wait in a forwarded call in any case,
// and one that the mask lets come would not end it.
// Thread safety: an object is used by one thread.
#pragma once

#include <poll.h>
#include <sys/select.h>
#include <sys/uio.h>

#include <optional>
#include <span>
#include <vector>

#include "pthreads/hosts/forwarded_call.h"

namespace tombolo::dsm {

class ComposedCall {
 public:
  // Nothing for other calls.
  static std::optional<CallKind> kind_of(const host::SystemCall& call);

  explicit ComposedCall(const host::SystemCall& call);
  ComposedCall(const ComposedCall&) = delete;
  ComposedCall& operator=(const ComposedCall&) = delete;

  host::SystemCall& simple() { return simple_; }
  void finish(host::SystemCall& call);

 private:
  void compose_buffers(const host::SystemCall& call);
  void compose_sets(const host::SystemCall& call);
  void scatter(std::size_t bytes) const;
  void fill_sets(host::SystemCall& call) const;

  host::SystemCall simple_;
  std::span<const iovec> parts_;  // of the program
  std::vector<std::byte> buffer_;
  std::vector<pollfd> files_;
};

}  // namespace tombolo::dsm
