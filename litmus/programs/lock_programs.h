// SPDX-License-Identifier: Apache-2.0
// Purpose: programs over the readers-writer locks with lock-all, and over mutexes: each core does a
// list of sections, which a Judge watches.
// Thread safety: as Program.
#pragma once

#include <vector>

#include "litmus/explorer/program.h"
#include "litmus/programs/sections.h"
#include "sync/locks/lock_kind.h"

namespace tombolo::litmus {

struct Section {
  enum class Kind : std::uint8_t { shared, exclusive, all } kind;
  machine::Home target = 0;
  unsigned around = 0;  // so many of the next sections are done inside this one
};
// By core.
using Script = std::vector<std::vector<Section>>;

// The sections of one lock per home, for cores of machine C.
template <class C, class Locks>
class SectionProgram : public Program {
 public:
  SectionProgram(Script script, Writing writing)
      : script_(std::move(script)), writing_(writing), judge_(cores()) {}

  MemoryShape shape() const override {
    machine::SyncLayout layout(C::reserved_sync_bytes(cores()));
    Locks::take(layout, cores());
    return {.cores = cores(), .sync_bytes = layout.bytes(), .data_bytes = line_bytes};
  }
  void begin() override { judge_.begin(); }
  void run(const machine::Attachment& at, Run& run) override {
    C core(at);
    machine::SyncLayout layout(C::reserved_sync_bytes(cores()));
    Locks locks(core, Locks::take(layout, cores()));
    const auto& sections = script_[at.self];
    for (auto next = sections.begin(); next != sections.end();) inside(core, locks, next, run);
  }
  std::string outcome(const Memory&, Run&) override { return judge_.outcome(); }

 private:
  machine::Home cores() const { return static_cast<machine::Home>(script_.size()); }

  // The next section and those inside it.
  void inside(C& core, Locks& locks, std::vector<Section>::const_iterator& next, Run& run) {
    const Section& section = *next++;
    if (const Status status = locks.lock(section); !status.ok()) run.fail(status.message());
    const auto unlock = [&] { locks.unlock(section); };
    const machine::Home target = section.target;
    if (section.kind == Section::Kind::all)
      judge_.reads(core, run, 0, cores(), unlock);
    else if (section.kind == Section::Kind::shared)
      judge_.reads(core, run, target, target + 1, unlock);
    else
      judge_.writes(core, run, target, writing_, unlock, [&] {
        for (unsigned i = 0; i < section.around; ++i) inside(core, locks, next, run);
      });
  }

  Script script_;
  Writing writing_;
  Judge judge_;
};

// The locks of a family of sync/locks as SectionProgram wants them.
template <class C, class Locks>
class FamilyLocks {
 public:
  using Layout = typename Locks::Layout;
  static Layout take(machine::SyncLayout& layout, machine::Home cores) {
    return Locks::take(layout, cores);
  }
  FamilyLocks(C& core, Layout layout) : locks_(core, layout, options) {}
  Status lock(const Section& section) {
    if (section.kind == Section::Kind::all) return locks_.lock_all();
    return locks_.lock(access(section), section.target);
  }
  void unlock(const Section& section) {
    if (section.kind == Section::Kind::all) return locks_.unlock_all();
    locks_.unlock(access(section), section.target);
  }

 private:
  // The bias of readers comes after the first shared locks, so that short programs meet it.
  static constexpr sync::LockOptions options{.bias_after = 1};
  static sync::Access access(const Section& section) {
    return section.kind == Section::Kind::shared ? sync::Access::shared : sync::Access::exclusive;
  }
  Locks locks_;
};

// On<C>: those of a family on a machine.
template <class Family>
struct LocksOf {
  template <class C>
  using On = FamilyLocks<C, typename Family::template Locks<C>>;
};

// A mutex per home, which knows exclusive sections only.
template <class C, class Mutexes>
class MutexLocks {
 public:
  using Layout = typename Mutexes::Layout;
  static Layout take(machine::SyncLayout& layout, machine::Home cores) {
    return Mutexes::take(layout, cores);
  }
  MutexLocks(C& core, Layout layout) : mutexes_(core, layout) {}
  Status lock(const Section& section) { return mutexes_.acquire(section.target); }
  void unlock(const Section& section) { (void)mutexes_.release(section.target); }

 private:
  Mutexes mutexes_;
};

}  // namespace tombolo::litmus
