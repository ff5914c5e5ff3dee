// SPDX-License-Identifier: Apache-2.0
// Purpose: the memory of a threaded program as one of its threads uses it, whatever lies beneath:
// memory that all processes map (transport map), or a page cache with a consistency protocol over
// a transport. Mutexes, conditions, thread creation and the allocator are written over this.
//
//   memory   pages of the program, at one address in every process. Loads and stores are the
//            program's own; synchronization orders them as docs/model/threads.md says.
//   words    64-bit words outside of the pages, for the runtime itself: each operation on them is
//            atomic, and seen by all threads at once. They are zero at first.
//   locks    acquire() begins a span of the lock, release() ends it.
//
// Invariants: DPM1 every thread of a program has one ProgramMemory, of one kind, and the same
//                  number of locks and words.
//             DPM2 operations on words are ordered before and after each other as the program has
//                  them; they order no loads and stores of pages.
// Thread safety: the thread that it belongs to, alone.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "base/status.h"
#include "dsm/protocol/shape.h"
#include "dsm/threads/atomic_change.h"

namespace tombolo::dsm {

using WordIndex = std::uint64_t;

class ProgramMemory {
 public:
  virtual ~ProgramMemory() = default;

  virtual Thread self() const = 0;
  virtual Thread threads() const = 0;

  // ---- Memory -----------------------------------------------------------------------------------

  // The whole of it, which starts on a page.
  virtual std::span<std::byte> memory() const = 0;
  virtual std::size_t page_bytes() const = 0;
  // This thread is about to store `bytes` bytes there, inside a span: they travel with the lock.
  // Stores that are not recorded travel by pages. Addresses outside of the memory are passed over.
  virtual void record(const void* address, std::size_t bytes) = 0;
  // When it returns, this thread's stores to the pages of these bytes are home, and its next load
  // or store there finds all stores that are home by now, those of spans of other locks too. (A
  // page cache gives up its copies of the pages, in or outside of spans.) The allocator calls it
  // where a block ends, and again where the next one begins in its place: the program's own
  // synchronization need not order the stores of the two users. Memory that all processes map has
  // nothing to do.
  virtual Status renew(const void* /*address*/, std::size_t /*bytes*/) { return {}; }
  // Before the kernel reads `bytes` bytes there, or stores to them (`write`), for this thread: from
  // `address` on it can reach `touched` of them, at least one, until the next call but for words. A
  // page cache opens its pages, as many as it holds at once; not inside of another call.
  virtual Status touch(const void* /*address*/, std::size_t bytes, bool /*write*/,
                       std::size_t& touched) {
    touched = bytes;
    return {};
  }

  // An atomic operation of the program on `bytes` bytes there (1, 2, 4 or 8, at a multiple): `old`
  // becomes the value that it found. `lock` is for operations on these bytes, and for nothing else
  // of the program; where it was not free, nothing has happened, and `done` says so. The operation
  // is a span of the lock. (Memory that all processes map has the processor's operations.)
  virtual Status try_change(Lock /*lock*/, void* address, std::size_t bytes,
                            const AtomicChange& change, std::uint64_t& old, bool& done) {
    old = change_by_processor(address, bytes, change);
    done = true;
    return {};
  }

  // ---- Words ------------------------------------------------------------------------------------

  virtual WordIndex words() const = 0;
  virtual std::uint64_t load(WordIndex word) = 0;
  virtual void store(WordIndex word, std::uint64_t value) = 0;
  // The former value.
  virtual std::uint64_t exchange(WordIndex word, std::uint64_t value) = 0;
  virtual std::uint64_t fetch_add(WordIndex word, std::uint64_t value) = 0;
  virtual std::uint64_t compare_exchange(WordIndex word, std::uint64_t expected,
                                         std::uint64_t desired) = 0;

  // ---- Synchronization --------------------------------------------------------------------------

  virtual Lock locks() const = 0;
  virtual Status acquire(Lock lock) = 0;
  // `taken` says whether the lock was free; without it nothing has happened.
  virtual Status try_acquire(Lock lock, bool& taken) = 0;
  virtual Status release(Lock lock) = 0;
  // Stores of this thread before the call are seen by the thread that calls it later for this lock:
  // a span with nothing in it. A handler of a signal may call it for any lock that the thread has
  // not acquired, though it has interrupted the same call.
  virtual Status hand_over(Lock lock) {
    TOMBOLO_TRY(acquire(lock));
    return release(lock);
  }
  // The same, if the lock is free: `done`.
  virtual Status try_hand_over(Lock lock, bool& done) {
    TOMBOLO_TRY(try_acquire(lock, done));
    return done ? release(lock) : Status();
  }
  // All threads, outside of spans.
  virtual Status barrier() = 0;
  // The two halves of a barrier that the caller makes itself, for some of the threads, outside of
  // spans: a thread that has told, then another that learns once it has heard of it by words. It
  // sees all that the first one has stored, in spans too. Memory that all processes map has nothing
  // to do.
  virtual Status tell() { return {}; }
  virtual Status learn() { return {}; }
  // `value` becomes combine(...combine(v0, v1)..., vn) of the values of all threads.
  using Combine = std::uint64_t (*)(std::uint64_t, std::uint64_t);
  virtual Status reduce(std::uint64_t& value, Combine combine) = 0;

  // Called in a loop that waits for a word, again and again: gives the processor away as it pays,
  // answers other threads where the protocol needs it. An error if a process of the program has
  // died.
  virtual Status pause() = 0;
  // The thing that the loop waited for has come.
  virtual void paused_enough() = 0;

  // The end, of all threads together: all changes are where others find them.
  virtual Status close() = 0;
};

}  // namespace tombolo::dsm
