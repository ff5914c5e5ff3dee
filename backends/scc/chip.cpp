// SPDX-License-Identifier: Apache-2.0
#include "backends/scc/chip.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "backends/scc/cpu.h"

namespace tombolo::scc {

Chip::Chip(const Parameters& parameters, const simulator::Options& options)
    : parameters_(parameters),
      timing_(parameters),
      page_bytes_(parameters.page_bytes()),
      simulation_(options),
      mesh_(static_cast<std::uint32_t>(parameters.layout.mesh_columns),
            static_cast<std::uint32_t>(parameters.layout.mesh_rows), timing_.hop),
      register_uses_(parameters.cores()),
      test_and_set_(parameters.cores()) {
  build_devices();
  build_luts();
  for (std::uint32_t core = 0; core < cores(); ++core)
    cpus_.push_back(std::make_unique<Cpu>(*this, CoreId(core)));
}

Chip::~Chip() = default;

void Chip::build_devices() {
  for (const Tile& tile : parameters_.layout.controllers) {
    controllers_.push_back(
        {tile,
         timing_.dram,
         {},
         std::make_unique<simulator::SparseMemory>(
             static_cast<std::uint64_t>(parameters_.layout.controller_megabytes) << 20)});
    memory_units_.emplace_back(parameters_, timing_);
  }
  const auto columns = static_cast<std::uint32_t>(parameters_.layout.mesh_columns);
  for (std::uint32_t t = 0; t < parameters_.tiles(); ++t) {
    const Tile tile{t % columns, t / columns};
    mpbs_.push_back({tile,
                     timing_.mpb,
                     {},
                     std::make_unique<simulator::SparseMemory>(
                         static_cast<std::uint64_t>(parameters_.layout.mpb_bytes_per_tile))});
    registers_.push_back({tile, timing_.registers, {}, nullptr});
  }
  // A chip is divided into as many equal domains as it has controllers; where they stand at two
  // edges, the halves of the rows between. That is the nearest controller with room.
  const std::uint32_t share = (cores() + controllers() - 1) / controllers();
  std::vector<std::uint32_t> taken(controllers());
  for (std::uint32_t core = 0; core < cores(); ++core) {
    const Tile at = tile_of(CoreId(core));
    std::uint32_t best = controllers();
    for (std::uint32_t c = 0; c < controllers(); ++c) {
      if (taken[c] == share) continue;
      if (best == controllers() || simulator::Mesh::hops(at, controllers_[c].tile) <
                                       simulator::Mesh::hops(at, controllers_[best].tile))
        best = c;
    }
    controller_of_.push_back(best);
    place_in_domain_.push_back(taken[best]++);
  }
}

void Chip::build_luts() {
  const Parameters::Layout& l = parameters_.layout;
  luts_.assign(cores(), std::vector<LutEntry>(static_cast<std::size_t>(l.lut_entries)));
  for (std::uint32_t core = 0; core < cores(); ++core) {
    std::vector<LutEntry>& lut = luts_[core];
    for (std::uint32_t n = 0; n < l.private_pages; ++n) lut[n] = private_page(CoreId(core), n);
    for (std::uint32_t c = 0; c < controllers(); ++c)
      lut[static_cast<std::size_t>(l.shared_lut_entry) + c] = {DeviceKind::dram, c, 0};
    for (std::uint32_t t = 0; t < parameters_.tiles(); ++t) {
      lut[static_cast<std::size_t>(l.mpb_lut_entry) + t] = {DeviceKind::mpb, t, 0};
      lut[static_cast<std::size_t>(l.register_lut_entry) + t] = {DeviceKind::registers, t, 0};
    }
  }
}

LutEntry Chip::private_page(CoreId core, std::uint32_t n) const {
  const auto pages = static_cast<std::uint64_t>(parameters_.layout.private_pages);
  // The first page of a controller is legacy shared memory.
  const std::uint64_t first = 1 + place_in_domain_[core.index()] * pages;
  return {DeviceKind::dram, controller_of(core), (first + n) * page_bytes_};
}

std::uint64_t Chip::private_bytes() const {
  return static_cast<std::uint64_t>(parameters_.layout.private_pages -
                                    parameters_.layout.public_pages) *
         page_bytes_;
}

std::uint64_t Chip::public_bytes() const {
  return static_cast<std::uint64_t>(parameters_.layout.public_pages) * page_bytes_;
}

LutEntry Chip::public_page(CoreId owner, std::uint32_t n) const {
  const auto first = static_cast<std::uint32_t>(parameters_.layout.private_pages -
                                                parameters_.layout.public_pages);
  return private_page(owner, first + n);
}

void Chip::start(CoreId core, std::function<void(Cpu&)> program) {
  Cpu& runs = cpu(core);
  simulation_.spawn(
      fmt::format("cpu {}", core.index()),
      [&runs, program = std::move(program)](simulator::Core& fibre) { runs.run(fibre, program); });
}

simulator::RunResult Chip::run() { return simulation_.run(); }

Tile Chip::tile_of(CoreId core) const {
  const std::uint32_t tile = tile_number(core);
  const auto columns = static_cast<std::uint32_t>(parameters_.layout.mesh_columns);
  return {tile % columns, tile / columns};
}

Address Chip::mpb(CoreId core) const {
  const auto entry = static_cast<std::uint32_t>(parameters_.layout.mpb_lut_entry);
  const std::uint64_t part =
      core.index() % static_cast<std::uint64_t>(parameters_.layout.cores_per_tile);
  return page(entry + tile_number(core)) + part * mpb_bytes();
}

Target Chip::resolve(CoreId core, Address physical) {
  const std::uint64_t entry = physical.byte() / page_bytes_;
  const std::vector<LutEntry>& lut = luts_[core.index()];
  TOMBOLO_CHECK(entry < lut.size() && lut[entry].kind != DeviceKind::none,
                "core {}: physical address {:#x}: entry {} of its lookup table leads nowhere",
                core.index(), physical.byte(), entry);
  const LutEntry& to = lut[entry];
  const std::uint64_t offset = physical.byte() % page_bytes_;
  switch (to.kind) {
    case DeviceKind::dram:
      return {&controllers_[to.device], to.kind, to.device, to.offset + offset};
    case DeviceKind::mpb:  // the wrap-around
      return {&mpbs_[to.device], to.kind, to.device,
              (to.offset + offset) % mpbs_[to.device].memory->bytes()};
    default:
      return {&registers_[to.device], to.kind, to.device, to.offset + offset};
  }
}

Target Chip::resolve_registers(CoreId core, CoreId of) {
  Target to = resolve(core, registers(of));
  to.registers = &register_uses_[of.index()];
  return to;
}

Time Chip::serve(const Target& to, Time arrives, std::size_t out, Sender sender) {
  if (to.kind == DeviceKind::dram)
    return memory_units_[to.number].serve({to.offset, out != 0, sender == Sender::engine}, arrives);
  const Duration busy = to.device->timing.busy;
  const Time begin = to.device->server.serve(arrives, busy).begin;
  if (to.registers != nullptr) {
    ++to.registers->served;
    to.registers->busy += busy;
    to.registers->waited += begin - arrives;
  }
  return begin;
}

Chip::Trip Chip::send(CoreId from, const Target& to, Time start, std::size_t out, std::size_t back,
                      Sender sender) {
  const Tile here = tile_of(from);
  Device& device = *to.device;
  const auto flits = [this](std::size_t bytes) {  // a head, and the data
    return timing_.mesh.cycles(
        1 + static_cast<std::int64_t>((bytes + timing_.link_bytes - 1) / timing_.link_bytes));
  };
  Device& own = registers_[tile_number(from)];
  if (sender == Sender::core && &device != &own) start = own.server.serve(start, flits(out)).begin;
  const Time arrives = mesh_.send(here, device.tile, start, flits(out));
  const Time begin = serve(to, arrives, out, sender);
  const Time ready = begin + device.timing.access;
  return {begin, mesh_.send(device.tile, here, ready, flits(back))};
}

void Chip::peek(CoreId core, Address physical, void* to, std::size_t bytes) {
  auto* out = static_cast<std::byte*>(to);
  for (std::size_t done = 0; done < bytes;) {
    const Target target = resolve(core, physical + done);
    const std::size_t room = simulator::SparseMemory::sparse_page_bytes -
                             target.offset % simulator::SparseMemory::sparse_page_bytes;
    const std::size_t n = std::min(bytes - done, room);
    std::memcpy(out + done, target.memory(), n);
    done += n;
  }
}

void Chip::poke(CoreId core, Address physical, const void* from, std::size_t bytes) {
  const auto* in = static_cast<const std::byte*>(from);
  for (std::size_t done = 0; done < bytes;) {
    const Target target = resolve(core, physical + done);
    const std::size_t room = simulator::SparseMemory::sparse_page_bytes -
                             target.offset % simulator::SparseMemory::sparse_page_bytes;
    const std::size_t n = std::min(bytes - done, room);
    std::memcpy(target.memory(), in + done, n);
    done += n;
  }
}

}  // namespace tombolo::scc
