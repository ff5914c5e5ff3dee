// SPDX-License-Identifier: Apache-2.0
#include "experiments/svp/shared_memory.h"

#include <algorithm>

#include "experiments/svp/data_buffer.h"
#include "experiments/svp/divided_copy.h"

namespace tombolo::experiments {

using scc::LutEntry;
using scc::MemoryType;
using scc::View;
using simulator::Address;
using simulator::CoreId;

std::uint64_t SharedMemory::publish(View array) {
  system_.system_call();  // the driver's physical address of it
  // The family is to see the stores before its create, or the creator those before its sync.
  if (care_.publish) flush();
  return array.first.byte();
}

// The driver's, for both levels: dirty lines that left the first one in the midst of the flush
// of the second would change the order in which that replaces lines, and keep some of them.
void SharedMemory::flush() {
  const simulator::Time begin = system_.now();
  system_.cpu().wbinvd();
  system_.cpu().flush_l2();
  flushing_ += system_.now() - begin;
}

void SharedMemory::copy(CoreId owner, std::uint64_t address, View to, std::uint64_t bytes) {
  if (copy_cores_.empty()) {
    copy_mapped(owner, Address(address), to, bytes);
  } else {
    copy_by_cores(owner, Address(address), to, bytes);
  }
}

// ---- Remapping ----------------------------------------------------------------------------------

// The memory of another core, up to the end of its page, through the one entry for it.
View SharedMemory::map(CoreId owner, Address at) {
  scc::Cpu& cpu = system_.cpu();
  const simulator::Time begin = system_.now();
  const std::uint64_t page = chip_.page_bytes();
  const std::uint32_t entry = chip_.first_free_entry();
  const LutEntry there = cpu.read_lut(owner, static_cast<std::uint32_t>(at.byte() / page));
  cpu.set_lut(cpu.id(), entry, there);
  cpu.wait_for_writes();
  // SMC1, and the bytes of an earlier copy from the same place are not to be read again.
  if (care_.refresh) cpu.cl1invmb();
  mapping_ += system_.now() - begin;
  return {chip_.page(entry) + at.byte() % page, MemoryType::mpbt_wb};
}

void SharedMemory::copy_mapped(CoreId owner, Address from, View to, std::uint64_t bytes) {
  while (bytes > 0) {
    const std::uint64_t n = std::min(bytes, chip_.page_bytes() - from.byte() % chip_.page_bytes());
    copy_memory(system_, map(owner, from), to, n);
    from = from + n;
    to = to + n;
    bytes -= n;
  }
}

// ---- Copy cores ---------------------------------------------------------------------------------

void SharedMemory::copy_by_cores(CoreId owner, Address from, View to, std::uint64_t bytes) {
  scc::Cpu& cpu = system_.cpu();
  // Dirty lines of this array would overwrite the bytes that come, and clean ones hide them.
  if (care_.refresh) flush();
  CopyClient client(cpu);
  for (const Ticket& ticket :
       submit_divided(cpu, copy_cores_, {owner, from}, {cpu.id(), to.first}, bytes))
    client.wait(ticket);
}

void SharedMemory::stop_copy_cores() {
  for (const CoreId core : copy_cores_) CopyClient(system_.cpu()).stop(core);
}

}  // namespace tombolo::experiments
