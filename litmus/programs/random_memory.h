// SPDX-License-Identifier: Apache-2.0
// Purpose: random programs on virtual shared memory: loads, stores, spans, barriers, reductions and
// evictions, drawn from a seed, over variables that share pages. All that the threads see is held
// against a model of consistency (dsm/testing/models.h).
//
// A variable is stored to by one thread between two barriers, or under one lock. A thread may give
// a variable of its own away when it begins a span; another may take it in a span that begins later
// (rule 1 orders their stores).
//
// Invariants: RMP1 the n-th store to a variable stores n. A load may see a number from that of the
//                  last store that is performed with respect to the thread to that of the last
//                  store at all.
//             RMP2 the time of an event is that of its effect: of a span, that of the atomic that
//                  takes the lock. So the judge orders spans of different locks as they began.
//             RMP3 the state depends on the order of steps: for walks without merging only.
// Thread safety: as Program.
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "base/random.h"
#include "dsm/testing/models.h"
#include "litmus/programs/memory_program.h"
#include "machine/testing/forwarding.h"

namespace tombolo::litmus {

// Tells the time of its last successful compare_exchange.
template <machine::Core C>
class Noting : public machine::testing::Forwarding<C> {
 public:
  using Base = machine::testing::Forwarding<C>;
  using Base::Base;
  std::uint64_t compare_exchange(typename Base::Word word, std::uint64_t expected,
                                 std::uint64_t desired) {
    const std::uint64_t old = Base::compare_exchange(word, expected, desired);
    if (old == expected && clock != nullptr) taken = ++*clock;
    return old;
  }
  std::uint64_t* clock = nullptr;
  std::uint64_t taken = 0;
};

struct RandomMemory {
  std::uint64_t seed = 1;
  Shape shape;
  dsm::testing::Model model = dsm::testing::Model::regional;
  std::uint32_t rounds = 3;
  std::uint32_t steps = 10;  // of each thread in a round
};

template <class Thread>
class RandomMemoryProgram final : public Program {
 public:
  using Core = typename Thread::Core;
  explicit RandomMemoryProgram(const RandomMemory& options)
      : options_(options), layout_(Thread::take(options.shape)) {}

  MemoryShape shape() const override {
    return {.cores = options_.shape.threads,
            .sync_bytes = layout_.sync_bytes,
            .data_bytes = layout_.data_bytes};
  }
  void begin() override {
    clock_ = 0;
    events_.clear();
    handed_out_ = 0;
    before_.assign(options_.rounds, {});
    variables_.assign(owned + guarded * options_.shape.locks, {});
    for (std::size_t v = 0; v < owned; ++v) variables_[v].owner = owner_of(v, 0);
  }
  void run(const machine::Attachment& at, Run& run) override {
    Core core(at);
    core.clock = &clock_;
    Thread thread(core, layout_, options_.shape);
    thread.on_error([&run](const Status& status) { run.fail(status.message()); });
    Body(*this, thread, run).go();
  }
  std::string outcome(const Memory&, Run& run) override {
    judge(run);
    return fmt::format("{} events", events_.size());
  }

 private:
  static constexpr std::size_t owned = 6;    // variables of one thread between barriers
  static constexpr std::size_t guarded = 2;  // of each lock
  static constexpr std::uint64_t no_owner = ~std::uint64_t{0};

  struct Own {
    std::uint64_t count = 0;  // of its stores
    std::uint64_t owner = no_owner;
    std::uint64_t free_since = 0;  // when it has no owner
    bool in_span = false;          // stored to in a span since the last barrier
  };
  enum class Kind : std::uint8_t { load, store, acquire, release, leave };
  struct Event {
    std::uint64_t time;
    Kind kind;
    dsm::Thread thread;
    std::uint64_t what;  // variable, lock or round
    std::uint64_t seen;
  };

  std::uint64_t owner_of(std::size_t v, std::uint32_t round) const {
    return Random::stream(options_.seed + round, v).below(options_.shape.threads);
  }
  void note(Kind kind, dsm::Thread thread, std::uint64_t what, std::uint64_t seen = 0) {
    events_.push_back({++clock_, kind, thread, what, seen});
  }

  void judge(Run& run) {
    std::ranges::sort(events_, {}, &Event::time);
    dsm::testing::Knowledge known(options_.model, options_.shape.threads, variables_.size(),
                                  options_.shape.locks);
    for (const Event& event : events_) {
      switch (event.kind) {
        case Kind::store:
          known.store(event.thread, event.what);
          break;
        case Kind::acquire:
          known.acquire(event.thread, static_cast<dsm::Lock>(event.what));
          break;
        case Kind::release:
          known.release(event.thread, static_cast<dsm::Lock>(event.what));
          break;
        case Kind::leave:
          known.leave_barrier(event.thread, before_[event.what]);
          break;
        case Kind::load:
          if (event.seen < known.performed(event.thread, event.what) ||
              event.seen > known.stored()[event.what])
            run.fail(fmt::format("seed {}: thread {} sees {} in variable {} at {}, not {} to {}",
                                 options_.seed, event.thread, event.seen, event.what, event.time,
                                 known.performed(event.thread, event.what),
                                 known.stored()[event.what]));
      }
    }
  }

  // One thread.
  class Body {
   public:
    Body(RandomMemoryProgram& program, Thread& thread, Run& run)
        : program_(program),
          options_(program.options_),
          thread_(thread),
          run_(run),
          random_(Random::stream(options_.seed, 100 + thread.self())) {}

    void go() {
      for (std::uint32_t round = 0; round < options_.rounds; ++round) {
        for (std::uint32_t i = 0; i < options_.steps; ++i) step();
        while (!held_.empty()) end(random_.below(held_.size()));
        meet(round);
      }
      for (std::size_t v = 0; v < program_.variables_.size(); ++v) load(v);
      thread_.close();
    }

   private:
    void step() {
      const std::size_t v = random_.below(program_.variables_.size());
      switch (random_.below(8)) {
        case 0:
        case 1:
          return load(v);
        case 2:
        case 3:
        case 4:
          return may_store(v) ? store(v) : load(v);
        case 5:
          return thread_.evict(random_.below(options_.shape.pages));
        default:
          if (!held_.empty() && random_.one_in(2)) return end(random_.below(held_.size()));
          return begin();
      }
    }

    void load(std::size_t v) {
      const std::uint64_t seen = thread_.load(v);
      program_.note(Kind::load, thread_.self(), v, seen);
    }

    bool may_store(std::size_t v) const {
      if (v < owned) return program_.variables_[v].owner == thread_.self();
      const auto lock = static_cast<dsm::Lock>((v - owned) / guarded);
      return std::ranges::find(held_, lock) != held_.end();
    }
    void store(std::size_t v) {
      Own& variable = program_.variables_[v];
      // The value that is there already: the page is written, and not changed.
      if (random_.one_in(8)) return thread_.store(v, variable.count, random_.one_in(2));
      variable.in_span |= !held_.empty();
      thread_.store(v, ++variable.count, random_.one_in(2));
      program_.note(Kind::store, thread_.self(), v);
    }

    // In the order of locks: no circle waits.
    void begin() {
      const dsm::Lock first = held_.empty() ? 0 : std::ranges::max(held_) + 1;
      if (first == options_.shape.locks) return;
      const auto lock = static_cast<dsm::Lock>(first + random_.below(options_.shape.locks - first));
      thread_.begin_span(lock);
      const std::uint64_t began = thread_.core().taken;
      program_.events_.push_back({began, Kind::acquire, thread_.self(), lock, 0});
      held_.push_back(lock);
      for (std::size_t v = 0; v < owned; ++v) change_hands(program_.variables_[v], began);
    }
    void change_hands(Own& variable, std::uint64_t began) {
      if (variable.owner == thread_.self() && !variable.in_span && random_.one_in(3)) {
        variable.owner = no_owner;
        variable.free_since = began;
      } else if (variable.owner == no_owner && variable.free_since < began && random_.one_in(2)) {
        variable.owner = thread_.self();
      }
    }
    void end(std::size_t which) {
      const dsm::Lock lock = held_[which];
      // The next holder takes the lock later than now.
      program_.note(Kind::release, thread_.self(), lock);
      thread_.end_span(lock);
      held_.erase(held_.begin() + static_cast<std::ptrdiff_t>(which));
    }

    void meet(std::uint32_t round) {
      // All stores of this round are counted when the last thread arrives.
      auto& before = program_.before_[round];
      before.clear();
      for (const Own& variable : program_.variables_) before.push_back(variable.count);
      thread_.barrier();
      program_.note(Kind::leave, thread_.self(), round);
      if (round + 1 < options_.rounds) hand_out(round + 1);
      const std::uint64_t threads = options_.shape.threads;
      if (thread_.sum(thread_.self()) != threads * (threads - 1) / 2)
        run_.fail(fmt::format("seed {}: a reduction lost a value", options_.seed));
    }
    // The first thread that leaves does it for all: no other has a variable then.
    void hand_out(std::uint32_t round) {
      if (program_.handed_out_ >= round) return;
      program_.handed_out_ = round;
      for (std::size_t v = 0; v < owned; ++v)
        program_.variables_[v] = {.count = program_.variables_[v].count,
                                  .owner = program_.owner_of(v, round)};
    }

    RandomMemoryProgram& program_;
    const RandomMemory& options_;
    Thread& thread_;
    Run& run_;
    Random random_;
    std::vector<dsm::Lock> held_;
  };

  RandomMemory options_;
  typename Thread::Layout layout_;
  std::uint64_t clock_ = 0;
  std::vector<Event> events_;
  std::vector<dsm::testing::Knowledge::Counts> before_;  // each barrier
  std::vector<Own> variables_;
  std::uint32_t handed_out_ = 0;
};

}  // namespace tombolo::litmus
