// SPDX-License-Identifier: Apache-2.0
// Purpose: how busy the parts of a chip were in a run, how long requests waited there, and how
// each core spent its time. All of it is counted anyway: to ask for it changes no run.
//
//   for (const PartUse& use : parts_of(chip)) ...
//   for (const CoreUse& use : cores_of(chip)) ...
//
// Thread safety: after the run, by its thread.
#pragma once

#include <cstdint>
#include <vector>

#include "backends/scc/chip.h"
#include "backends/scc/cpu.h"

namespace tombolo::scc {

enum class Part : std::uint8_t {
  controller,  // waits: from the arrival at the memory until it is read or written
  bank,        // waits: at the head of the controller's queue
  link,        // of the mesh, in one direction
  interface,   // of a tile: its registers, and the requests of its cores on their way out
  registers,   // of one core: those requests of the interface that are to them
  buffer,      // a tile's message passing buffer
};

constexpr const char* name_of(Part part) {
  constexpr const char* names[] = {"controller", "bank", "link", "interface", "register", "buffer"};
  return names[static_cast<std::size_t>(part)];
}

struct PartUse {
  Part part;
  Tile tile;
  // Of a bank at its controller, of a register's core on its tile, of a link its Direction; else 0.
  std::uint32_t number;
  std::uint64_t served;
  Duration busy;
  Duration waited;  // of all requests together
};

// The parts that served anything.
std::vector<PartUse> parts_of(const Chip& chip);

struct CoreUse {
  CoreId core;
  Counters counters;
};

// The cores that read or wrote anything.
std::vector<CoreUse> cores_of(const Chip& chip);

}  // namespace tombolo::scc
