// SPDX-License-Identifier: Apache-2.0
// Purpose: a thread of a family that waits for an event which any thread may bring about: a value
// in a channel. Its stack is parked, and its worker goes on with other work.
//
// Invariants: VBL1 the thread that brings the event about delivers exactly once; the object lives
//                 until its worker has received that.
// Thread safety: deliver() by any thread; the rest by the worker.
#pragma once

#include "svp/scheduler/strand.h"

namespace tombolo::svp {

struct Blocked {
  Worker* worker = nullptr;  // null: a thread that is no worker
  Strand* strand = nullptr;
  Blocked* next = nullptr;  // in a worker's inbox or a channel's list
  bool delivered = false;
  bool parked = false;

  // The event has come.
  void deliver();
};

}  // namespace tombolo::svp
