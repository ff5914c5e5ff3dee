// SPDX-License-Identifier: Apache-2.0
// Purpose: a helper thread of the process that finishes the stores that its cores have deferred.
// Hardware's store buffers empty without being asked; a core that releases a lock and then computes
// for an hour must not keep the release to itself.
//
// Invariants: SE1 the thread starts with the first core of the process, and sleeps without waking
//                 while nothing is deferred.
//             SE2 it is never joined and its state never destroyed: it may outlive main().
//             SE3 in a forked child the state starts anew; the parent's cores are not known there.
//             SE4 lock order: the settler's registry, then a core (only tried, never waited for).
//             SE5 a child that was forked past the C library (host/processes/shared_fork.h) has no
//                 helper: a thread of the C library begins by reading the program's locale, which
//                 may lie in pages that only the child's own thread can open. Its cores do not
//                 defer.
//             SE6 at a fork the thread sleeps, or waits for the registry's lock, which the forking
//                 thread has then: it holds no lock that the child would find held for ever, as
//                 those of the dynamic linker and of an allocator. A thread that begins may hold
//                 some: a fork waits until it has begun, and so does each core that is added.
//             SE7 where the host gives no thread, that is told once, and cores do not defer.
// Thread safety: yes.
#pragma once

namespace tombolo::stale {

class Settleable {
 public:
  virtual ~Settleable() = default;
  virtual void settle() = 0;
  // Settles unless a thread uses the core right now; false: try again later.
  virtual bool settle_if_free() = 0;
};

namespace settler {

// False: there is no helper, and the core is not to defer stores (SE5, SE7).
bool add(Settleable& core);
void remove(Settleable& core);
// Something was deferred: it will be settled within some milliseconds.
void arm();

}  // namespace settler
}  // namespace tombolo::stale
