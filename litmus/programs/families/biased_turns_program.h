// SPDX-License-Identifier: Apache-2.0
// Purpose: the guarantees of turns_program.h where the place is biased to core 0 at first
// (svp/places/biased_turns.h). Core 0 creates families there one after the other, and runs them by
// loads and stores as long as it finds the bias; each other core creates one family in the usual
// way. Families run one at a time, each with the memory of those before it.
//
// Invariants: GP1 of explorer/program.h: the lists of families that a core has run or given up, and
//                 the turn before each of its own, are its own.
// Thread safety: as Program.
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <vector>

#include "litmus/explorer/program.h"
#include "litmus/explorer/run.h"
#include "litmus/programs/families/exclusive_family.h"
#include "svp/places/biased_turns.h"
#include "svp/scheduler/handover.h"

namespace tombolo::litmus {

enum class BiasedEnd : std::uint8_t {
  run_by_its_core,
  run_by_another,  // the last core runs the first family of core 0, and creates none
  stopped,         // a family that is not the first in the queue is given up
};

template <class C, class Turns = svp::BiasedTurns<C>>
class BiasedTurnsProgram final : public Program {
 public:
  using Hand = svp::Handover<C>;
  using Number = typename Turns::Number;
  using Word = typename C::Word;

  BiasedTurnsProgram(machine::Home cores, unsigned rounds, BiasedEnd end)
      : cores_(cores), rounds_(rounds), end_(end) {}

  MemoryShape shape() const override {
    machine::SyncLayout layout(C::reserved_sync_bytes(cores_));
    (void)take(layout);
    return {.cores = cores_, .sync_bytes = layout.bytes(), .data_bytes = 3 * line_bytes};
  }
  void begin() override {
    ran_.assign(cores_, {});
    before_.assign(cores_, {});
    given_up_.assign(cores_, {});
    late_.clear();
  }
  void run(const machine::Attachment& at, Run& run) override {
    C core(at);
    machine::SyncLayout layout(C::reserved_sync_bytes(cores_));
    Body body{core, take(layout), run, end_, ran_[at.self], before_[at.self], given_up_[at.self],
              late_};
    if (at.self == 0)
      body.be_biased(rounds_);
    else if (end_ == BiasedEnd::run_by_another && at.self + 1 == cores_)
      body.run_for_biased();
    else
      body.create_and_sync(body.number(0));
  }
  std::string outcome(const Memory& memory, Run& run) override {
    machine::SyncLayout layout(C::reserved_sync_bytes(cores_));
    const Number inside = memory.load(memory.word_index({0, take(layout).inside}));
    if (Turns::is_in(inside))
      run.fail(fmt::format("turns: family {} is still in the place", inside - 1));
    std::map<Number, std::uint64_t> positions;
    std::map<std::uint64_t, Number> by_position;
    for (const auto& all : ran_) positions.insert(all.begin(), all.end());
    for (const auto& [turn, position] : positions)
      if (const auto [at, is_new] = by_position.emplace(position, turn); !is_new)
        run.fail(fmt::format("lost or stale data: families {} and {} both ran as number {}", turn,
                             at->second, position));
    std::size_t given_up = 0;
    for (const auto& all : given_up_) given_up += all.size();
    const std::size_t creators = cores_ - (end_ == BiasedEnd::run_by_another ? 1u : 0u);
    if (positions.size() + given_up != rounds_ + creators - 1)
      run.fail(
          fmt::format("turns: {} families ran, and {} were given up", positions.size(), given_up));
    for (const auto& all : before_)
      for (const auto& [turn, last] : all)
        if (positions.contains(turn) && positions.contains(last) && !is_late(last) &&
            positions[turn] <= positions[last])
          run.fail(fmt::format("turns: family {} ran as number {}, the one before it as {}", turn,
                               positions[turn], positions[last]));
    return given_up == 0 ? "each family in its turn" : "each family in its turn, or given up";
  }

 private:
  static constexpr Number bias = 3;
  static constexpr Number left = ~Number{0};
  using Pairs = std::vector<std::pair<Number, std::uint64_t>>;
  struct Places {
    machine::Offset last;
    machine::Offset inside;
    machine::Offset meeting;
    machine::Offset link;
    machine::Offset claim;
    machine::Offset state;
    machine::Offset offered;
  };
  static Places take(machine::SyncLayout& layout) {
    return {.last = layout.take_lines(1),
            .inside = layout.take_lines(1),
            .meeting = layout.take_lines(1),
            .link = layout.take_lines(1),
            .claim = layout.take_lines(1),
            .state = layout.take_lines(1),
            .offered = layout.take_lines(1)};
  }

  bool is_late(Number turn) const {
    return std::find(late_.begin(), late_.end(), turn) != late_.end();
  }

  struct Body {
    C& core;
    Places places;
    Run& run;
    BiasedEnd end;
    Pairs& ran;     // families, and the numbers as which they ran
    Pairs& before;  // own families that have entered a queue, and those before them
    std::vector<Number>& given_up;
    std::vector<Number>& late;  // of core 0: the bias was taken away while they entered
    bool was_offered = false;

    Number number(unsigned round) const {
      return 2 * (1 + core.self() + Number{round} * core.cores());
    }
    machine::Home creator(Number turn) const {
      return static_cast<machine::Home>((turn / 2 - 1) % core.cores());
    }
    Word last() { return core.word({0, places.last}); }
    typename Turns::Bias words() {
      return {core.word({0, places.inside}), core.word({0, places.meeting})};
    }
    // Two families of a creator may be there at a time.
    machine::Offset slot(Number turn) const { return (turn / 2 - 1) / core.cores() % 2; }
    machine::SyncPlace of(Number turn, machine::Offset words) const {
      return {creator(turn), words + slot(turn) * sizeof(std::uint64_t)};
    }
    Word link(Number turn) { return core.word(of(turn, places.link)); }
    Word claim(Number turn) { return core.word(of(turn, places.claim)); }
    Word state(Number turn) { return core.word(of(turn, places.state)); }
    Word offered() {
      return core.word({static_cast<machine::Home>(core.cores() - 1), places.offered});
    }
    // The place of a number that the families change, and of a number for a creator.
    machine::DataPlace count() { return {0, 0}; }
    machine::DataPlace result(Number turn) {
      return {creator(turn), (1 + slot(turn)) * line_bytes};
    }

    // Calls a function of Turns with the parts of a queue.
    template <class Call>
    auto with_queue(Call&& call) {
      const auto link_of = [this](Number turn) { return link(turn); };
      const auto claim_of = [this](Number turn) { return claim(turn); };
      const auto await = [this](Word word) {  // of any home (R6)
        while (core.load(word) == 0) (void)core.pause(1).ok();
      };
      const auto drop = [](Number) {};
      return call(link_of, claim_of, await, drop);
    }

    // ---- Core 0 ---------------------------------------------------------------------------------

    void be_biased(unsigned rounds) {
      // As a worker that leaves the last turn of its row.
      core.compare_exchange(last(), 0, bias);
      for (unsigned round = 0; round < rounds; ++round) {
        const Number own = number(round);
        core.store(link(own), 0);
        core.store(claim(own), 0);
        core.store(state(own), Hand::untaken);
        if (!enter_by_bias(own)) {
          create_and_sync(own);
        } else if (end == BiasedEnd::run_by_another && round == 0) {
          offer(own);
        } else {
          run_one(own);
          serve(with_queue([&](auto&... parts) {
            return Turns::leave_by_bias(core, last(), words(), own, parts...);
          }));
        }
      }
      if (was_offered) await_others(number(0));
      if (end == BiasedEnd::run_by_another && !was_offered) offer(left);
    }
    void offer(Number turn) {
      was_offered = turn != left;
      core.store(offered(), turn);
      core.notify(core.cores() - 1u);
    }
    bool enter_by_bias(Number own) {
      const Number seen = core.load(last());
      if (seen != bias) return false;
      Number next = 0;
      const bool entered = with_queue([&](auto&... parts) {
        return Turns::enter_by_bias(core, last(), words(), seen, own, next, parts...);
      });
      if (!entered) late.push_back(own);
      serve(next);
      return entered;
    }

    // ---- The core that runs a family of core 0 --------------------------------------------------

    void run_for_biased() {
      const Status status = core.wait_until(offered(), [](std::uint64_t v) { return v != 0; });
      if (!status.ok()) run.fail(status.message());
      const Number turn = core.load(offered());
      if (turn == left) return;
      run_one(turn);
      const Number next = with_queue([&](auto&... parts) {
        return Turns::leave_by_bias(core, last(), words(), turn, parts...);
      });
      tell(turn);
      serve(next);
    }

    // ---- All ------------------------------------------------------------------------------------

    void create_and_sync(Number own) {
      const Number first = with_queue([&](auto& link_of, auto& claim_of, auto&...) {
        return Turns::enter(
            core, last(), own, [this](Number) { return words(); }, link_of, claim_of);
      });
      if (first == 0) {
        // Some core has its task from now on, whatever its creator does.
        if (end == BiasedEnd::stopped && Turns::give_up(core, claim(own)))
          run.fail("turns: a turn was given up that was the first at its enter");
        return serve(own);
      }
      before.emplace_back(own, first);
      if (end == BiasedEnd::stopped && Turns::give_up(core, claim(own)))
        given_up.push_back(own);  // its words are the queue's
      else
        await_others(own);
    }
    void await_others(Number own) {
      sync_family(core, run, own, state(own), result(own));
      core.store(link(own), left);  // the turn may lie in a frame that the creator leaves now
    }
    void serve(Number first) {
      for (Number turn = first; turn != 0;) {
        run_one(turn);
        const Number done = turn;
        turn =
            with_queue([&](auto&... parts) { return Turns::leave(core, last(), done, parts...); });
        if (turn == left) return run.fail("turns: a turn was left after its creator had gone on");
        tell(done);
      }
    }
    void run_one(Number turn) { run_family(core, turn, count(), result(turn), ran); }
    void tell(Number turn) {
      if (creator(turn) == core.self()) return;
      Hand::finish(core, state(turn));
      core.notify(creator(turn));
    }
  };

  machine::Home cores_;
  unsigned rounds_;
  BiasedEnd end_;
  std::vector<Pairs> ran_;
  std::vector<Pairs> before_;
  std::vector<std::vector<Number>> given_up_;
  std::vector<Number> late_;
};

}  // namespace tombolo::litmus
