// SPDX-License-Identifier: Apache-2.0
// Purpose: the guarantee of sync/watched_word.h: a core that sleeps until a word has changed goes
// on when it has. The last core counts the word up twice, each of the others waits for the second
// time.
//
// Invariants: GP1 of explorer/program.h: the outcome is that of memory alone.
// Thread safety: as Program.
#pragma once

#include "litmus/explorer/program.h"
#include "litmus/explorer/run.h"
#include "sync/watched_word.h"

namespace tombolo::litmus {

template <class C, class Watched>
class WatchedProgram final : public Program {
 public:
  explicit WatchedProgram(machine::Home cores) : cores_(cores) {}

  MemoryShape shape() const override {
    machine::SyncLayout layout(C::reserved_sync_bytes(cores_));
    (void)take(layout);
    return {.cores = cores_, .sync_bytes = layout.bytes(), .data_bytes = line_bytes};
  }
  void begin() override {}
  void run(const machine::Attachment& at, Run& run) override {
    C core(at);
    machine::SyncLayout layout(C::reserved_sync_bytes(cores_));
    const Places places = take(layout);
    Watched word(core, core.word({0, places.word}), core.word({0, places.sleepers}));
    if (at.self + 1 == cores_)
      for (std::uint64_t i = 0; i < changes; ++i) word.fetch_add(1);
    else
      await_all(word, run);
  }
  std::string outcome(const Memory& memory, Run& run) override {
    machine::SyncLayout layout(C::reserved_sync_bytes(cores_));
    if (memory.load(memory.word_index({0, take(layout).sleepers})) != 0)
      run.fail("watched word: a sleeper is counted after all have ended");
    return "all changes are seen";
  }

 private:
  static constexpr std::uint64_t changes = 2;
  struct Places {
    machine::Offset word;
    machine::Offset sleepers;
  };
  static Places take(machine::SyncLayout& layout) {
    return {.word = layout.take_lines(1), .sleepers = layout.take_lines(1)};
  }
  void await_all(Watched& word, Run& run) {
    for (std::uint64_t seen = word.load(); seen != changes; seen = word.load())
      if (const Status status = word.sleep(seen); !status.ok()) run.fail(status.message());
  }

  machine::Home cores_;
};

}  // namespace tombolo::litmus
