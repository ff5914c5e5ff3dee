// SPDX-License-Identifier: Apache-2.0
// Purpose: the contract of the memory behind a controller: it says when a request is served.
// The bytes lie elsewhere; a model is about time alone. Two: banked_memory.h, plain_memory.h.
//
// Invariants: MY1 a request is served no earlier than it arrives. They are handed in as they are
//                 sent, so that one may find those ahead of it that arrive later.
// Thread safety: one thread at a time. A core has the turn when it calls serve.
#pragma once

#include <concepts>
#include <cstdint>
#include <span>

#include "simulator/kernel/time.h"
#include "simulator/parts/server.h"

namespace tombolo::simulator {

struct MemoryRequest {
  std::uint64_t offset = 0;  // of its first byte in the memory
  bool writes = false;
  bool in_burst = false;  // one of many of an engine, for which the bus hardly turns
};

template <class Model>
concept MemoryModel = requires(Model& model, const Model& seen, const MemoryRequest& request,
                               Time arrives) {
  // When memory is read or written.
  { model.serve(request, arrives) } -> std::same_as<Time>;
  // For reports: the time that requests hold up those behind them, the parts behind the
  // controller, and the time of all requests together from arrival until they are served.
  { seen.controller() } -> std::same_as<const Server&>;
  { seen.banks() } -> std::same_as<std::span<const Server>>;
  { seen.waited() } -> std::same_as<Duration>;
};

}  // namespace tombolo::simulator
