// SPDX-License-Identifier: Apache-2.0
// Purpose: an exchange over sockets, for processes of one host that the launcher has started:
// process 0 has a stream to each other one.
//
//   std::vector<SocketExchange::Ends> ends;   TOMBOLO_TRY(SocketExchange::make(n, ends));
//   ... in process r:  SocketExchange exchange(r, n, std::move(ends[r]));
//
// Invariants: XC1, XC2 (exchange.h): a process that ends closes its stream, which is an error at
//             process 0 and, since that gives up then, at all others.
// Thread safety: one thread at a time.
#pragma once

#include <cstddef>
#include <utility>
#include <vector>

#include "base/status.h"
#include "host/descriptor.h"

namespace tombolo::runtime {

class SocketExchange {
 public:
  // The streams of one process: of process 0 one to each other process, by rank; of the others one.
  using Ends = std::vector<host::Descriptor>;

  // Streams for `size` processes, by rank. Each process keeps its own and closes the others.
  static Status make(int size, std::vector<Ends>& out);

  SocketExchange(int rank, int size, Ends ends)
      : rank_(rank), size_(size), ends_(std::move(ends)) {}

  int rank() const { return rank_; }
  int size() const { return size_; }
  Status gather(const void* mine, void* everyones, std::size_t bytes);
  Status broadcast(void* data, std::size_t bytes, int root);
  bool all(bool yes);

 private:
  Status send(std::size_t end, const void* data, std::size_t bytes);
  Status receive(std::size_t end, void* data, std::size_t bytes);
  Status to_all_others(const void* data, std::size_t bytes, int but_for);
  // The error that ended the exchange: it is of no further use, and says so to the others.
  Status give_up(Status why);
  int peer_at(std::size_t end) const { return rank_ == 0 ? static_cast<int>(end) + 1 : 0; }

  int rank_;
  int size_;
  Ends ends_;
  Status broken_;
};

}  // namespace tombolo::runtime
