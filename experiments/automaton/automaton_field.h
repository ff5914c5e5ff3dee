// SPDX-License-Identifier: Apache-2.0
// Purpose: the cellular automaton of 000 section 4.4.5: a torus of lines of cells of one byte,
// nine-point stencil, lines divided among processes; and one process's part of a time step, by
// any exchange of the boundary lines.
//
// A process's region of data has two arrays, of the state before and after a step: a ghost line,
// its own lines, a ghost line. A line is as long as a message: the cells, and at each end a copy of
// the cell at the other, which the program refreshes in the lines that it is about to read.
//
// Time: each line of the cache is read for each of the three rows that need it, each cell is stored
// by a byte. A store that hits no cache goes to memory by itself, and the next has to wait for it:
// with 204 ns for a cell (401.05 s for 100 steps) the time consists of that; arithmetic runs
// meanwhile.
//
// The stack, the program's variables, those of the library and the kernel's are used once for each
// line of cells, which throws them out of the first level in between. It matters for the lines that
// stay in the second: pseudo-LRU does not replace the neighbour way of a line that is hit all the
// time, so that a ghost line which lies there is never fetched again (002 section 2.3.4 met the
// same in flushes). Where their pages lie is chance, as under an operating system with pages of 4
// KB (002 section 4.7).
//
// Invariants: AF1 cells are computed from values of the core's own loads: a stale line makes wrong
//                 cells.
// Thread safety: values; a stepper belongs to its process's program.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "backends/scc/scc.h"
#include "experiments/common/experiment.h"

namespace tombolo::experiments {

struct AutomatonField {
  std::uint32_t processes = 1;
  std::uint32_t lines = 2400;
  std::uint32_t bytes_in_line = 8192;  // two of them are no cells of their own
  std::uint64_t seed = 1;

  std::uint32_t cells_in_line() const { return bytes_in_line - 2; }
  // Lines that are left over go to the first processes.
  std::uint32_t lines_of(machine::Home process) const;
  std::uint32_t first_line_of(machine::Home process) const;
  // Line 0 and the last but for them are ghosts.
  std::uint64_t place(int array, std::uint32_t line) const;
  std::uint64_t bytes_of_process() const { return place(2, 0); }
  machine::Home above(machine::Home process) const { return (process + processes - 1) % processes; }
  machine::Home below(machine::Home process) const { return (process + 1) % processes; }
};

using AutomatonLines = std::vector<std::vector<std::uint8_t>>;

// The state after some steps by one process on the host, all lines from the first.
AutomatonLines automaton_serial(const AutomatonField& field, int steps);

// Brings boundary lines to the neighbours' ghost lines.
class AutomatonExchange {
 public:
  virtual ~AutomatonExchange() = default;
  // Before the boundary lines of `array` are computed, when they are, and before the next step.
  virtual void open(int array) = 0;
  virtual void send(int array) = 0;
  virtual void close(int array) = 0;
};

class AutomatonStepper {
 public:
  AutomatonStepper(scc::detail::Base& core, const AutomatonField& field);
  void forget_times() { computation_ = exchange_ = {}; }

  // The first state, without time, ghost lines excluded. Array 0 has it.
  void initialize();
  // From now on, which part of so many steps is done.
  void tell(Progress& progress, int steps);
  // From array `from` to the other.
  void step(int from, AutomatonExchange& exchange);

  simulator::Duration computation() const { return computation_; }
  simulator::Duration exchange() const { return exchange_; }
  // How many cells of array `array` are wrong, as this core sees them.
  std::uint64_t wrong_cells(int array, const AutomatonLines& expected);

 private:
  void simulate(int from, std::uint32_t first, std::uint32_t lines);
  void refresh_ends(int array, std::uint32_t line);
  void next_line(int from, std::uint32_t line);
  void use_variables();
  void load_part(int from, std::uint32_t line, std::uint32_t part);
  template <class Body>
  void timed(simulator::Duration& part, Body&& body) {
    const simulator::Time begin = core_.cpu().now();
    body();
    part = part + (core_.cpu().now() - begin);
  }
  void read(int array, std::uint32_t line, std::uint32_t at, void* to, std::size_t bytes);
  void write(int array, std::uint32_t line, std::uint32_t at, const void* from, std::size_t bytes);

  scc::detail::Base& core_;
  AutomatonField field_;
  std::uint32_t lines_;
  std::array<std::byte*, 4> variables_;            // by page
  std::array<std::vector<std::uint8_t>, 3> rows_;  // above, the line, below
  simulator::Duration computation_;
  simulator::Duration exchange_;
  Progress* progress_ = nullptr;
  double lines_in_all_steps_ = 0;
  double lines_done_ = 0;
};

}  // namespace tombolo::experiments
