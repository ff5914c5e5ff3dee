// SPDX-License-Identifier: Apache-2.0
// Purpose: the guarantees of create and sync (002 chapter 3) with the deque of svp/: each task runs
// once; it sees the memory that its creator had at the create, and the creator sees its changes
// after the sync. Core 0 creates tasks in rounds and syncs them, the others take some of them.
//
// Invariants: GP1 of explorer/program.h: the list of tasks that a core has run is its own.
// Thread safety: as Program.
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "litmus/explorer/program.h"
#include "litmus/explorer/run.h"
#include "svp/scheduler/handover.h"
#include "svp/scheduler/split_deque.h"

namespace tombolo::litmus {

template <class C, class Deque = svp::SplitDeque<C>>
class DequeProgram final : public Program {
 public:
  using Hand = svp::Handover<C>;
  // The tasks of each round; each core but the first tries to take one `tries` times.
  DequeProgram(machine::Home cores, std::vector<unsigned> rounds, unsigned tries)
      : cores_(cores), rounds_(std::move(rounds)), tries_(tries) {
    for (const unsigned tasks : rounds_) tasks_ += tasks;
  }

  MemoryShape shape() const override {
    machine::SyncLayout layout(C::reserved_sync_bytes(cores_));
    (void)take(layout);
    return {.cores = cores_,
            .sync_bytes = layout.bytes(),
            .data_bytes = (1 + 2 * std::size_t{tasks_}) * line_bytes};
  }
  void begin() override { ran_.assign(cores_, {}); }
  void run(const machine::Attachment& at, Run& run) override {
    C core(at);
    machine::SyncLayout layout(C::reserved_sync_bytes(cores_));
    const Places places = take(layout);
    Deque deque(core, places.deque);
    Body body{core, deque, places, run, ran_[at.self]};
    if (at.self == 0)
      body.create_and_sync(rounds_);
    else
      for (unsigned i = 0; i < tries_; ++i) body.take_one();
  }
  std::string outcome(const Memory&, Run& run) override {
    std::vector<std::uint64_t> all;
    for (const auto& tasks : ran_) all.insert(all.end(), tasks.begin(), tasks.end());
    std::sort(all.begin(), all.end());
    for (std::uint64_t task = 1; task <= tasks_; ++task)
      if (std::count(all.begin(), all.end(), task) != 1)
        run.fail(fmt::format("deque: task {} ran {} times", task,
                             std::count(all.begin(), all.end(), task)));
    return "each task ran once";
  }

 private:
  struct Places {
    typename Deque::Layout deque;
    machine::Offset states;
  };
  Places take(machine::SyncLayout& layout) const {
    const auto deque = Deque::take(layout, 0, 8);
    return {.deque = deque, .states = layout.take_lines(tasks_ + 1)};
  }

  // A task's number, from 1, is its entry.
  struct Body {
    C& core;
    Deque& deque;
    Places places;
    Run& run;
    std::vector<std::uint64_t>& ran;

    typename C::Word state(std::uint64_t task) {
      return core.word({0, places.states + task * sizeof(std::uint64_t)});
    }
    machine::DataPlace argument(std::uint64_t task) { return {0, (2 * task - 1) * line_bytes}; }
    machine::DataPlace result(std::uint64_t task) { return {0, 2 * task * line_bytes}; }

    void create_and_sync(const std::vector<unsigned>& rounds) {
      std::uint64_t next = 1;
      for (const unsigned tasks : rounds) {
        std::vector<typename Deque::Slot> slots;
        for (unsigned i = 0; i < tasks; ++i) slots.push_back(create(next + i));
        deque.share(1);
        for (unsigned i = tasks; i-- > 0;) sync(next + i, slots);
        next += tasks;
      }
    }
    typename Deque::Slot create(std::uint64_t task) {
      const std::uint64_t value = 10 + task;
      (void)core.write(argument(task), &value, sizeof value).ok();
      core.publish(argument(task), sizeof value);
      return deque.push(task);
    }
    void sync(std::uint64_t task, std::vector<typename Deque::Slot>& slots) {
      const auto slot = slots.back();
      slots.pop_back();
      typename Deque::Entry moved = 0;
      if (deque.claim_last(slot) || deque.claim(slot, moved)) {
        ran.push_back(task);
        return;
      }
      const Status status =
          core.wait_until(state(task), [](std::uint64_t v) { return v == Hand::done_value; });
      if (!status.ok()) run.fail(status.message());
      deque.forget(slot);
      std::uint64_t seen = 0;
      core.refresh(result(task), sizeof seen);
      (void)core.read(result(task), &seen, sizeof seen).ok();
      if (seen != 20 + task)
        run.fail(
            fmt::format("stale data: after the sync of task {} its creator sees {}", task, seen));
    }
    void take_one() {
      const std::uint64_t task = deque.steal(0);
      if (task == 0) return;
      Hand::begin(core, state(task));
      ran.push_back(task);
      std::uint64_t seen = 0;
      core.refresh(argument(task), sizeof seen);
      (void)core.read(argument(task), &seen, sizeof seen).ok();
      if (seen != 10 + task) run.fail(fmt::format("stale data: task {} sees {}", task, seen));
      const std::uint64_t value = 20 + task;
      (void)core.write(result(task), &value, sizeof value).ok();
      core.publish(result(task), sizeof value);
      Hand::finish(core, state(task));
      core.notify(0);
    }
  };

  machine::Home cores_;
  std::vector<unsigned> rounds_;
  unsigned tries_;
  unsigned tasks_ = 0;
  std::vector<std::vector<std::uint64_t>> ran_;
};

}  // namespace tombolo::litmus
