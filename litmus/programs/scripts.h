// SPDX-License-Identifier: Apache-2.0
// Purpose: the actions of the cores of a lock program, and the mutexes by their short names.
// Thread safety: plain functions.
#pragma once

#include "litmus/explorer/explored.h"
#include "litmus/programs/lock_programs.h"
#include "sync/locks/bakery_lock.h"
#include "sync/locks/families.h"
#include "sync/locks/mcs_lock.h"
#include "sync/locks/mutex.h"
#include "sync/locks/sleeping_mutex.h"

namespace tombolo::litmus {

inline constexpr Section shared0{Section::Kind::shared, 0};
inline constexpr Section exclusive0{Section::Kind::exclusive, 0};
inline constexpr Section exclusive1{Section::Kind::exclusive, 1};
inline constexpr Section all_homes{Section::Kind::all};

// Two cores write twice each; three write once each.
inline Script writers(machine::Home cores) {
  return Script(cores, std::vector<Section>(cores == 2 ? 2 : 1, exclusive0));
}
// Once each.
inline Script writers_once(machine::Home cores) {
  return Script(cores, std::vector<Section>(1, exclusive0));
}
inline Script reader_and_writer_once(machine::Home cores) {
  Script script(cores, {shared0});
  script[1] = {exclusive0};
  return script;
}
// Readers, and core 1 writes.
inline Script readers_and_writer(machine::Home cores) {
  Script script(cores, {shared0});
  script[0] = {shared0, shared0};
  script[1] = {exclusive0};
  return script;
}
// Core 0 locks all, the others write: the first has used single locks before.
inline Script lock_all_and_writers(machine::Home cores) {
  Script script(cores, {exclusive0});
  script[0] = {all_homes};
  script[1] = {exclusive1, exclusive1};
  return script;
}
// Core 0 takes and frees a lock while it holds another. The others lock all.
inline Script nested_and_lock_all(machine::Home cores) {
  Script script(cores, {all_homes});
  script[0] = {{.kind = Section::Kind::exclusive, .target = 0, .around = 1}, exclusive1};
  return script;
}
// Two lock-alls beside one writer.
inline Script lock_alls_and_writer(machine::Home cores) {
  Script script(cores, {all_homes});
  script[1] = {exclusive0};
  return script;
}

template <class C>
using Mcs = MutexLocks<C, sync::McsLock<C>>;
template <class C>
using BakeryMutex = MutexLocks<C, sync::BakeryMutexes<C>>;

// A mutex that is a word, at each home.
template <class C, class Mutex>
class WordMutexes {
 public:
  struct Layout {
    machine::Offset word = 0;
  };
  static Layout take(machine::SyncLayout& layout, machine::Home) {
    return {.word = layout.take_lines(1)};
  }
  template <class... Options>
  WordMutexes(C& core, Layout layout, Options... options)
      : core_(core), layout_(layout), mutex_(core, options...) {}
  Status lock(const Section& section) { return mutex_.acquire(word(section)); }
  void unlock(const Section& section) { mutex_.release(word(section)); }

 private:
  auto word(const Section& section) { return core_.word({section.target, layout_.word}); }
  C& core_;
  Layout layout_;
  Mutex mutex_;
};
template <class C>
using SpinMutexes = WordMutexes<C, sync::SpinMutex<C>>;
// Its mutex polls once before it sleeps.
template <class C, class Mutex = sync::SleepingMutex<C>>
class SleepingMutexes : public WordMutexes<C, Mutex> {
 public:
  using typename WordMutexes<C, Mutex>::Layout;
  SleepingMutexes(C& core, Layout layout) : WordMutexes<C, Mutex>(core, layout, 1u) {}
};
template <class C>
using SleepingMutexesOf = SleepingMutexes<C>;

}  // namespace tombolo::litmus
