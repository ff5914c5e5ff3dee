// SPDX-License-Identifier: Apache-2.0
// Purpose: the memory behind one controller of a chip, by the model that its parameters name.
//
// Another model is a class of the contract simulator/parts/memory_model.h, an alternative here and
// a name in parameters.cpp; the chip and its cores know none of them.
//
// Thread safety: one thread at a time.
#pragma once

#include <utility>
#include <variant>

#include "backends/scc/timing.h"
#include "simulator/parts/banked_memory.h"
#include "simulator/parts/plain_memory.h"

namespace tombolo::scc {

class MemoryUnit {
 public:
  MemoryUnit(const Parameters& parameters, const Timing& timing)
      : model_(made(parameters, timing)) {}

  simulator::Time serve(const simulator::MemoryRequest& request, simulator::Time arrives) {
    return std::visit([&](auto& model) { return model.serve(request, arrives); }, model_);
  }
  const simulator::Server& controller() const {
    return std::visit([](const auto& m) -> const simulator::Server& { return m.controller(); },
                      model_);
  }
  std::span<const simulator::Server> banks() const {
    return std::visit([](const auto& model) { return model.banks(); }, model_);
  }
  simulator::Duration waited() const {
    return std::visit([](const auto& model) { return model.waited(); }, model_);
  }

 private:
  using Model = std::variant<simulator::BankedMemory, simulator::PlainMemory>;

  static Model made(const Parameters& p, const Timing& t) {
    if (p.layout.memory_model == MemoryKind::plain) return simulator::PlainMemory(t.dram.busy);
    return simulator::BankedMemory(
        {.bytes = static_cast<std::uint64_t>(p.layout.controller_megabytes) << 20,
         .banks = static_cast<std::uint32_t>(p.layout.banks_per_controller),
         .interleave = static_cast<std::uint64_t>(p.layout.bank_interleave_bytes),
         .busy = t.dram.busy,
         .bank_busy = t.bank_busy,
         .write_to_read = t.write_to_read,
         .read_to_write = t.read_to_write});
  }

  Model model_;
};

}  // namespace tombolo::scc
