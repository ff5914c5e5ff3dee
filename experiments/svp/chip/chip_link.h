// SPDX-License-Identifier: Apache-2.0
// Purpose: the chip as svp/links/link.h sees it, so that Call and Service run on simulated
// cores unchanged: a link over the message passing buffers, and a reach of memory of other
// cores through the lookup table, or by copy cores (chip_engine.h).
//
// The bytes that functions work on are the host's. Those that can be shown to other cores lie in
// ChipMemory, which has each a place in the simulated memory of a core: the stores of a program
// go there through the core's caches (stored()), and values come from there (load()).
// So the bytes of another core are those that the caches and the memory of the chip would give it.
//
// Invariants: CK1 a core's buffer has one message, written and taken under its test-and-set
//                 register.
//             CK2 an entry of the lookup table leads elsewhere only after the MPBT lines that came
//                 through it are gone.
// Thread safety: as Cpu.
#pragma once

#include <map>
#include <memory>
#include <vector>

#include "backends/scc/cpu.h"
#include "experiments/svp/chip/chip_engine.h"
#include "svp/links/link.h"

namespace tombolo::experiments {

// The memory of all cores that can be shown. One for a chip.
class ChipMemory {
 public:
  struct Block {
    simulator::CoreId owner{0};
    simulator::Address first;
    std::unique_ptr<std::byte[]> bytes;
    std::size_t size = 0;
  };
  struct Place {
    simulator::CoreId owner{0};
    scc::View view{};
  };

  std::byte* allocate(scc::Cpu& cpu, std::size_t bytes);
  // Null: it was not allocated here.
  const Block* find(const void* at, std::size_t bytes) const;
  Place place(const void* at) const;

  // The owner's caches take in the stores of its program, or give it the bytes that they have.
  void stored(scc::Cpu& cpu, const void* from, std::size_t bytes);
  void load(scc::Cpu& cpu, void* to, std::size_t bytes);

 private:
  std::map<std::uintptr_t, Block> blocks_;
};

class ChipLink {
 public:
  static constexpr bool one_mailbox = true;

  // The data of a message come behind so many bytes of a core's buffer: in the first line is the
  // head, and the others may have another use.
  ChipLink(scc::Cpu& cpu, std::uint64_t data_at) : cpu_(cpu), data_at_(data_at) {}

  svp::Site self() const { return cpu_.id().index(); }
  svp::Site sites() const { return cpu_.chip().cores(); }
  std::size_t most_bytes() const;
  bool try_send(const svp::VirtualChannel& to, svp::Kind kind, std::span<const std::byte> bytes);
  template <class Take>
  bool poll(Take&& take) {
    Head head;
    if (!receive(&head)) return false;
    const svp::Message message{
        {head.opener, head.sender, head.number}, static_cast<svp::Kind>(head.kind), received_};
    const bool taken = take(message);
    leave_buffer(taken);
    return taken;
  }
  Status wait() {
    cpu_.compute(cpu_.timing().system_call);
    return {};
  }

 private:
  struct Head {
    std::uint32_t full = 0;
    std::uint32_t sender = 0;
    std::uint32_t opener = 0;
    std::uint32_t number = 0;
    std::uint32_t kind = 0;
    std::uint32_t bytes = 0;
    std::uint64_t unused = 0;
  };

  scc::View head_of(svp::Site site) const;
  scc::View data_of(svp::Site site) const;
  void lock(svp::Site site);
  // Takes this core's lock if there is a message.
  bool receive(Head* head);
  void leave_buffer(bool taken);

  scc::Cpu& cpu_;
  std::uint64_t data_at_;
  std::vector<std::byte> received_;
};
static_assert(svp::HasOneMailbox<ChipLink>);

class ChipReach {
 public:
  // The operations for consistency; tests leave one out.
  struct Care {
    bool publish = true;
    bool refresh = true;
  };

  ChipReach(scc::Cpu& cpu, ChipMemory& memory, ChipEngine& engine, Care care)
      : cpu_(cpu), memory_(memory), engine_(engine), care_(care) {}

  // As the creator's: the arrays of a family that it is about to open are all memory of the chip,
  // and it publishes and refreshes them itself.
  void let_copy(bool may) { may_copy_ = may; }
  bool copies(svp::Site) const { return may_copy_; }
  Status get(svp::Site site, std::uint64_t address, void* to, std::size_t bytes);
  Status put(svp::Site site, std::uint64_t address, const void* from, std::size_t bytes);

  bool engine_copies(svp::Site, const void*, std::size_t bytes) const {
    return may_copy_ && engine_.takes(bytes);
  }
  // Without a room as get() and put(): the creator has published the array for these as well.
  Status engine_get(svp::Site site, std::uint64_t address, void* to, std::size_t bytes);
  Status engine_put(svp::Site site, std::uint64_t address, const void* from, std::size_t bytes);

  bool can_show(svp::Site, const void* from, std::size_t bytes) {
    return memory_.find(from, bytes) != nullptr;
  }
  void publish(const void* from, std::size_t bytes);
  void refresh(void* to, std::size_t bytes);
  void* map(svp::Site site, std::uint64_t address, std::size_t bytes);
  void unmap(svp::Site site, std::uint64_t address, void* at, std::size_t bytes, bool written);

 private:
  Status check_there(svp::Site site, std::uint64_t address, std::size_t bytes) const;
  bool is_there(svp::Site site, std::uint64_t address, std::size_t bytes) const;
  void read_there(std::uint64_t address, std::byte* to, std::size_t bytes);
  void write_there(std::uint64_t address, const std::byte* from, std::size_t bytes);
  // Calls access(view, offset, bytes) for the parts of another core's memory, mapped one by one.
  template <class Access>
  void by_pages(const ChipMemory::Place& place, std::size_t bytes, scc::MemoryType type,
                Access&& access);

  scc::Cpu& cpu_;
  ChipMemory& memory_;
  ChipEngine& engine_;
  Care care_;
  bool may_copy_ = false;
  std::map<void*, std::unique_ptr<std::byte[]>> mapped_;
};
static_assert(svp::CopiesByEngine<ChipReach>);

}  // namespace tombolo::experiments
