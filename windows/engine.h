// SPDX-License-Identifier: Apache-2.0
// Purpose: the one-sided engine as its users see it: one window of one process, on any machine. It
// knows no MPI; the words are MPI's (origin, target, epoch, exposure).
//
// An Engine is collective: each of the n processes of a window has one, on shared sync memory of
// sync_bytes() per process. Displacements are bytes from the start of the target's region.
//
// Invariants: EN1 a put never writes back bytes that it did not put.
//             EN2 accumulate operations are atomic per element among themselves, whatever their
//                 size.
//             EN3 a communication call needs an access epoch that includes the target, else
//                 Code::epoch.
//             EN4 puts are in memory when flush, unlock, complete or fence returns; a get reads
//                 memory no older than the call.
//             EN5 the owner's stores into its own region are in memory when its post, fence, unlock
//                 or sync returns; its loads see the puts of others after its wait, fence, lock or
//                 sync (the separate memory model of MPI).
//             EN6 memory that the program had before the window, and keeps, holds after hand_back()
//                 the puts of others into it: no later call could bring them.
// Thread safety: with EngineOptions::threads, any; with EngineOptions::threads_in_turn any, one
// call at a time; else one thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "base/status.h"
#include "machine/losses.h"
#include "machine/place.h"
#include "sync/locks/lock_kind.h"
#include "windows/elements/elements.h"

namespace tombolo::windows {

using machine::Home;
using machine::Offset;

// Promises of a caller that save work (000 section 4.5). Named after MPI_MODE_*.
struct Assertions {
  bool no_check = false;    // lock: no conflicting lock is held; post/start: matched already
  bool no_store = false;    // post, fence: own region not stored to since the last synchronization
  bool no_put = false;      // post, fence: no put or accumulate will come until the epoch ends
  bool no_precede = false;  // fence: ends no sequence of own communication calls
  bool no_succeed = false;  // fence: starts no such sequence
};

struct EngineOptions {
  sync::LockKind locks{};
  bool backoff = true;
  bool reader_bias = true;           // sync/locks/reader_bias.h, for families that allow it
  bool threads = false;              // calls may come from several threads at once
  bool threads_in_turn = false;      // calls may come from several threads, one after the other
  std::uint64_t atomic_bytes = 0;    // range of target memory under one accumulate lock; 0: default
  bool memory_moves_on = false;      // lines left in caches at close() may overwrite data: publish
  bool program_reads_peers = false;  // the program itself loads and stores peers' regions (view())
};

// Elements that follow each other without gaps.
struct ElementRun {
  Offset at;
  std::size_t count;
};

// Bytes that do so both at the target and at the origin.
using ByteRun = machine::DataPiece;

class Engine {
 public:
  virtual ~Engine() = default;

  // Communication. `bytes` and `count` may be 0. The caller has checked that the range lies inside
  // the target's region. Element operations want valid(op, element).
  virtual Status put(Home target, Offset at, const void* from, std::size_t bytes) = 0;
  virtual Status get(Home target, Offset at, void* to, std::size_t bytes) = 0;
  // The same for several runs, which may be single numbers: a call for each would take longer than
  // its copy.
  virtual Status put_runs(Home target, std::span<const ByteRun> runs) = 0;
  virtual Status get_runs(Home target, std::span<const ByteRun> runs) = 0;
  // The same by a loop of the caller's own, for very many pieces: copy(context, memory) gets the
  // address of the target's byte reach.at. Only where loads and stores reach all of it, as they
  // are, or a get can bring it from memory at the cost of its pieces; else nothing is done, and
  // `done` is false.
  struct Reach {
    Offset at = 0;
    std::size_t bytes = 0;  // from the first byte of the pieces to behind the last
    std::size_t data = 0;   // bytes of the pieces
  };
  using Copy = void (*)(void* context, std::byte* memory);
  virtual Status put_in_place(Home target, const Reach& reach, Copy copy, void* context,
                              bool& done) = 0;
  virtual Status get_in_place(Home target, const Reach& reach, Copy copy, void* context,
                              bool& done) = 0;
  virtual Status accumulate(Home target, Offset at, Op op, Element element, const void* from,
                            std::size_t count) = 0;
  // `result` receives the former target elements.
  virtual Status get_accumulate(Home target, Offset at, Op op, Element element, const void* from,
                                void* result, std::size_t count) = 0;
  // The same for several runs of target elements, which follow each other without gaps in `from`
  // and in `result`; the latter may be null.
  virtual Status accumulate_runs(Home target, std::span<const ElementRun> runs, Op op,
                                 Element element, const void* from, void* result) = 0;
  virtual Status compare_and_swap(Home target, Offset at, Element element, const void* compare,
                                  const void* desired, void* result) = 0;

  // Active target.
  virtual Status fence(Assertions promise) = 0;
  virtual Status post(std::span<const Home> origins, Assertions promise) = 0;
  virtual Status start(std::span<const Home> targets, Assertions promise) = 0;
  virtual Status complete() = 0;
  virtual Status wait() = 0;
  virtual Status test(bool& done) = 0;

  // Passive target.
  virtual Status lock(sync::Access access, Home target, Assertions promise) = 0;
  virtual Status unlock(Home target) = 0;
  virtual Status lock_all(Assertions promise) = 0;
  virtual Status unlock_all() = 0;
  virtual Status flush(Home target) = 0;
  virtual Status flush_all() = 0;
  virtual Status flush_local(Home target) = 0;
  virtual Status flush_local_all() = 0;
  virtual Status sync() = 0;

  // The program's current place (any 48-bit number, a return address say), for machines that report
  // which process lost which bytes.
  virtual void set_site(std::uint64_t site) = 0;
  // Ends all use of data by this process: its puts are in memory.
  virtual void close() = 0;
  // After the close() of all processes: memory that the program had before the window holds the
  // bytes that others have put there (EN6).
  virtual void hand_back() = 0;
  // The damage that the machine has seen at any process, each fact once: not those that some
  // process has told already. To be followed by losses_told(), for which other processes wait.
  virtual std::vector<machine::LossFact> take_losses() = 0;
  virtual void losses_told() = 0;
  // Some of it, told or not, is a mistake of the program.
  virtual bool has_mistakes() = 0;

  // Waits for all processes of the window.
  virtual Status barrier() = 0;
  // An error if an epoch is still open; else the window may be freed.
  virtual Status closable() = 0;
  // An error outside passive target epochs, where sync() works but MPI does not ask for it.
  virtual Status may_sync() = 0;
  // Where the program's plain loads and stores reach all of a region; null if they cannot.
  virtual std::byte* view(Home home) = 0;
};

}  // namespace tombolo::windows
