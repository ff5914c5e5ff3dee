// SPDX-License-Identifier: Apache-2.0
// Purpose: the guarantees of an exclusive place (002 chapter 3) with the queue of svp/: families
// run one at a time, in the order of their creates, each with the memory of those before it; the
// creator sees the changes of its family after the sync. Each core creates a family and syncs it,
// some times; a core that finds the place free runs the families of the others as long as there are
// some. Where families are stopped, a core that finds others before its own gives up its turn.
//
// Invariants: GP1 of explorer/program.h: the lists of families that a core has run or given up,
//                 and the turn before each of its own, are its own.
// Thread safety: as Program.
#pragma once

#include <fmt/format.h>

#include <map>
#include <vector>

#include "litmus/explorer/program.h"
#include "litmus/explorer/run.h"
#include "svp/places/turns.h"
#include "svp/scheduler/handover.h"

namespace tombolo::litmus {

// When a family's creator is told of its end.
enum class TurnsOrder : std::uint8_t { left_before_told, told_before_left };
// Of families that are not the first ones of the queue.
enum class TurnsEnd : std::uint8_t { synced, stopped };

template <class C, class Turns = svp::Turns<C>>
class TurnsProgram final : public Program {
 public:
  using Hand = svp::Handover<C>;
  using Number = typename Turns::Number;
  using Word = typename C::Word;

  TurnsProgram(machine::Home cores, unsigned rounds, TurnsOrder order, TurnsEnd end)
      : cores_(cores), rounds_(rounds), order_(order), end_(end) {}

  MemoryShape shape() const override {
    machine::SyncLayout layout(C::reserved_sync_bytes(cores_));
    (void)take(layout);
    return {.cores = cores_, .sync_bytes = layout.bytes(), .data_bytes = 2 * line_bytes};
  }
  void begin() override {
    ran_.assign(cores_, {});
    before_.assign(cores_, {});
    given_up_.assign(cores_, {});
  }
  void run(const machine::Attachment& at, Run& run) override {
    C core(at);
    machine::SyncLayout layout(C::reserved_sync_bytes(cores_));
    Body body{
        core, take(layout), run, order_, end_, ran_[at.self], before_[at.self], given_up_[at.self]};
    for (unsigned round = 0; round < rounds_; ++round) body.create_and_sync(round);
  }
  std::string outcome(const Memory&, Run& run) override {
    std::map<Number, std::uint64_t> positions;
    for (const auto& all : ran_) positions.insert(all.begin(), all.end());
    std::map<Number, Number> before;
    for (const auto& all : before_) before.insert(all.begin(), all.end());
    std::size_t given_up = 0;
    for (const auto& all : given_up_) given_up += all.size();
    if (positions.size() + given_up != std::size_t{cores_} * rounds_)
      run.fail(fmt::format("turns: {} of {} families ran, and {} were given up", positions.size(),
                           cores_ * rounds_, given_up));
    for (const auto& [turn, position] : positions) {
      const Number last = ran_before(turn, before, positions);
      if (last != 0 && position != positions[last] + 1)
        run.fail(fmt::format("turns: family {} ran as number {}, the one before it as {}", turn,
                             position, positions[last]));
    }
    return given_up == 0 ? "each family in its turn" : "each family in its turn, or given up";
  }

 private:
  static constexpr Number gone = ~Number{0};
  using Pairs = std::vector<std::pair<Number, std::uint64_t>>;
  struct Places {
    machine::Offset last;
    machine::Offset link;
    machine::Offset claim;
    machine::Offset state;
  };
  static Places take(machine::SyncLayout& layout) {
    return {.last = layout.take_lines(1),
            .link = layout.take_lines(1),
            .claim = layout.take_lines(1),
            .state = layout.take_lines(1)};
  }
  // The newest turn before this one that was not given up; 0: the queue was empty.
  static Number ran_before(Number turn, const std::map<Number, Number>& before,
                           const std::map<Number, std::uint64_t>& positions) {
    do turn = before.at(turn);
    while (turn != 0 && !positions.contains(turn));
    return turn;
  }

  struct Body {
    C& core;
    Places places;
    Run& run;
    TurnsOrder order;
    TurnsEnd end;
    Pairs& ran;     // families, and the numbers as which they ran
    Pairs& before;  // own families, and those before them
    std::vector<Number>& given_up;

    machine::Home creator(Number turn) {
      return static_cast<machine::Home>((turn - 1) % core.cores());
    }
    Word last() { return core.word({0, places.last}); }
    Word link(Number turn) { return core.word({creator(turn), places.link}); }
    Word claim(Number turn) { return core.word({creator(turn), places.claim}); }
    Word state(Number turn) { return core.word({creator(turn), places.state}); }
    // The place of a number that the families change, and of a number for a creator.
    machine::DataPlace count() { return {0, 0}; }
    machine::DataPlace result(Number turn) { return {creator(turn), line_bytes}; }

    void create_and_sync(unsigned round) {
      const Number own = 1 + core.self() + Number{round} * core.cores();
      if (round != 0) {
        core.store(link(own), 0);
        core.store(claim(own), 0);
        core.store(state(own), Hand::untaken);
      }
      const auto link_of = [this](Number turn) { return link(turn); };
      const auto claim_of = [this](Number turn) { return claim(turn); };
      const bool first = end == TurnsEnd::stopped && Turns::enter_if_empty(core, last(), own);
      before.emplace_back(own, first ? 0 : Turns::enter(core, last(), own, link_of, claim_of));
      if (before.back().second == 0) {
        // Some core has its task from now on, whatever its creator does.
        if (end == TurnsEnd::stopped && !first && Turns::give_up(core, claim(own)))
          run.fail("turns: a turn was given up that was the first at its enter");
        serve(own);
      } else if (end == TurnsEnd::stopped && Turns::give_up(core, claim(own)))
        given_up.push_back(own);  // its words are the queue's
      else
        await_others(own);
    }
    void await_others(Number own) {
      const Status status =
          core.wait_until(state(own), [](std::uint64_t v) { return v == Hand::done_value; });
      if (!status.ok()) run.fail(status.message());
      std::uint64_t seen = 0;
      core.refresh(result(own), sizeof seen);
      (void)core.read(result(own), &seen, sizeof seen).ok();
      if (seen != own)
        run.fail(fmt::format("lost or stale data: after the sync of family {} its creator sees {}",
                             own, seen));
      core.store(link(own), gone);  // the turn may lie in a frame that the creator leaves now
    }
    void serve(Number first) {
      for (Number turn = first; turn != 0;) {
        run_one(turn);
        const Number done = turn;
        if (order == TurnsOrder::told_before_left) tell(done, first);
        turn = leave(turn);
        if (turn == gone) return run.fail("turns: a turn was left after its creator had gone on");
        if (order == TurnsOrder::left_before_told) tell(done, first);
      }
    }
    void run_one(Number turn) {
      std::uint64_t value = 0;
      core.refresh(count(), sizeof value);
      (void)core.read(count(), &value, sizeof value).ok();
      ran.emplace_back(turn, ++value);
      (void)core.write(count(), &value, sizeof value).ok();
      core.publish(count(), sizeof value);
      (void)core.write(result(turn), &turn, sizeof turn).ok();
      core.publish(result(turn), sizeof turn);
    }
    Number leave(Number turn) {
      return Turns::leave(
          core, last(), turn, [this](Number of) { return link(of); },
          [this](Number of) { return claim(of); },
          [this](Word word) {  // of any home (R6)
            while (core.load(word) == 0) (void)core.pause(1).ok();
          },
          [](Number) {});
    }
    void tell(Number turn, Number own) {
      if (turn == own) return;
      Hand::finish(core, state(turn));
      core.notify(creator(turn));
    }
  };

  machine::Home cores_;
  unsigned rounds_;
  TurnsOrder order_;
  TurnsEnd end_;
  std::vector<Pairs> ran_;
  std::vector<Pairs> before_;
  std::vector<std::vector<Number>> given_up_;
};

}  // namespace tombolo::litmus
