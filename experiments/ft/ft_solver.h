// SPDX-License-Identifier: Apache-2.0
// Purpose: NAS FT distributed over processes on the chip (000 section 4.4.4), by any transport of
// the data between them.
//
// Processes form a grid of 4 x 8. A transform goes through three one-dimensional ones; between them
// data are exchanged within a row or a column of the grid, a plane as soon as it is transformed,
// and put together anew ("transposed") by the receiver:
//
//   to frequency   [z/4][y/8][x]  8 processes  [z/4][x/8][y]  4 processes  [x/8][y/4][z]
//   to space       [x/8][y/4][z]  4 processes  [x/8][z/4][y]  8 processes  [z/4][y/8][x]
//
// The blocks that a process keeps of its own planes never travel. These are the messages of 000
// Table 4.1: per iteration nx/8 planes to 3 and to 7 others.
//
// Time: arithmetic by Timing::flop and the 5 n log2 n operations of a transform, whose passes stay
// in the first level; each array is read and written once for each transform by touches of private
// memory, doubles one by one. The sum of the checksums over the processes is made on the host: a
// barrier stands for it.
//
// Invariants: FT1 of other processes' data only the bytes that the transport delivered are used: a
//                 stale byte makes a wrong checksum.
//             FT2 data sent stay as they are until the exchange is closed, as MPI asks: each plane
//                 has its own memory to be sent from (000 section 2.3.2).
// Thread safety: a solver belongs to its process's program; FtResult to one thread.
#pragma once

#include <span>
#include <vector>

#include "backends/scc/cpu.h"
#include "experiments/common/experiment.h"
#include "experiments/ft/ft_kernel.h"
#include "machine/place.h"

namespace tombolo::experiments {

inline constexpr std::uint32_t ft_processes = 32;

// The blocks that come in an exchange, and where they are put.
struct FtArrival {
  machine::Home from = 0;
  std::uint64_t at = 0;
  std::size_t bytes = 0;
};

// Communication and private memory of one process.
class FtTransport {
 public:
  virtual ~FtTransport() = default;

  // An exchange: data go to peers, at an offset in their arrivals, and come from them: the
  // arrivals of one peer in the order in which it sends them.
  virtual void open(std::span<const machine::Home> peers, std::span<const FtArrival> arrivals) = 0;
  virtual void send(machine::Home to, std::uint64_t at, const void* from, std::size_t bytes) = 0;
  virtual void close() = 0;
  // After close: a part of the arrivals, as a load of the program sees it.
  virtual void read(std::uint64_t at, void* to, std::size_t bytes) = 0;
  virtual void barrier() = 0;

  virtual std::byte* allocate(std::size_t bytes) = 0;
  virtual void touch_read(const void* from, std::size_t bytes) = 0;
  virtual void touch_write(const void* to, std::size_t bytes) = 0;
};

// Seconds of one process, or of all together.
struct FtTimes {
  double fft = 0;
  double transfer = 0;         // puts or sends
  double synchronization = 0;  // opening and closing exchanges
  double transpose = 0;
  double bookkeeping = 0;
  double barrier = 0;

  double sum() const {
    return fft + transfer + synchronization + transpose + bookkeeping + barrier;
  }
};

// The results of a run, which all its processes write into.
struct FtResult {
  std::vector<Complex> checksums;  // by iteration
  FtTimes before;                  // until the first iteration, sums over processes
  FtTimes iterations;
  double seconds_before = 0;  // of the last process
  double seconds = 0;
  std::uint64_t messages = 0;  // in the iterations, of all processes; a put is one, too
  std::uint64_t message_bytes = 0;
  // By receiver and sender, bytes of the data of all messages; empty: there were none.
  std::vector<std::vector<std::uint64_t>> received;
  std::vector<std::vector<Complex>> partial;  // by iteration and process
  Progress* progress = nullptr;               // of rank 0, if it is to be told
};

// Bytes that a process receives into.
std::uint64_t ft_bytes_received(const FtClass& problem);

// Runs the program of one process; all of them start together.
void ft_solve(scc::Cpu& cpu, FtTransport& transport, const FtClass& problem, int iterations,
              machine::Home rank, FtResult& result);

// After all have ended: adds up the checksums.
void ft_finish(const FtClass& problem, FtResult& result);

}  // namespace tombolo::experiments
