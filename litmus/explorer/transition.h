// SPDX-License-Identifier: Apache-2.0
// Purpose: one choice of an exploration, and how it is written: a counterexample is a list of them.
//
//   0      core 0 does its next operation
//   0v3    the same, and it sees the line as it was three changes ago
//   s0     the oldest store of core 0 leaves its store buffer
//   w0.12  core 0's write-through to unit 12 reaches memory
//   e0.1   core 0 evicts its dirty line 1: written back whole
//
// Lines and units (8 bytes) are counted through the data of all homes.
// Thread safety: plain values.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace tombolo::litmus {

struct Transition {
  enum class Kind : std::uint8_t { step, step_with_age, leave_buffer, settle, evict };
  Kind kind = Kind::step;
  std::uint8_t core = 0;
  std::uint32_t index = 0;  // the age, unit or line

  bool is_step() const { return kind == Kind::step || kind == Kind::step_with_age; }
  friend bool operator==(const Transition&, const Transition&) = default;
};

std::string to_text(const Transition& transition);
std::string to_text(const std::vector<Transition>& path);

// False if to_text does not write such text; separators are blanks or commas.
bool from_text(std::string_view text, std::vector<Transition>& path);

}  // namespace tombolo::litmus
