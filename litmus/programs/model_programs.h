// SPDX-License-Identifier: Apache-2.0
// Purpose: the programs of docs/model/threads.md: each has one order of its steps, and asks of each
// load whether it may show an old value. The rules of the models answer (dsm/testing/models.h), and
// the protocols on the explored machine: the regional one by all of its executions, the
// sequential one by random walks.
//
// Invariants: MPG1 a step begins when the one before has ended, also in another thread. So the
//                  answer is the model's alone, and old values come from caches, not from races.
//             MPG2 each thread that loads a variable has loaded it once before the first step: an
//                  old copy is there to be seen.
// Thread safety: the list is constant.
#pragma once

#include <string>
#include <vector>

#include "dsm/testing/models.h"

namespace tombolo::litmus {

struct ModelStep {
  enum class Kind : std::uint8_t { load, store, acquire, release, barrier, reduce };
  Kind kind = Kind::barrier;  // barrier and reduce: by all threads
  dsm::Thread thread = 0;
  std::uint64_t variable = 0;  // or the lock
  char into = ' ';             // the name of a load
};

struct ModelProgram {
  std::string name;
  std::string about;
  dsm::Thread threads = 2;
  std::vector<ModelStep> steps;
};

const std::vector<ModelProgram>& model_programs();

// Of each load, in the order of steps: whether it may show, or shows, an old value.
using OldValues = std::vector<bool>;
OldValues allowed_by(dsm::testing::Model model, const ModelProgram& program);
OldValues shown_by_regional(const ModelProgram& program);
OldValues shown_by_sequential(const ModelProgram& program);

// The steps, a line for each thread.
std::string timeline(const ModelProgram& program);
// For the page: all timelines, and a table of all answers, a row for each load.
std::string all_timelines();
std::string verdict_table();
// The outcomes of two stores without synchronization to one variable, by all executions.
std::string racing_outcomes();

}  // namespace tombolo::litmus
