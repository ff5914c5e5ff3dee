// SPDX-License-Identifier: Apache-2.0
// Purpose: the guarantees of a lock, as a judge: each home has a number in memory which exclusive
// sections count up and others read. Two cores inside that exclude each other, and a number that is
// older than the last completed section, are failures.
//
// Invariants: GP1 of explorer/program.h: the cores inside and the number of completed sections
//             follow from how far each core has come.
// Thread safety: as Program.
#pragma once

#include <fmt/format.h>

#include <string>
#include <vector>

#include "litmus/explorer/run.h"
#include "machine/contract.h"

namespace tombolo::litmus {

// How the number is written. Both must do: by cache and publish, or past the cache and drain.
enum class Writing : std::uint8_t { cached, through };

class Judge {
 public:
  explicit Judge(machine::Home homes) : homes_(homes) {}

  void begin() {
    readers_.assign(homes_, 0);
    writers_.assign(homes_, 0);
    completed_.assign(homes_, 0);
  }

  // Around the body's work inside. `from` to `to` (not included) are the homes it covers; `inner`
  // is done before a writer writes.
  template <class C, class Body>
  void reads(C& core, Run& run, machine::Home from, machine::Home to, Body&& unlock) {
    for (machine::Home home = from; home < to; ++home) {
      if (writers_[home] != 0)
        run.fail(
            fmt::format("exclusion: core {} reads home {} while "
                        "another writes it",
                        core.self(), home));
      ++readers_[home];
    }
    for (machine::Home home = from; home < to; ++home) expect(run, home, number(core, home));
    for (machine::Home home = from; home < to; ++home) --readers_[home];
    unlock();
  }

  template <class C, class Body, class Inner>
  void writes(C& core, Run& run, machine::Home home, Writing writing, Body&& unlock,
              Inner&& inner) {
    if (writers_[home] + readers_[home] != 0)
      run.fail(fmt::format("exclusion: core {} writes home {} while another is inside", core.self(),
                           home));
    ++writers_[home];
    const std::uint64_t seen = number(core, home);
    expect(run, home, seen);
    inner();
    set_number(core, home, seen + 1, writing);
    --writers_[home];
    ++completed_[home];
    unlock();
  }

  std::string outcome() const {
    std::string text = "sections completed:";
    for (const std::uint64_t count : completed_) text += fmt::format(" {}", count);
    return text;
  }

 private:
  template <class C>
  static std::uint64_t number(C& core, machine::Home home) {
    std::uint64_t v = 0;
    core.refresh({home, 0}, sizeof v);
    (void)core.read({home, 0}, &v, sizeof v).ok();
    return v;
  }
  template <class C>
  static void set_number(C& core, machine::Home home, std::uint64_t v, Writing writing) {
    if (writing == Writing::cached) {
      (void)core.write({home, 0}, &v, sizeof v).ok();
      core.publish({home, 0}, sizeof v);
    } else {
      (void)core.write_through({home, 0}, &v, sizeof v).ok();
      core.drain();
    }
  }
  void expect(Run& run, machine::Home home, std::uint64_t seen) const {
    if (seen != completed_[home])
      run.fail(fmt::format("lost or stale data: {} at home {} after {} sections", seen, home,
                           completed_[home]));
  }

  machine::Home homes_;
  std::vector<std::uint32_t> readers_;
  std::vector<std::uint32_t> writers_;
  std::vector<std::uint64_t> completed_;
};

}  // namespace tombolo::litmus
