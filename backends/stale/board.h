// SPDX-License-Identifier: Apache-2.0
// Purpose: the losses that all cores have seen, each fact once: in memory that they share, so that
// a process which ends early can tell the others' findings.
//
// A fact is the kind of loss and the two places of the program that it comes from
// (machine::LossFact). It has one entry, whatever cores and lines it happens to.
//
// Invariants: LB1 an entry is free (all zero), being filled, or filled for good: its numbers grow,
//                 nothing else changes but the range, by the core that filled it.
//             LB2 a fact that finds no room is not told; Board::entries is more than people read.
//             LB3 a core that dies while it fills an entry costs that entry, and none waits for it.
//             LB4 a fact is told by one core, or by another that has waited for it for long: a core
//                 that finds it being told waits, since launchers end a job with its first process.
// Thread safety: the shared side yes; add() of one core by one thread at a time.
#pragma once

#include <array>
#include <chrono>
#include <cstdint>
#include <memory>
#include <vector>

#include "machine/losses.h"

namespace tombolo::stale {

class Board {
 public:
  static constexpr std::size_t entries = 128;
  static std::size_t bytes() { return entries * sizeof(Entry); }

  // On `shared`: bytes() of zeros before the first core starts; null: memory of its own.
  explicit Board(std::byte* shared);

  // One more loss, of one line. Calls with the same `operation` are one time.
  void add(const machine::LossFact& line, std::uint64_t operation);
  // The facts that no core has told yet, the most bytes first. Waits up to `patience` for those
  // that another core is about to tell.
  std::vector<machine::LossFact> take(std::chrono::milliseconds patience);
  // There is a fact that is a mistake, told or not.
  bool has_mistakes() const;
  // The facts that this core took are told.
  void told();

 private:
  struct Entry {
    std::uint64_t state;
    std::uint64_t culprit;  // site, and the loss in the upper 16 bits
    std::uint64_t victim;   // site
    std::uint64_t ranks;    // of the culprit and of the victim
    std::uint64_t home;
    std::uint64_t begin;
    std::uint64_t end;
    std::uint64_t bytes;
    std::uint64_t times;
    std::uint64_t evicted;
    std::uint64_t telling;  // 0, being_told, told_already
  };
  static constexpr std::uint64_t filling = 1;
  static constexpr std::uint64_t filled = 2;

  // A core's own notes on an entry.
  struct Own {
    std::uint64_t operation = ~std::uint64_t{0};         // the last one that lost bytes
    machine::Home filled_for = machine::Writer::nobody;  // home of the range, if it is ours
    bool taken = false;
  };

  // The entry of the fact, made if there is none; `entries` if there is no room.
  std::size_t find(const machine::LossFact& line);
  bool claim(std::size_t i, const machine::LossFact& line);
  bool holds(const Entry& entry, const machine::LossFact& line) const;
  machine::LossFact read(Entry& entry) const;
  // True if the entry's fact is for this core to tell.
  bool take(std::size_t i, std::chrono::steady_clock::time_point until);

  std::unique_ptr<Entry[]> own_memory_;
  Entry* at_;
  std::array<Own, entries> own_{};
};

}  // namespace tombolo::stale
