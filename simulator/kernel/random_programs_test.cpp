// SPDX-License-Identifier: Apache-2.0
// Causality (SK1, SK2, SK4): random programs, run by the kernel and by an interpreter that has no
// fibres, takes one step at a time and finds the next one by looking at all. Both must do the same,
// step for step. Durations are small, so that ties are the rule.
#include <gtest/gtest.h>

#include <algorithm>
#include <deque>
#include <vector>

#include "simulator/kernel/simulation.h"

namespace tombolo::simulator {
namespace {

enum class Kind { work, load, store, add, serve, wait, post, spawn };

struct Step {
  Kind kind;
  std::uint64_t word;
  std::uint64_t value;  // stored, added, or waited for
  std::int64_t length;  // of work, service, delay; deadline of a wait, 0 for none
};
using Program = std::vector<Step>;
struct Programs {
  std::vector<Program> first;
  std::vector<Program> late;  // a step spawns one; they spawn none
};

struct Entry {
  std::uint64_t core, step;
  std::int64_t time;
  std::uint64_t value;
  bool operator==(const Entry&) const = default;
};

struct Outcome {
  std::vector<Entry> log;
  std::vector<std::uint64_t> words;
  bool deadlock = false;
  bool operator==(const Outcome&) const = default;
};

constexpr std::uint64_t word_count = 4;
constexpr std::uint64_t event_entry = 1000;

std::vector<Program> random_programs(Random& random, std::size_t most, std::uint64_t kinds) {
  std::vector<Program> programs(1 + random.below(most));
  for (Program& program : programs) {
    program.resize(random.below(40));
    for (Step& s : program) {
      s.kind = static_cast<Kind>(random.below(kinds));
      s.word = random.below(word_count);
      s.value = random.below(12);
      s.length = static_cast<std::int64_t>(random.below(6));
      if (s.kind == Kind::wait && !random.one_in(3)) s.length += 1;
    }
  }
  return programs;
}

// ---- The reference ------------------------------------------------------------------------------

class Reference {
 public:
  explicit Reference(const Programs& programs) : programs_(programs) {
    for (const Program& program : programs.first) cores_.push_back({.program = &program});
    outcome_.words.resize(word_count);
  }

  Outcome run() {
    while (step()) {
    }
    for (const State& core : cores_)
      if (core.step < core.program->size()) outcome_.deadlock = true;
    return outcome_;
  }

 private:
  struct State {
    const Program* program;
    std::int64_t time = 0;
    std::size_t step = 0;
    bool parked = false;
    bool waiting = false;  // in a wait that has begun
    std::int64_t deadline = 0;
  };
  struct Posted {
    std::int64_t time;
    std::uint64_t word, value;
  };
  static constexpr std::int64_t never_time = INT64_MAX;

  std::int64_t next_time(std::size_t c) const {
    const State& s = cores_[c];
    if (s.step == s.program->size()) return never_time;
    return s.parked ? std::max(s.time, s.deadline) : s.time;
  }

  bool step() {
    std::size_t first = 0;
    for (std::size_t c = 1; c < cores_.size(); ++c) {
      if (next_time(c) < next_time(first)) first = c;
    }
    const auto event =
        std::min_element(posted_.begin(), posted_.end(),
                         [](const Posted& a, const Posted& b) { return a.time < b.time; });
    if (event != posted_.end() && event->time <= next_time(first)) {
      const Posted due = *event;
      posted_.erase(event);
      outcome_.words[due.word] += due.value;
      outcome_.log.push_back({event_entry, 0, due.time, outcome_.words[due.word]});
      wake(due.word, due.time);
      return true;
    }
    if (next_time(first) == never_time) return false;
    execute(first);
    return true;
  }

  void wake(std::uint64_t word, std::int64_t time) {
    for (std::size_t c = 0; c < cores_.size(); ++c) {
      State& s = cores_[c];
      if (!s.parked || (*s.program)[s.step].word != word) continue;
      s.parked = false;
      s.time = std::max(s.time, time);
    }
  }

  void log(std::size_t c, std::uint64_t value) {
    outcome_.log.push_back({c, cores_[c].step, cores_[c].time, value});
  }

  void execute(std::size_t c) {
    State& core = cores_[c];
    const Step& s = (*core.program)[core.step];
    std::uint64_t& word = outcome_.words[s.word];
    core.time = next_time(c);
    core.parked = false;
    switch (s.kind) {
      case Kind::work:
        core.time += s.length;
        break;
      case Kind::load:
        log(c, word);
        break;
      case Kind::store:
      case Kind::add:
        word = s.value + (s.kind == Kind::add ? word : 0);
        log(c, word);
        wake(s.word, core.time);
        break;
      case Kind::serve:
        server_free_ = std::max(server_free_, core.time) + s.length;
        log(c, static_cast<std::uint64_t>(server_free_));
        core.time = server_free_;
        break;
      case Kind::wait:
        if (!core.waiting) core.deadline = s.length == 0 ? never_time : core.time + s.length;
        core.waiting = true;
        if (word < s.value && core.time < core.deadline) {
          core.parked = true;
          return;
        }
        core.waiting = false;
        log(c, word < s.value ? 0 : 1);
        break;
      case Kind::post:
        log(c, 0);
        posted_.push_back({core.time + s.length, s.word, s.value});
        break;
      case Kind::spawn:
        log(c, cores_.size());
        cores_.push_back(
            {.program = &programs_.late[s.value % programs_.late.size()], .time = core.time});
        break;
    }
    ++core.step;
  }

  const Programs& programs_;
  std::deque<State> cores_;
  std::vector<Posted> posted_;
  std::int64_t server_free_ = 0;
  Outcome outcome_;
};

// ---- The same programs on the kernel ------------------------------------------------------------

class OnKernel {
 public:
  explicit OnKernel(const Programs& programs) : programs_(programs) {
    outcome_.words.resize(word_count);
  }

  Outcome run() {
    for (const Program& program : programs_.first) spawn(program);
    const RunResult result = simulation_.run();
    outcome_.deadlock = result.ending == Ending::deadlock;
    EXPECT_EQ(result.status.ok(), result.ending == Ending::finished);
    return outcome_;
  }

 private:
  static Address address(std::uint64_t word) { return Address(word * 8); }

  CoreId spawn(const Program& program) {
    return simulation_.spawn("core", [this, &program](Core& core) {
      for (std::size_t i = 0; i < program.size(); ++i) execute(core, i, program[i]);
    });
  }

  void log(const Core& core, std::size_t step, std::uint64_t value) {
    outcome_.log.push_back({core.id().index(), step, core.now().since_start().in_ticks(), value});
  }

  void execute(Core& core, std::size_t i, const Step& s) {
    const Duration length = Duration::ticks(s.length);
    if (s.kind == Kind::work) {
      core.advance(length);
      return;
    }
    std::uint64_t& word = outcome_.words[s.word];
    core.await_turn();
    switch (s.kind) {
      case Kind::work:
        break;
      case Kind::load:
        log(core, i, word);
        break;
      case Kind::store:
      case Kind::add:
        word = s.value + (s.kind == Kind::add ? word : 0);
        log(core, i, word);
        simulation_.wake(address(s.word));
        break;
      case Kind::serve:
        server_free_ = std::max(server_free_, core.now()) + length;
        log(core, i, static_cast<std::uint64_t>(server_free_.since_start().in_ticks()));
        core.advance_to(server_free_);
        break;
      case Kind::wait: {
        const Time deadline = s.length == 0 ? Time::never() : core.now() + length;
        const bool seen = core.wait_until(
            address(s.word), "its word", [&] { return word >= s.value; }, deadline);
        log(core, i, seen ? 1 : 0);
        break;
      }
      case Kind::post:
        log(core, i, 0);
        core.post(length, [this, at = s.word, value = s.value](Time now) {
          outcome_.words[at] += value;
          outcome_.log.push_back(
              {event_entry, 0, now.since_start().in_ticks(), outcome_.words[at]});
          simulation_.wake(address(at));
        });
        break;
      case Kind::spawn:
        log(core, i, spawn(programs_.late[s.value % programs_.late.size()]).index());
        break;
    }
  }

  const Programs& programs_;
  Simulation simulation_{Options{.stack_bytes = std::size_t{64} * 1024}};
  Time server_free_;
  Outcome outcome_;
};

TEST(RandomPrograms, HappenAsInAReferenceThatStepsOneByOne) {
  int deadlocks = 0;
  constexpr int runs = 3000;
  for (int seed = 0; seed < runs; ++seed) {
    Random random(static_cast<std::uint64_t>(seed));
    const Programs programs{.first = random_programs(random, 7, 8),
                            .late = random_programs(random, 3, 7)};
    const Outcome expected = Reference(programs).run();
    const Outcome seen = OnKernel(programs).run();
    for (std::size_t i = 0; i < std::min(expected.log.size(), seen.log.size()); ++i) {
      ASSERT_EQ(expected.log[i], seen.log[i]) << "seed " << seed << ", entry " << i;
    }
    ASSERT_TRUE(expected == seen) << "seed " << seed;
    deadlocks += expected.deadlock ? 1 : 0;
  }
  EXPECT_GT(deadlocks, runs / 30);
  EXPECT_LT(deadlocks, runs - runs / 20);
}

}  // namespace
}  // namespace tombolo::simulator
