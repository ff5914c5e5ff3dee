// SPDX-License-Identifier: Apache-2.0
// Purpose: a program from one lambda per core, for tests of the explorer: words and lines have
// numbers, and the values that a core says it saw are its part of the outcome.
//
//   Bodies program({[](Actor& core) { core.store(0, 1); },
//                   [](Actor& core) { core.saw(core.load(0)); }});
//
// Words 0 and 1 are at home 0, 2 and 3 at home 1; lines likewise.
// Thread safety: as Program.
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <string>
#include <vector>

#include "litmus/explorer/explored.h"
#include "litmus/explorer/explorer.h"

namespace tombolo::litmus::testing {

// One core, with the operations in short.
class Actor {
 public:
  Actor(const machine::Attachment& at, Run& run, std::string& seen)
      : core_(at), run_(run), seen_(seen) {}

  Explored& core() { return core_; }
  void fail(const std::string& why) { run_.fail(why); }
  void saw(std::uint64_t v) { seen_ += fmt::format("{} ", v); }

  std::uint64_t load(unsigned word) { return core_.load(at(word)); }
  void store(unsigned word, std::uint64_t v) { core_.store(at(word), v); }
  std::uint64_t add(unsigned word, std::uint64_t v) { return core_.fetch_add(at(word), v); }
  std::uint64_t swap(unsigned word, std::uint64_t v) { return core_.exchange(at(word), v); }
  std::uint64_t change(unsigned word, std::uint64_t expected, std::uint64_t desired) {
    return core_.compare_exchange(at(word), expected, desired);
  }
  void fence() { core_.fence(); }
  void fence_all() { core_.fence_heavy(); }
  void pause() { (void)core_.pause(1).ok(); }
  void notify(machine::Home home) { core_.notify(home); }
  void await(unsigned word, std::uint64_t v) {
    (void)core_.wait_until(at(word), [v](std::uint64_t seen) { return seen == v; }).ok();
  }

  std::uint64_t read(unsigned line, unsigned unit = 0) {
    std::uint64_t v = 0;
    (void)core_.read(place(line, unit), &v, sizeof v).ok();
    return v;
  }
  void write(unsigned line, unsigned unit, std::uint64_t v) {
    (void)core_.write(place(line, unit), &v, sizeof v).ok();
  }
  void through(unsigned line, unsigned unit, std::uint64_t v) {
    (void)core_.write_through(place(line, unit), &v, sizeof v).ok();
  }
  void publish(unsigned line) { core_.publish(place(line, 0), line_bytes); }
  void refresh(unsigned line) { core_.refresh(place(line, 0), line_bytes); }
  void drain() { core_.drain(); }

  static machine::DataPlace place(unsigned line, unsigned unit) {
    return {static_cast<machine::Home>(line / 2), line % 2 * line_bytes + unit * unit_bytes};
  }

 private:
  std::size_t at(unsigned word) {
    return core_.word({static_cast<machine::Home>(word / 2), word % 2 * 8});
  }

  Explored core_;
  Run& run_;
  std::string& seen_;
};

class Bodies final : public Program {
 public:
  using Body = std::function<void(Actor&)>;
  explicit Bodies(std::vector<Body> bodies) : bodies_(std::move(bodies)) {}

  // This outcome counts as a failure.
  void refuse(const std::string& outcome) { refused_ = outcome; }

  MemoryShape shape() const override {
    return {.cores = static_cast<machine::Home>(bodies_.size()),
            .sync_bytes = 16,
            .data_bytes = 2 * line_bytes};
  }
  void begin() override { seen_.assign(bodies_.size(), {}); }
  void run(const machine::Attachment& at, Run& run) override {
    Actor actor(at, run, seen_[at.self]);
    bodies_[at.self](actor);
  }
  std::string outcome(const Memory& memory, Run& run) override {
    std::string text;
    for (const std::string& seen : seen_) text += seen + "| ";
    text += fmt::format("{} {}", memory.load(0), memory.load(1));
    if (text == refused_) run.fail("refused: " + text);
    return text;
  }

 private:
  std::vector<Body> bodies_;
  std::vector<std::string> seen_;
  std::string refused_ = "none";
};

// The possible choices now, in the order of the explorer.
inline std::string choices_of(Run& run) {
  std::vector<Transition> choices;
  run.enabled(choices);
  return to_text(choices);
}

// Applies the transitions that the text names, each of which must be possible. Returns the choices
// that are possible then, or why it could not go on.
inline std::string steer(Run& run, const std::string& text) {
  std::vector<Transition> path;
  if (!from_text(text, path)) return "no path: " + text;
  std::vector<Transition> choices;
  for (const Transition& transition : path) {
    run.enabled(choices);
    if (std::find(choices.begin(), choices.end(), transition) == choices.end())
      return fmt::format("{} is not among: {}", to_text(transition), to_text(choices));
    run.apply(transition);
  }
  return choices_of(run);
}

}  // namespace tombolo::litmus::testing
