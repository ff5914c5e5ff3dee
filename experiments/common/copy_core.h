// SPDX-License-Identifier: Apache-2.0
// Purpose: copy cores (002 sections 4.4 and 4.7): a core that does nothing but copy memory for
// others. Its commands come through a circular buffer in its message passing buffer, which senders
// guard with its test-and-set register; it tells a core of each command that it has done.
//
//   // on core 2
//   CopyCore(cpu).serve();
//   // on core 0
//   CopyClient client(cpu);
//   const Ticket ticket = client.submit(CoreId(2), {from, to, bytes, CopyMethod::memcpy});
//   client.wait(ticket);
//   client.stop(CoreId(2));
//
// A core's part of its message passing buffer:
//
//   line 0         not used
//   line 1         head (written by the copy core alone) and tail (by the sender that has the lock)
//   lines 2 to 33  commands, a line each
//   behind         a word for each copy core of the chip: how many of its commands are done
//
// The LUT copy reads a byte of each line of up to 256 KB into L2 through an entry of the lookup
// table, lets the entry lead to the target, and makes the lines dirty: they leave the cache for
// their new place. The next block goes through a second entry, and pushes them out.
//
// Invariants: CC1 commands of one copy core are done in the order in which they were taken in.
//             CC2 copied bytes are in memory before any core hears that the copy is done. Dirty
//                 lines of the sender are not copied: it writes them back first, and forgets lines
//                 of the target.
//             CC3 an entry of the lookup table leads elsewhere only when no line that came through
//                 it is in a cache of the copy core, but for the one change in the midst of a LUT
//                 copy, for which the stale lines are the point.
//             CC4 while L2 takes in a block, nothing else touches it: pseudo-LRU then replaces each
//                 line of a set once, so that all of the block before leaves and all of it stays.
// Thread safety: as Cpu.
#pragma once

#include <cstdint>

#include "backends/scc/cpu.h"

namespace tombolo::experiments {

// A byte of main memory, the same for every core: a controller, and an offset in its memory.
struct SystemAddress {
  std::uint32_t controller = 0;
  std::uint64_t offset = 0;
};

// Where a physical address of a core lies. It must be main memory.
SystemAddress system_address(scc::Chip& chip, simulator::CoreId core, simulator::Address physical);

enum class CopyMethod : std::uint32_t { stop, memcpy, lut };

struct CopyCommand {
  SystemAddress from{};
  SystemAddress to{};
  std::uint32_t bytes = 0;
  CopyMethod method = CopyMethod::memcpy;
};

// A command that was sent.
struct Ticket {
  simulator::CoreId copy_core{0};
  std::uint64_t number = 0;  // among those of the copy core, from 1
};

class CopyClient {
 public:
  explicit CopyClient(scc::Cpu& cpu) : cpu_(cpu) {}

  // Waits while the circular buffer is full. `notify` hears when it is done.
  Ticket submit(simulator::CoreId copy_core, const CopyCommand& command, simulator::CoreId notify);
  Ticket submit(simulator::CoreId copy_core, const CopyCommand& command) {
    return submit(copy_core, command, cpu_.id());
  }
  // On the core that hears of it.
  bool is_done(const Ticket& ticket);
  void wait(const Ticket& ticket);
  // Lets the copy core's program end when it has done the commands before.
  void stop(simulator::CoreId copy_core) { submit(copy_core, {.method = CopyMethod::stop}); }

  // The first bytes of each core's buffer, which are copy cores' and their senders'.
  static std::uint64_t buffer_bytes(const scc::Chip& chip);

 private:
  scc::Cpu& cpu_;
};

class CopyCore {
 public:
  explicit CopyCore(scc::Cpu& cpu) : cpu_(cpu) {}

  // Takes commands until one says stop.
  void serve();

  // The copies themselves, without a command.
  void copy_by_memcpy(SystemAddress from, SystemAddress to, std::uint64_t bytes);
  // By whole lines that lie equally in their pages of the lookup table; the rest by memcpy.
  void copy_by_lut(SystemAddress from, SystemAddress to, std::uint64_t bytes);

 private:
  simulator::Address map(std::uint32_t which, SystemAddress to);
  void memcpy_part(SystemAddress from, SystemAddress to, std::uint64_t bytes);
  void lut_block(std::uint32_t which, SystemAddress from, SystemAddress to, std::uint64_t bytes);

  scc::Cpu& cpu_;
  std::uint64_t done_ = 0;
  bool emptied_ = false;  // L2, of its lines from before this core became a copy core
};

}  // namespace tombolo::experiments
