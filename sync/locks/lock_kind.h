// SPDX-License-Identifier: Apache-2.0
// Purpose: the words that all readers-writer lock families share.
//
// A family is one object per core for a whole window: a lock for each home, and lock-all, which is
// a shared lock on every home at once. All families have the same public members:
//
//   static Layout take(machine::SyncLayout&, machine::Home cores);
//   Family(C& core, Layout layout, const LockOptions& options);
//   Status lock(Access, Home target);   void unlock(Access, Home target);
//   Status lock_all();                  void unlock_all();
//
// Beside it, in the same file, lies the description of the family, which families.h lists:
//
//   struct NameFamily {
//     template <machine::Core C> using Locks = NameLocks<C>;
//     static constexpr LockFamilyTraits traits{.name = "name"};
//   };
//
// Rules for the caller: a core may hold locks of several targets, one of each; it holds lock-all or
// single locks, not both. An error of lock or lock_all comes from the idle hook of the core's
// machine and means that the lock was not acquired. Data: lock is a load or atomic that happens
// before the caller's refresh (R5), unlock is an atomic or a store that happens after the caller's
// publish and drain (R4). Hence no family calls any of the three.
// Thread safety: one call at a time per object; with LockOptions::threads several, if the core
// allows it and the family says so (callers.h).
#pragma once

#include <cstdint>
#include <string_view>

namespace tombolo::sync {

// A family that a window may use, by its place among them (families.h).
enum class LockKind : std::uint8_t {};
enum class Access : std::uint8_t { shared, exclusive };

// The cores that a family lets pass a waiting one.
enum class LockOrder : std::uint8_t {
  none,           // any core, without bound
  writers_first,  // no reader that comes later passes a waiting writer
  arrival,        // no core that comes later
};

struct LockFamilyTraits {
  std::string_view name;  // in settings, tests, benchmarks and litmus programs
  LockOrder order = LockOrder::none;
  bool in_windows = true;    // a window may use it
  bool threads = true;       // it knows LockOptions::threads
  bool atomics = true;       // else it needs loads and stores only, and many of them
  bool reader_bias = false;  // waiters are in no queue: reader_bias.h may be around it
};

// How a core waits for a lock that it must poll at another home, and its calling threads.
struct LockOptions {
  bool backoff = true;                     // off: only give the processor away between attempts
  std::uint64_t backoff_first_ns = 1000;   // the first pause; each further one is twice as long
  std::uint64_t backoff_max_ns = 256'000;  // the longest pause
  bool threads = false;                    // several threads of the core may call at once
  std::uint64_t bias_after = 8;            // reader_bias.h: shared locks per core; 0: no bias
};

}  // namespace tombolo::sync
