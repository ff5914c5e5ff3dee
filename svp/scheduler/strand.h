// SPDX-License-Identifier: Apache-2.0
// Purpose: a stack of a worker, with the state that belongs to it while it is parked.
// Thread safety: its worker's thread.
#pragma once

#include <cstddef>

#include "host/fibres/fibre.h"
#include "svp/scheduler/open_range.h"
#include "svp/scheduler/scope.h"
#include "svp/scheduler/task.h"

namespace tombolo::svp {

struct Strand {
  // That of the worker's thread itself.
  explicit Strand(Worker& owner) : worker(owner) {}
  // Throws std::bad_alloc.
  Strand(Worker& owner, std::size_t stack_bytes, unsigned of_worker)
      : worker(owner), number(of_worker), fibre(stack_bytes, &Strand::begin, this) {}

  static void begin(void* self);

  Worker& worker;
  unsigned number = 0;  // among the worker's stacks
  host::Fibre fibre;
  Scope* scope = nullptr;
  OpenRange* ranges = nullptr;  // that it runs threads of
  const Task* awaited = nullptr;
  bool dropped = false;            // about to be freed
  void* program_thread = nullptr;  // of an interface for other languages
};

}  // namespace tombolo::svp
