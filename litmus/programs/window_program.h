// SPDX-License-Identifier: Apache-2.0
// Purpose: programs over the engine itself, windows/window.h: each core is a process of one window,
// whose own loads and stores are the reads and writes of its core.
//
// A program is a function template over the machine, which each process runs:
//
//   template <class C>
//   void put_and_get(WindowProcess<C>& p) {
//     p.must(p.window().lock(Access::exclusive, 1, {}));
//     ...
//   }
//
// Invariants: GP1 of explorer/program.h: the sections inside and completed follow from how far each
//                 process has come.
// Thread safety: as Program.
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <vector>

#include "litmus/explorer/run.h"
#include "windows/window.h"

namespace tombolo::litmus {

using machine::Home;
using machine::Offset;
using sync::Access;
using windows::Element;
using windows::Op;

// Two lines: data that processes may not disturb each other's lie in different ones.
inline constexpr Offset datum = 0;
inline constexpr Offset beside_datum = 8;
inline constexpr Offset other_line = line_bytes;
inline constexpr std::size_t window_bytes = 2 * line_bytes;

// The progress of all processes.
struct WindowScore {
  std::uint32_t inside = 0;     // exclusive sections
  std::uint64_t completed = 0;  // of them
  std::vector<std::vector<std::uint64_t>> drawn;
};

template <class C>
class WindowProcess {
 public:
  WindowProcess(const machine::Attachment& at, const windows::EngineOptions& options,
                WindowScore& score, Run& run)
      : window_(at, options), score_(score), run_(run) {}

  Home self() { return window_.core().self(); }
  Home processes() { return window_.core().cores(); }
  std::vector<Home> others() {
    std::vector<Home> homes;
    for (Home home = 0; home < processes(); ++home)
      if (home != self()) homes.push_back(home);
    return homes;
  }
  windows::Engine& window() { return window_; }
  void must(const Status& status) {
    if (!status.ok()) run_.fail(status.message());
  }
  void pause() { must(window_.core().pause(1)); }

  void put(Home target, Offset at, std::uint64_t v) { must(window_.put(target, at, &v, sizeof v)); }
  std::uint64_t get(Home target, Offset at) {
    std::uint64_t v = 0;
    must(window_.get(target, at, &v, sizeof v));
    return v;
  }
  std::uint64_t fetch(Home target, Offset at, Op op, std::uint64_t v) {
    std::uint64_t before = 0;
    must(window_.get_accumulate(target, at, op, Element::u64, &v, &before, 1));
    return before;
  }
  // The program's own.
  void store(Home home, Offset at, std::uint64_t v) {
    must(window_.core().write({home, at}, &v, sizeof v));
  }
  std::uint64_t load(Home home, Offset at) {
    std::uint64_t v = 0;
    must(window_.core().read({home, at}, &v, sizeof v));
    return v;
  }

  void expect(const char* what, std::uint64_t seen, std::uint64_t wanted) {
    if (seen != wanted)
      run_.fail(fmt::format("lost or stale data: process {} sees {} as {}, not {}", self(), seen,
                            what, wanted));
  }
  // Each number may be drawn once.
  void draw(std::uint64_t number) { score_.drawn[self()].push_back(number); }

  void complete() { ++score_.completed; }
  std::uint64_t completed() const { return score_.completed; }
  // An exclusive section that counts the datum of home 1 up, in the way that the caller says.
  template <class Look, class Set>
  void count_up(Look&& look, Set&& set) {
    if (score_.inside != 0)
      run_.fail(fmt::format("exclusion: process {} is inside beside another", self()));
    ++score_.inside;
    const std::uint64_t seen = look();
    expect("the number of sections", seen, score_.completed);
    set(seen + 1);
    --score_.inside;
    ++score_.completed;
  }

 private:
  windows::Window<C> window_;
  WindowScore& score_;
  Run& run_;
};

template <class C>
class WindowProgram final : public Program {
 public:
  using Body = void (*)(WindowProcess<C>&);
  WindowProgram(Home processes, Body body, const windows::EngineOptions& options)
      : processes_(processes), body_(body), options_(options) {}

  MemoryShape shape() const override {
    return {.cores = processes_,
            .sync_bytes = windows::Window<C>::sync_bytes(processes_),
            .data_bytes = window_bytes};
  }
  void begin() override { score_ = {.drawn = {processes_, std::vector<std::uint64_t>{}}}; }
  void run(const machine::Attachment& at, Run& run) override {
    WindowProcess<C> process(at, options_, score_, run);
    body_(process);
    process.must(process.window().closable());
  }
  std::string outcome(const Memory&, Run& run) override {
    std::string text = fmt::format("sections: {}; drawn:", score_.completed);
    std::vector<std::uint64_t> all;
    for (const auto& numbers : score_.drawn) {
      for (const std::uint64_t number : numbers) text += fmt::format(" {}", number);
      all.insert(all.end(), numbers.begin(), numbers.end());
    }
    std::ranges::sort(all);
    for (std::uint64_t i = 0; i < all.size(); ++i)
      if (all[i] != i) run.fail(fmt::format("atomicity: number {} was drawn twice, or never", i));
    return text;
  }

 private:
  Home processes_;
  Body body_;
  windows::EngineOptions options_;
  WindowScore score_;
};

}  // namespace tombolo::litmus
