// SPDX-License-Identifier: Apache-2.0
// Purpose: private to this folder: interrupts the threads of a program that are processes of this
// host, each with one thread, and counts the interrupts.
// Thread safety: one thread for each object.
#pragma once

#include <span>

#include "dsm/protocol/consistency.h"
#include "host/interrupts/interrupts.h"
#include "runtime/counters/counters.h"

namespace tombolo::dsm {

class ProcessInterrupter final : public Interrupter {
 public:
  // By thread.
  explicit ProcessInterrupter(std::span<const host::ProcessName> processes)
      : peers_({processes.begin(), processes.end()}) {}

  void interrupt(Thread thread) override {
    interrupts_.add();
    peers_.interrupt(thread);
  }

 private:
  host::PeerInterrupts peers_;
  runtime::Counter& interrupts_ = runtime::counters().counter("dsm_interrupts");
};

}  // namespace tombolo::dsm
