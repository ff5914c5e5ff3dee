// SPDX-License-Identifier: Apache-2.0
// Purpose: a mark of a process, which others of this host look up by its name, without a call of
// the process that has it. It is a name in the kernel's abstract namespace of sockets: a process
// that ends in any way leaves nothing behind.
//
//   ProcessMark mark;
//   mark.take("job 4711, rank 2");                          // as long as the object lives
//   MarkLookup lookup;                                      // elsewhere
//   if (lookup.is_taken("job 4711, rank 2")) ...
//
// Invariants: PK1 at most one object of all processes has a name.
//             PK2 processes in one namespace of the network see the same names, all others none of
//                 them: two processes see each other's names or neither sees the other's.
// Thread safety: one object per thread.
#pragma once

#include <cstdint>
#include <string_view>

#include "host/descriptor.h"

namespace tombolo::host {

enum class Taken : std::uint8_t { yes, by_another, refused };

class ProcessMark {
 public:
  // `refused`: the kernel gives no socket.
  Taken take(std::string_view name);
  void drop() { socket_.reset(-1); }
  bool held() const { return socket_.valid(); }

 private:
  Descriptor socket_;
};

class MarkLookup {
 public:
  MarkLookup();
  // False: the look-up finds no name.
  bool ok() const { return socket_.valid(); }
  bool is_taken(std::string_view name) const;

 private:
  Descriptor socket_;
};

}  // namespace tombolo::host
