// SPDX-License-Identifier: Apache-2.0
// Purpose: the parts of a chip that its cores share: the mesh, the memory controllers with their
// memory, the message passing buffers, the configuration registers with the test-and-set bits, and
// the lookup tables, in virtual time.
//
//   Chip chip(parameters, {.seed = 7});
//   const CoreId c = chip.start(CoreId(0), [&](Cpu& cpu) { cpu.write(view, &value, 4); });
//   RunResult result = chip.run();
//
// Addresses. A core's physical memory is cut into pages of 16 MB; its lookup table says for each
// where it lies: at a controller, in a tile's message passing buffer or in its registers. Caches
// hold physical addresses, so an entry that is changed leaves stale lines behind (000 section
// 2.2.2). In a message passing buffer the upper bits of the offset are discarded (wrap-around).
//
// A tile has one interface to the mesh. It answers requests for the tile's registers, one after the
// other, and all that its own cores request elsewhere leaves through it: cores that spin on a
// register slow down the tile that it belongs to (001 Table 3: wherever their own memory lies).
//
// Invariants: CP1 a request reserves the links of its way, its slot at the device and the way back
//                 when it is sent; its effect on memory happens at the begin of its slot, in the
//                 order of virtual time.
// Thread safety: one chip belongs to one thread.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "backends/scc/memory_unit.h"
#include "backends/scc/parameters.h"
#include "backends/scc/timing.h"
#include "simulator/kernel/simulation.h"
#include "simulator/parts/mesh.h"
#include "simulator/parts/server.h"
#include "simulator/parts/sparse_memory.h"

namespace tombolo::scc {

using simulator::Address;
using simulator::CoreId;
using simulator::Duration;
using simulator::Tile;
using simulator::Time;

class Cpu;

enum class DeviceKind : std::uint8_t { none, dram, mpb, registers };

// An entry of a lookup table: a page begins at `offset` of the device.
struct LutEntry {
  DeviceKind kind = DeviceKind::none;
  std::uint32_t device = 0;  // a controller, or a tile
  std::uint64_t offset = 0;
  bool operator==(const LutEntry&) const = default;
};

struct Device {
  Tile tile;
  DeviceTiming timing;
  simulator::Server server;                         // of buffers and registers
  std::unique_ptr<simulator::SparseMemory> memory;  // none for registers
};

// The requests to the registers of one core, among all that the interface of its tile serves.
struct RegisterUse {
  std::uint64_t served = 0;
  Duration busy;
  Duration waited;  // of all requests together, behind others at the interface
};

// Where a physical address leads.
struct Target {
  Device* device = nullptr;
  DeviceKind kind = DeviceKind::none;
  std::uint32_t number = 0;  // of the device among its kind
  std::uint64_t offset = 0;
  RegisterUse* registers = nullptr;  // of a core, if the request is to them

  // Where its byte lies; registers are no memory.
  std::byte* memory() const {
    TOMBOLO_CHECK(device->memory != nullptr, "a load or store of a page of registers");
    return device->memory->at(offset);
  }
};

class Chip {
 public:
  explicit Chip(const Parameters& parameters, const simulator::Options& options = {});
  ~Chip();
  Chip(const Chip&) = delete;
  Chip& operator=(const Chip&) = delete;

  const Parameters& parameters() const { return parameters_; }
  const Timing& timing() const { return timing_; }
  std::uint32_t cores() const { return parameters_.cores(); }
  simulator::Simulation& simulation() { return simulation_; }

  // Before run(): lets `program` run on a core that has none yet. The core's fibre gets the next
  // number, which decides between cores at equal times.
  void start(CoreId core, std::function<void(Cpu&)> program);
  simulator::RunResult run();
  Cpu& cpu(CoreId core) { return *cpus_.at(core.index()); }
  const Cpu& cpu(CoreId core) const { return *cpus_.at(core.index()); }

  Tile tile_of(CoreId core) const;
  std::uint32_t tile_number(CoreId core) const {
    return core.index() / static_cast<std::uint32_t>(parameters_.layout.cores_per_tile);
  }
  // The controller of the core's domain: the nearest, the first of several.
  std::uint32_t controller_of(CoreId core) const { return controller_of_[core.index()]; }
  const Device& controller(std::uint32_t number) const { return controllers_.at(number); }
  const MemoryUnit& memory_unit(std::uint32_t controller) const {
    return memory_units_.at(controller);
  }
  const Device& buffer(std::uint32_t tile) const { return mpbs_.at(tile); }
  const Device& interface(std::uint32_t tile) const { return registers_.at(tile); }
  const RegisterUse& register_use(CoreId core) const { return register_uses_.at(core.index()); }
  const simulator::Mesh& mesh() const { return mesh_; }
  std::uint32_t controllers() const { return static_cast<std::uint32_t>(controllers_.size()); }

  // ---- Lookup tables and physical memory (Table 2.1 of 000) -------------------------------------

  std::uint64_t page_bytes() const { return page_bytes_; }
  LutEntry lut(CoreId core, std::uint32_t entry) const { return luts_[core.index()].at(entry); }
  void set_lut(CoreId core, std::uint32_t entry, LutEntry to) {
    luts_[core.index()].at(entry) = to;
  }
  Target resolve(CoreId core, Address physical);
  // Likewise the registers of a core.
  Target resolve_registers(CoreId core, CoreId of);

  // The physical address at which every core sees the legacy shared memory of a controller.
  Address shared(std::uint32_t controller) const {
    return page(static_cast<std::uint32_t>(parameters_.layout.shared_lut_entry) + controller);
  }
  // Likewise the configuration registers of a core's tile.
  Address registers(CoreId core) const {
    return page(static_cast<std::uint32_t>(parameters_.layout.register_lut_entry) +
                tile_number(core));
  }
  // Likewise the message passing buffer of a core: its part of the tile's.
  Address mpb(CoreId core) const;
  std::uint64_t mpb_bytes() const {
    return static_cast<std::uint64_t>(parameters_.layout.mpb_bytes_per_tile /
                                      parameters_.layout.cores_per_tile);
  }
  // The physical address of a core's own private memory, and where its last pages, those that are
  // open to others (POPSHM), lie.
  Address private_memory() const { return Address(0); }
  std::uint64_t private_bytes() const;
  Address public_memory() const { return Address(private_bytes()); }
  std::uint64_t public_bytes() const;
  // The entry that maps page `n` of those of `owner`, for the lookup table of another core.
  LutEntry public_page(CoreId owner, std::uint32_t n) const;
  std::uint32_t first_free_entry() const {
    return static_cast<std::uint32_t>(parameters_.layout.first_free_lut_entry);
  }
  std::uint32_t free_entries() const {
    return static_cast<std::uint32_t>(parameters_.layout.free_lut_entries);
  }
  Address page(std::uint32_t entry) const { return Address(entry * page_bytes_); }

  // ---- The way of a request ---------------------------------------------------------------------

  struct Trip {
    Time effect;  // when memory is read or written
    Time reply;   // when the answer is back at the core's tile
  };
  // The copy engine hands in many lines ahead of their time. It is not at the tile's interface, and
  // reads and writes in bursts, for which the bus hardly turns.
  enum class Sender : std::uint8_t { core, engine };
  // A request that leaves the tile of `from` at `start`, the core's turn. `out` and `back` are the
  // bytes of data that go along.
  Trip send(CoreId from, const Target& to, Time start, std::size_t out, std::size_t back,
            Sender sender = Sender::core);

  // One bit for each core; true: set by a core.
  std::vector<std::uint8_t>& test_and_set_bits() { return test_and_set_; }

  // Memory without time, for set-up and for looking at results. The range lies within one page.
  void peek(CoreId core, Address physical, void* to, std::size_t bytes);
  void poke(CoreId core, Address physical, const void* from, std::size_t bytes);

 private:
  void build_devices();
  void build_luts();
  LutEntry private_page(CoreId core, std::uint32_t n) const;
  // When the device begins with a request that arrives at its tile; `out`: bytes of data with it.
  Time serve(const Target& to, Time arrives, std::size_t out, Sender sender);

  Parameters parameters_;
  Timing timing_;
  std::uint64_t page_bytes_;
  simulator::Simulation simulation_;
  simulator::Mesh mesh_;
  std::vector<Device> controllers_;
  std::vector<MemoryUnit> memory_units_;  // by controller
  std::vector<Device> mpbs_;
  std::vector<Device> registers_;
  std::vector<RegisterUse> register_uses_;  // by core
  std::vector<std::uint32_t> controller_of_;
  std::vector<std::uint32_t> place_in_domain_;  // of a core among those of its controller
  std::vector<std::vector<LutEntry>> luts_;
  std::vector<std::uint8_t> test_and_set_;
  std::vector<std::unique_ptr<Cpu>> cpus_;
};

}  // namespace tombolo::scc
