// SPDX-License-Identifier: Apache-2.0
// Purpose: the explored machine: everything that the rules R1 to R6 of machine/contract.h allow and
// nothing more; the driver of the Run makes each choice. Three of them, by the atomics they have.
//
//   Explored              atomics in memory
//   ExploredTestAndSet    one test-and-set register per home; the rest is emulated
//   ExploredLoadsStores   loads and stores only; the rest is emulated
//
// Limits: a program's plain loads and stores cannot be steered, so view() is null. A publish or
// refresh of several lines does them in the order of addresses (an eviction may bring a written one
// to memory earlier), a read or write likewise.
// Thread safety: cores are fibres of one thread.
#pragma once

#include "litmus/explorer/run.h"
#include "machine/emulation/atomics_by_bakery.h"
#include "machine/emulation/atomics_by_test_and_set.h"
#include "machine/optional.h"

namespace tombolo::litmus {

// All but the atomics.
class ExploredBase {
 public:
  using Word = std::size_t;
  using Home = machine::Home;
  static constexpr machine::Properties properties{.name = "explored, loads and stores",
                                                  .coherent = false,
                                                  .native_atomics = machine::Atomics::none,
                                                  .line_bytes = litmus::line_bytes};
  static constexpr bool has_views = false;
  static std::size_t reserved_sync_bytes(Home) { return 0; }
  explicit ExploredBase(const machine::Attachment& at)
      : run_(*reinterpret_cast<Run*>(at.sync)), self_(at.self) {}

  Home self() const { return self_; }
  Home cores() const { return run_.memory().shape().cores; }
  Word word(machine::SyncPlace place) { return run_.memory().word_index(place); }
  std::uint64_t load(Word word) { return run_.load(self_, word); }
  void store(Word word, std::uint64_t v) { run_.store(self_, word, v); }
  void fence() { run_.fence(self_); }
  template <class Predicate>
  Status wait_until(Word word, Predicate&& predicate) {
    auto holds = [&predicate](std::uint64_t v) -> bool { return predicate(v); };
    run_.wait(self_, word, holds);
    return {};
  }
  Status pause(std::uint64_t) {
    run_.pause(self_);
    return {};
  }
  // No core sleeps, but a program that leaves out a notify fails (R6).
  void notify(Home home) { run_.notify(self_, home); }

  Status read(machine::DataPlace place, void* out, std::size_t bytes) {
    run_.read(self_, place, static_cast<std::byte*>(out), bytes);
    return {};
  }
  Status write(machine::DataPlace place, const void* in, std::size_t bytes) {
    run_.write(self_, place, static_cast<const std::byte*>(in), bytes);
    return {};
  }
  Status write_through(machine::DataPlace place, const void* in, std::size_t bytes) {
    run_.write_through(self_, place, static_cast<const std::byte*>(in), bytes);
    return {};
  }
  void publish(machine::DataPlace place, std::size_t bytes) { run_.publish(self_, place, bytes); }
  void refresh(machine::DataPlace place, std::size_t bytes) { run_.refresh(self_, place, bytes); }
  void drain() { run_.drain(self_); }
  std::byte* view(machine::DataPlace) { return nullptr; }
  std::uint64_t data_bytes(Home) const { return run_.memory().shape().data_bytes; }

 protected:
  Run& run_;

 private:
  Home self_;
};

class Explored : public ExploredBase {
 public:
  static constexpr machine::Properties properties{.name = "explored",
                                                  .coherent = false,
                                                  .native_atomics = machine::Atomics::full,
                                                  .line_bytes = litmus::line_bytes};
  using ExploredBase::ExploredBase;

  std::uint64_t fetch_add(Word word, std::uint64_t v) {
    return run_.atomic(self(), {.kind = Operation::Kind::atomic, .word = word},
                       [v](std::uint64_t old) { return old + v; });
  }
  std::uint64_t exchange(Word word, std::uint64_t v) {
    return run_.atomic(self(), {.kind = Operation::Kind::atomic, .word = word},
                       [v](std::uint64_t) { return v; });
  }
  std::uint64_t compare_exchange(Word word, std::uint64_t expected, std::uint64_t desired) {
    return run_.atomic(
        self(),
        {.kind = Operation::Kind::atomic, .word = word, .compares = true, .expected = expected},
        [=](std::uint64_t old) { return old == expected ? desired : old; });
  }

  static bool fences_asymmetrically() { return true; }
  // Nothing: the explored machine has no compiler that moves stores or loads.
  void fence_light() {}
  void fence_heavy() { run_.fence_all(self()); }
};
static_assert(machine::Core<Explored>);
static_assert(machine::extras_of<Explored> ==
              machine::Extras{.has_no_views = true, .fences_asymmetrically = true});

// The register of a home is the first word of its sync block.
class ExploredRegisters : public ExploredBase {
 public:
  static constexpr machine::Properties properties{.name = "explored, test-and-set",
                                                  .coherent = false,
                                                  .native_atomics = machine::Atomics::test_and_set,
                                                  .line_bytes = litmus::line_bytes};
  using ExploredBase::ExploredBase;
  static std::size_t reserved_sync_bytes(Home) { return sizeof(std::uint64_t); }

  bool test_and_set(Home home) {
    return run_.atomic(self(), {.kind = Operation::Kind::atomic, .word = word({home, 0})},
                       [](std::uint64_t) { return std::uint64_t{1}; }) == 0;
  }
  void clear(Home home) { store(word({home, 0}), 0); }
};

class ExploredTestAndSet : public machine::AtomicsByTestAndSet<ExploredRegisters> {
 public:
  using LockedAtomics::LockedAtomics;
};
static_assert(machine::Core<ExploredTestAndSet>);
static_assert(machine::extras_of<ExploredTestAndSet> ==
              machine::Extras{.has_no_views = true, .stores_alone = true});

class ExploredLoadsStores : public machine::AtomicsByBakery<ExploredBase> {
 public:
  using LockedAtomics::LockedAtomics;
};
static_assert(machine::Core<ExploredLoadsStores>);
static_assert(machine::extras_of<ExploredLoadsStores> ==
              machine::Extras{.has_no_views = true, .stores_alone = true});

}  // namespace tombolo::litmus
