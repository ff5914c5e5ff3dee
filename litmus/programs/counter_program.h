// SPDX-License-Identifier: Apache-2.0
// Purpose: the guarantees of atomics, for those that are built from less: each of several cores
// draws numbers from one word by fetch_add, and takes turns at another by compare_exchange against
// a plain store.
// Thread safety: as Program.
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "litmus/explorer/program.h"
#include "litmus/explorer/run.h"

namespace tombolo::litmus {

template <class C>
class CounterProgram final : public Program {
 public:
  CounterProgram(machine::Home cores, unsigned draws, bool with_flag)
      : cores_(cores), draws_(draws), with_flag_(with_flag) {}

  MemoryShape shape() const override {
    machine::SyncLayout layout(C::reserved_sync_bytes(cores_));
    layout.take_lines(1);
    layout.take_lines(1);
    return {.cores = cores_, .sync_bytes = layout.bytes(), .data_bytes = line_bytes};
  }
  void begin() override { drawn_.assign(cores_, {}); }
  void run(const machine::Attachment& at, Run& run) override {
    C core(at);
    machine::SyncLayout layout(C::reserved_sync_bytes(cores_));
    const auto counter = core.word({0, layout.take_lines(1)});
    const auto flag = core.word({0, layout.take_lines(1)});
    for (unsigned i = 0; i < draws_; ++i) drawn_[at.self].push_back(core.fetch_add(counter, 1));
    if (!with_flag_) return;
    // Core 0 stores, the others take it away: no core may take a value that is not there any more.
    if (at.self == 0)
      core.store(flag, 1);
    else if (core.compare_exchange(flag, 1, 2) == 1 && core.load(flag) == 1)
      run.fail("atomicity: a store was done twice, or a compare_exchange not at all");
  }
  std::string outcome(const Memory&, Run& run) override {
    std::vector<std::uint64_t> all;
    for (const auto& numbers : drawn_) all.insert(all.end(), numbers.begin(), numbers.end());
    std::sort(all.begin(), all.end());
    for (std::uint64_t i = 0; i < all.size(); ++i)
      if (all[i] != i) run.fail(fmt::format("atomicity: number {} was drawn by two, or lost", i));
    return "each number drawn once";
  }

 private:
  machine::Home cores_;
  unsigned draws_;
  bool with_flag_;
  std::vector<std::vector<std::uint64_t>> drawn_;
};

}  // namespace tombolo::litmus
