// SPDX-License-Identifier: Apache-2.0
// Purpose: runs a litmus test on a machine, again and again with one seed after the other, and
// counts the outcome of interest; or explores it.
// Thread safety: one call at a time.
#pragma once

#include <atomic>
#include <chrono>
#include <memory>
#include <thread>

#include "base/random.h"
#include "litmus/explorer/explored.h"
#include "litmus/explorer/explorer.h"
#include "litmus/tests/board.h"
#include "litmus/tests/litmus_test_list.h"
#include "machine/testing/ensemble.h"

namespace tombolo::litmus {

// How n cores of a machine are run: made from an EnsembleShape, run(body) calls body(core) for each
// core. A machine whose cores are no threads specializes this.
template <class C>
struct HowToRun {
  using Ensemble = machine::testing::Ensemble<C>;
  static constexpr bool on_threads = true;
};

struct Observation {
  std::uint64_t runs = 0;
  std::uint64_t seen = 0;
  std::uint64_t first_seed = 0;  // of the first run that showed it
};

struct Effort {
  std::uint64_t seed = 1;
  std::uint64_t runs = 400;
  bool until_seen = false;
};

// Threads start one after the other, and often on one processor: they wait for each other at the
// start, and give the processor away at random in between. Where they share it with others, only
// sleep does that for sure: a thread that yields may well go on at once.
class ThreadJitter final : public Jitter {
 public:
  ThreadJitter(std::atomic<machine::Home>& missing, std::uint64_t seed, machine::Home self)
      : random_(Random::stream(seed, self)) {
    missing.fetch_sub(1);
    while (missing.load() != 0) std::this_thread::yield();
  }
  void between() override {
    if (random_.one_in(3)) std::this_thread::yield();
    if (random_.one_in(8)) std::this_thread::sleep_for(std::chrono::microseconds(1));
    if (random_.one_in(3))
      for (std::uint64_t i = random_.below(200); i > 0; --i) machine::relax_processor();
  }

 private:
  Random random_;
};

// Cores of which one runs until it waits are kept apart by pauses.
template <class C>
class PauseJitter final : public Jitter {
 public:
  PauseJitter(C& core, std::uint64_t seed)
      : core_(core), random_(Random::stream(seed, core.self())) {}
  void between() override {
    if (random_.one_in(2)) (void)core_.pause(random_.below(longest_ns)).ok();
  }

 private:
  static constexpr std::uint64_t longest_ns = 3000;
  C& core_;
  Random random_;
};

template <class Test, class C>
void run_once(std::uint64_t seed, Registers& registers) {
  constexpr machine::Home cores = Test::info.cores;
  machine::SyncLayout layout(C::reserved_sync_bytes(cores));
  const BoardLayout at = BoardLayout::take(layout);
  typename HowToRun<C>::Ensemble ensemble(
      machine::testing::EnsembleShape{.cores = cores,
                                      .sync_bytes = layout.bytes(),
                                      .data_bytes = board_data_bytes,
                                      .seed = seed,
                                      .evictions = 2 + seed % 4});
  std::atomic<machine::Home> missing{cores};
  registers.clear();
  ensemble.run([&](C& core) {
    std::unique_ptr<Jitter> jitter;
    if constexpr (HowToRun<C>::on_threads)
      jitter = std::make_unique<ThreadJitter>(missing, seed, core.self());
    else
      jitter = std::make_unique<PauseJitter<C>>(core, seed);
    Board<C> board(core, at, registers, jitter.get());
    Test::body(board);
    // A core that ends releases the stores that it held back: too early for others.
    jitter->between();
  });
}

template <class Test, class C>
Observation observe(const Effort& effort) {
  Observation observation;
  Registers registers;
  for (std::uint64_t i = 0; i < effort.runs; ++i) {
    run_once<Test, C>(effort.seed + i, registers);
    ++observation.runs;
    if (!Test::interesting(registers.values())) continue;
    if (observation.seen++ == 0) observation.first_seed = effort.seed + i;
    if (effort.until_seen) break;
  }
  return observation;
}

// A litmus test as a program to explore on the machine C. With `refuse` the outcome of interest is
// a failure, so that the explorer gives a counterexample.
template <class Test, class C = Explored>
class LitmusProgram final : public Program {
 public:
  explicit LitmusProgram(bool refuse) : refuse_(refuse) {}

  MemoryShape shape() const override {
    machine::SyncLayout layout(0);
    BoardLayout::take(layout);
    return {
        .cores = Test::info.cores, .sync_bytes = layout.bytes(), .data_bytes = board_data_bytes};
  }
  void begin() override { registers_.clear(); }
  void run(const machine::Attachment& at, Run&) override {
    C core(at);
    machine::SyncLayout layout(0);
    Board<C> board(core, BoardLayout::take(layout), registers_, nullptr);
    Test::body(board);
  }
  std::string outcome(const Memory&, Run& run) override {
    const Values values = registers_.values();
    std::string text;
    for (unsigned i = 0; i < values.size(); ++i)
      text += fmt::format("{}r{}={}", i == 0 ? "" : " ", i, values[i]);
    if (Test::interesting(values)) {
      interesting_ = true;
      if (refuse_) run.fail(fmt::format("{}: {}", Test::info.question, text));
    }
    return text;
  }
  bool interesting() const { return interesting_; }

 private:
  bool refuse_;
  bool interesting_ = false;
  Registers registers_;
};

}  // namespace tombolo::litmus
