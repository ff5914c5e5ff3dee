// SPDX-License-Identifier: Apache-2.0
// Purpose: the guarantee of svp/scheduler/inbox.h: a core gets each item that others hand to it
// once, those of one core in their order, and sleeps while there is none. Core 0 takes, each other
// core puts some.
//
// Invariants: GP1 of explorer/program.h: the items that core 0 has are its own.
// Thread safety: as Program.
#pragma once

#include <fmt/format.h>

#include <vector>

#include "litmus/explorer/program.h"
#include "litmus/explorer/run.h"
#include "svp/scheduler/inbox.h"

namespace tombolo::litmus {

template <class C>
class InboxProgram final : public Program {
 public:
  using Mail = svp::Inbox<C>;
  using Number = typename Mail::Number;
  using Word = typename C::Word;

  // `items`: by each core, at most 8.
  InboxProgram(machine::Home cores, unsigned items) : cores_(cores), items_(items) {}

  MemoryShape shape() const override {
    return {.cores = cores_, .sync_bytes = layout_end(), .data_bytes = line_bytes};
  }
  void begin() override {}
  void run(const machine::Attachment& at, Run& run) override {
    C core(at);
    if (at.self == 0) return take_all(core, run);
    for (unsigned i = 0; i < items_; ++i) {
      const Number item = number_of(at.self, i);
      Mail::put(core, word(core, 0, places().inbox), item, link_of(core, item));
      core.fetch_add(word(core, 0, places().signal), 1);
      core.notify(0);
    }
  }
  std::string outcome(const Memory&, Run&) override { return "each item once"; }

 private:
  struct Places {
    machine::Offset inbox;
    machine::Offset signal;
    machine::Offset links;
  };
  static Places take(machine::SyncLayout& layout) {
    return {.inbox = layout.take_lines(1),
            .signal = layout.take_lines(1),
            .links = layout.take_lines(1)};
  }
  Places places() const {
    machine::SyncLayout layout(C::reserved_sync_bytes(cores_));
    return take(layout);
  }
  std::size_t layout_end() const {
    machine::SyncLayout layout(C::reserved_sync_bytes(cores_));
    (void)take(layout);
    return layout.bytes();
  }
  static Word word(C& core, machine::Home home, machine::Offset at) {
    return core.word({home, at});
  }
  // The words of a core's items are at its home.
  static Number number_of(machine::Home by, unsigned i) { return Number{by} * 8 + i + 1; }
  Word link_of(C& core, Number item) const {
    return word(core, static_cast<machine::Home>((item - 1) / 8),
                places().links + (item - 1) % 8 * sizeof(std::uint64_t));
  }

  void take_all(C& core, Run& run) {
    std::vector<unsigned> had(cores_, 0);
    unsigned missing = (cores_ - 1u) * items_;
    const auto link = [&](Number item) { return link_of(core, item); };
    while (missing != 0) {
      const std::uint64_t seen = core.load(word(core, 0, places().signal));
      Number item = Mail::take(core, word(core, 0, places().inbox), link);
      if (item == 0) {
        const Status status = core.wait_until(word(core, 0, places().signal),
                                              [seen](std::uint64_t now) { return now != seen; });
        if (!status.ok()) run.fail(status.message());
      }
      for (; item != 0; item = core.load(link_of(core, item))) {
        const auto by = static_cast<machine::Home>((item - 1) / 8);
        if (missing == 0 || (item - 1) % 8 != had[by]++)
          return run.fail(
              fmt::format("inbox: item {} of core {} is out of its order", (item - 1) % 8, by));
        --missing;
      }
    }
  }

  machine::Home cores_;
  unsigned items_;
};

}  // namespace tombolo::litmus
