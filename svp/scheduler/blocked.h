// SPDX-License-Identifier: Apache-2.0
// Purpose: a thread of a family that waits for an event which any thread may bring about: a value
// in a channel. Its stack is parked, and its worker goes on with other work.
//
// Invariants: VBL1 the thread that brings the event about delivers exactly once; the object lives
//                 until its worker has received that.
// Thread safety: deliver() by any thread; the rest by the worker.
#pragma once

#include <atomic>
#include <cstdint>

#include "svp/scheduler/strand.h"

namespace tombolo::svp {

struct Blocked {
  Worker* worker = nullptr;  // null: a thread that is no worker
  Strand* strand = nullptr;
  std::atomic<std::uint64_t> next{0};  // in a worker's inbox or a channel's list: a number
  bool delivered = false;
  bool parked = false;

  // Its number is its address; null is 0.
  static std::uint64_t number_of(const Blocked& blocked) {
    return reinterpret_cast<std::uintptr_t>(&blocked);
  }
  static Blocked* of(std::uint64_t number) { return reinterpret_cast<Blocked*>(number); }
  static std::atomic<std::uint64_t>* link_of(std::uint64_t number) { return &of(number)->next; }

  // The event has come.
  void deliver();
};

}  // namespace tombolo::svp
