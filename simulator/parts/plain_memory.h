// SPDX-License-Identifier: Apache-2.0
// Purpose: memory without banks, whose bus does not turn: each request takes the same time.
// Invariants: PM1 requests are served in order; addresses and directions do not matter.
// Thread safety: see memory_model.h.
#pragma once

#include "simulator/parts/memory_model.h"

namespace tombolo::simulator {

class PlainMemory {
 public:
  explicit PlainMemory(Duration service) : service_(service) {}

  Time serve(const MemoryRequest&, Time arrives) { return server_.serve(arrives, service_).begin; }

  const Server& controller() const { return server_; }
  std::span<const Server> banks() const { return {}; }
  Duration waited() const { return server_.waited(); }

 private:
  Duration service_;
  Server server_;
};

static_assert(MemoryModel<PlainMemory>);

}  // namespace tombolo::simulator
