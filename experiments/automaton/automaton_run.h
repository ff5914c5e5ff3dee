// SPDX-License-Identifier: Apache-2.0
// Purpose: the part of each process of the cellular automaton in a run, by any transport of the
// boundary lines to their neighbours: the first exchange, steps to warm up, a barrier, steps that
// count, and a look at the cells.
// Thread safety: values; an outcome belongs to one thread.
#pragma once

#include <functional>
#include <vector>

#include "experiments/automaton/automaton_field.h"

namespace tombolo::experiments {

struct AutomatonPlan {
  scc::MemoryType own = scc::MemoryType::dcm;  // how the own windows are mapped
  scc::MemoryType peers = scc::MemoryType::mpbt_wt;
  // The papers' synchronization, and their coherence operations, whatever the memory types.
  bool as_prototype = true;
  bool serial = false;  // one process without windows
  int warm_up = 1;
  int steps = 2;  // after those

  int all_steps() const { return warm_up + steps; }
};

struct AutomatonOutcome {
  Progress* progress = nullptr;                  // of rank 0, if it is to be told
  simulator::Duration longest;                   // steps after the warm-up
  std::vector<simulator::Duration> computation;  // by process
  std::vector<simulator::Duration> exchange;
  std::vector<simulator::Duration> exchange_so_far;  // of rank 0, after each of those steps
  std::uint64_t wrong_cells = 0;
  // By receiver and sender, bytes of the data of messages; empty: there were none.
  std::vector<std::vector<std::uint64_t>> received;
};

// Before the processes start.
void begin_automaton(const AutomatonField& field, AutomatonOutcome& outcome);

// The part of one process.
void run_process(scc::detail::Base& core, const AutomatonField& field, const AutomatonPlan& plan,
                 AutomatonExchange& exchange, const std::function<void()>& barrier,
                 const AutomatonLines& expected, AutomatonOutcome& outcome);

}  // namespace tombolo::experiments
