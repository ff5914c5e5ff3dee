// SPDX-License-Identifier: Apache-2.0
// Purpose: the vocabulary of a litmus test: some words and data by number, registers for the values
// seen, and nothing that depends on the machine.
//
// Words are x, y, z and w: each on a line of its own, x and z at home 0, y and w at home 1. Data
// are 8-byte numbers at home 0, named by line and place in the line: a0 and a1 share a line, b0 is
// on the next.
//
// Invariants: BO1 everything is 0 at the start.
// Thread safety: a Board belongs to one core; Registers may be used by all.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>

#include "base/check.h"
#include "machine/contract.h"

namespace tombolo::litmus {

enum Variable : std::uint8_t { x, y, z, w };
struct Datum {
  std::uint8_t line;
  std::uint8_t number;  // within the line
};
inline constexpr Datum a0{0, 0};
inline constexpr Datum a1{0, 1};
inline constexpr Datum b0{1, 0};

using Values = std::array<std::uint64_t, 4>;

// The values that the cores saw; relaxed: they are looked at after all cores have ended.
class Registers {
 public:
  void clear() {
    for (auto& value : values_) value.store(0, std::memory_order_relaxed);
  }
  void set(unsigned i, std::uint64_t v) { values_[i].store(v, std::memory_order_relaxed); }
  Values values() const {
    Values values{};
    for (unsigned i = 0; i < values.size(); ++i)
      values[i] = values_[i].load(std::memory_order_relaxed);
    return values;
  }

 private:
  std::array<std::atomic<std::uint64_t>, 4> values_{};
};

// Called before each operation: lets other cores in between on machines whose cores are not
// steered.
class Jitter {
 public:
  virtual ~Jitter() = default;
  virtual void between() = 0;
};

// Room for words and data that parts of the system have by themselves is behind the variables.
struct BoardLayout {
  machine::Offset words = 0;
  machine::Offset room = 0;
  static BoardLayout take(machine::SyncLayout& layout) {
    return {.words = layout.take_lines(16), .room = layout.take_lines(16)};
  }
};
inline constexpr std::size_t board_data_room = 128;
inline constexpr std::size_t board_data_bytes = 192;

template <machine::Core C>
class Board {
 public:
  using Core = C;
  static constexpr machine::Offset data_room = board_data_room;

  Board(C& core, BoardLayout layout, Registers& registers, Jitter* jitter)
      : core_(core), layout_(layout), registers_(registers), jitter_(jitter) {}

  machine::Home self() const { return core_.self(); }
  void saw(unsigned i, std::uint64_t v) { registers_.set(i, v); }

  std::uint64_t load(Variable v) { return between().load(word(v)); }
  void store(Variable v, std::uint64_t value) { between().store(word(v), value); }
  // A store that another core awaits.
  void signal(Variable v, std::uint64_t value) {
    store(v, value);
    core_.notify(v % 2);
  }
  std::uint64_t fetch_add(Variable v, std::uint64_t value) {
    return between().fetch_add(word(v), value);
  }
  void fence() { between().fence(); }
  // By the home of `v` only (R6).
  void await(Variable v, std::uint64_t value) {
    const Status status =
        between().wait_until(word(v), [value](std::uint64_t seen) { return seen == value; });
    TOMBOLO_CHECK(status.ok(), "litmus: a wait ended with: {}", status.message());
  }

  std::uint64_t read(Datum d) {
    std::uint64_t value = 0;
    const Status status = between().read(place(d), &value, sizeof value);
    TOMBOLO_CHECK(status.ok(), "litmus: {}", status.message());
    return value;
  }
  void write(Datum d, std::uint64_t v) {
    const Status status = between().write(place(d), &v, sizeof v);
    TOMBOLO_CHECK(status.ok(), "litmus: {}", status.message());
  }
  void write_through(Datum d, std::uint64_t v) {
    const Status status = between().write_through(place(d), &v, sizeof v);
    TOMBOLO_CHECK(status.ok(), "litmus: {}", status.message());
  }
  void publish(Datum d) { between().publish(place(d), sizeof(std::uint64_t)); }
  void refresh(Datum d) { between().refresh(place(d), sizeof(std::uint64_t)); }
  void drain() { between().drain(); }

  // For such parts: other cores may come in between where between() is called.
  C& core() { return core_; }
  typename C::Word word(Variable v) {
    return core_.word({v % 2u, layout_.words + v / 2u * line_bytes});
  }
  machine::Offset room() const { return layout_.room; }
  // Looks for an event that need not come: few where all schedules are explored.
  unsigned looks() const { return jitter_ == nullptr ? 3 : 64; }
  C& between() {
    if (jitter_ != nullptr) jitter_->between();
    return core_;
  }

 private:
  static constexpr std::size_t line_bytes = 64;
  static machine::DataPlace place(Datum d) { return {0, d.line * line_bytes + d.number * 8u}; }

  C& core_;
  BoardLayout layout_;
  Registers& registers_;
  Jitter* jitter_;
};

}  // namespace tombolo::litmus
