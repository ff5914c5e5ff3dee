// SPDX-License-Identifier: Apache-2.0
#include "backends/scc/usage.h"

#include <utility>

namespace tombolo::scc {
namespace {

using simulator::Server;

class Collector {
 public:
  void add(Part part, Tile tile, std::uint32_t number, const Server& server) {
    add(part, tile, number, server, server.waited());
  }
  void add(Part part, Tile tile, std::uint32_t number, const Server& server, Duration waited) {
    if (server.served() == 0) return;
    found_.push_back({part, tile, number, server.served(), server.busy(), waited});
  }
  void add(Tile tile, std::uint32_t number, const RegisterUse& use) {
    if (use.served == 0) return;
    found_.push_back({Part::registers, tile, number, use.served, use.busy, use.waited});
  }
  std::vector<PartUse> take() { return std::move(found_); }

 private:
  std::vector<PartUse> found_;
};

void add_memory(const Chip& chip, Collector& to) {
  for (std::uint32_t c = 0; c < chip.controllers(); ++c) {
    const Tile tile = chip.controller(c).tile;
    const MemoryUnit& unit = chip.memory_unit(c);
    to.add(Part::controller, tile, 0, unit.controller(), unit.waited());
    for (std::uint32_t bank = 0; const Server& server : unit.banks())
      to.add(Part::bank, tile, bank++, server);
  }
}

void add_tile(const Chip& chip, std::uint32_t number, Collector& to) {
  const Tile tile = chip.buffer(number).tile;
  for (std::uint32_t d = 0; d < 4; ++d)
    to.add(Part::link, tile, d, chip.mesh().link(tile, static_cast<simulator::Direction>(d)));
  to.add(Part::interface, tile, 0, chip.interface(number).server);
  const auto cores = static_cast<std::uint32_t>(chip.parameters().layout.cores_per_tile);
  for (std::uint32_t core = 0; core < cores; ++core)
    to.add(tile, core, chip.register_use(CoreId(number * cores + core)));
  to.add(Part::buffer, tile, 0, chip.buffer(number).server);
}

}  // namespace

std::vector<PartUse> parts_of(const Chip& chip) {
  Collector found;
  add_memory(chip, found);
  for (std::uint32_t tile = 0; tile < chip.parameters().tiles(); ++tile)
    add_tile(chip, tile, found);
  return found.take();
}

std::vector<CoreUse> cores_of(const Chip& chip) {
  std::vector<CoreUse> found;
  for (std::uint32_t core = 0; core < chip.cores(); ++core) {
    const Counters& counters = chip.cpu(CoreId(core)).counters();
    if (counters.requests_read + counters.requests_written + counters.tests > 0)
      found.push_back({CoreId(core), counters});
  }
  return found;
}

}  // namespace tombolo::scc
