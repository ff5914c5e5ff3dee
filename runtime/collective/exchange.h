// SPDX-License-Identifier: Apache-2.0
// Purpose: how the processes of one job tell each other something before they share memory. MPI is
// one exchange (mpi/windows/mpi_exchange.h), sockets between processes of one host another
// (socket_exchange.h).
//
// Invariants: XC1 every operation is collective: all processes call the same ones in the same
//                 order.
//             XC2 a peer that has died is an error where the exchange can tell, never a hang. One
//                 that can has `broken()`, the error after which it is of no further use.
// Thread safety: one thread at a time.
#pragma once

#include <concepts>
#include <cstddef>

#include "base/status.h"

namespace tombolo::runtime {

template <class X>
concept Exchange = requires(X& exchange, const void* mine, void* everyones, std::size_t bytes,
                            int root, bool yes) {
  // This process's number, from 0, and how many there are.
  { exchange.rank() } -> std::same_as<int>;
  { exchange.size() } -> std::same_as<int>;
  // `everyones` receives `bytes` bytes of each process, by rank.
  { exchange.gather(mine, everyones, bytes) } -> std::same_as<Status>;
  // `everyones` is read at `root` and written at all others.
  { exchange.broadcast(everyones, bytes, root) } -> std::same_as<Status>;
  // True at all processes if all said yes; else false at all. False also where it fails.
  { exchange.all(yes) } -> std::same_as<bool>;
};

}  // namespace tombolo::runtime
