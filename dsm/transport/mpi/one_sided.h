// SPDX-License-Identifier: Apache-2.0
// Purpose: a job of the host MPI as the transport `mpi` uses it: its processes exchange data before
// they have a memory, and reach the words and the bytes of each other by one-sided operations. It
// is apart from mpi.h: a module is compiled for each MPI's handles (host_one_sided.cpp) and loaded
// at run time (load.h), so that a program need not be one of MPI.
//
// Invariants: ONS1 each operation is done at its home when it returns, but for progress().
//             ONS2 operations on words are atomic against each other, and accumulate_xor() on each
//                  8 bytes against others of its kind.
//             ONS3 a home need not call anything meanwhile: a thread of its own lets the host MPI
//                  answer.
//             ONS4 a process or host that is gone ends this process: by the host MPI, or once the
//                  host's kernel has been silent for some seconds (host/network/host_watch.h).
// Errors of one-sided operations end the job: the host MPI says which.
// Thread safety: one thread at a time; post() by any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "base/status.h"
#include "machine/place.h"

namespace tombolo::dsm {

class OneSided {
 public:
  virtual ~OneSided() = default;

  // ---- The exchange of runtime/collective/exchange.h --------------------------------------------

  virtual int rank() const = 0;
  virtual int size() const = 0;
  virtual Status gather(const void* mine, void* everyones, std::size_t bytes) = 0;
  virtual Status broadcast(void* everyones, std::size_t bytes, int root) = 0;
  // Waits without keeping the processor: a memory server waits here for the end of the program.
  virtual bool all(bool yes) = 0;

  // ---- Memory -----------------------------------------------------------------------------------

  // Together, once: each process has so many bytes, of words first. They are zero. `word_bytes` is
  // the same at all, and a multiple of 8. no_memory, in all, where a host lacks shared memory.
  virtual Status make(std::size_t word_bytes, std::size_t data_bytes) = 0;
  virtual std::uint64_t data_bytes(machine::Home home) const = 0;

  virtual std::uint64_t load(machine::SyncPlace word) = 0;
  // The former value.
  virtual std::uint64_t exchange(machine::SyncPlace word, std::uint64_t value) = 0;
  virtual std::uint64_t fetch_add(machine::SyncPlace word, std::uint64_t value) = 0;
  virtual std::uint64_t compare_exchange(machine::SyncPlace word, std::uint64_t expected,
                                         std::uint64_t desired) = 0;

  virtual void get(machine::DataPlace from, void* out, std::size_t bytes) = 0;
  virtual void put(machine::DataPlace to, const void* in, std::size_t bytes) = 0;
  // Place and bytes are multiples of 8.
  virtual void accumulate_xor(machine::DataPlace to, const void* in, std::size_t bytes) = 0;

  // Lets the host MPI answer others; to be called by a thread that waits.
  virtual void progress() = 0;

  // ---- Messages ---------------------------------------------------------------------------------

  // To another process, whose listener gets it. The bytes may be changed when it returns. Not by a
  // listener: it would wait for the thread that it runs in.
  virtual void post(int to, std::span<const std::byte> message) = 0;
  // From now on `listener` is called for each message to this process, by the thread of its own
  // that lets the host MPI answer; those of one process come in their order. Those that have come
  // before wait. Null: none.
  class Listener {
   public:
    virtual ~Listener() = default;
    virtual void hear(int from, std::span<const std::byte> message) = 0;
  };
  virtual void listen(Listener* listener) = 0;

  // ---- The end ----------------------------------------------------------------------------------

  // Together: the memory is given back, and the host MPI is finalized.
  virtual void finish() = 0;
};

}  // namespace tombolo::dsm
