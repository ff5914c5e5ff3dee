// SPDX-License-Identifier: Apache-2.0
#include "experiments/svp/chip/chip_engine.h"

#include <algorithm>
#include <utility>

namespace tombolo::experiments {

using simulator::Address;
using simulator::CoreId;

ChipEngine::ChipEngine(scc::Cpu& cpu, std::vector<CoreId> copy_cores, std::uint64_t room_bytes,
                       Care care, Wait wait)
    : cpu_(cpu), copy_cores_(std::move(copy_cores)), care_(care), wait_(std::move(wait)) {
  const scc::Chip& chip = cpu.chip();
  rooms_.add(chip.public_memory(), std::min(room_bytes, chip.public_bytes()));
}

// The kernel's, for both levels: dirty lines of the first one go to the second.
void ChipEngine::flush() {
  cpu_.wbinvd();
  cpu_.flush_l2();
}

Status ChipEngine::copy(const CoreMemory& from, const CoreMemory& to, std::size_t bytes) {
  const std::vector<Ticket> tickets = submit_divided(cpu_, copy_cores_, from, to, bytes);
  const auto done = [&] {
    return std::ranges::all_of(
        tickets, [this](const Ticket& ticket) { return CopyClient(cpu_).is_done(ticket); });
  };
  return wait_(done) ? Status() : Status::stopped("the run has been ended");
}

Status ChipEngine::get(const CoreMemory& from, void* to, std::size_t bytes) {
  Address room;
  TOMBOLO_TRY(rooms_.allocate(bytes, &room));
  // A dirty line of the room would reach memory over the bytes that come, a clean one hide them.
  if (care_.refresh) flush();
  TOMBOLO_TRY(copy(from, {cpu_.id(), room}, bytes));
  cpu_.read(view(room), to, bytes);
  rooms_.free(room);  // CEN1
  return {};
}

Status ChipEngine::put(const CoreMemory& to, const void* from, std::size_t bytes) {
  Address room;
  TOMBOLO_TRY(rooms_.allocate(bytes, &room));
  cpu_.write(view(room), from, bytes);
  // Copy cores read memory: the stores that hit lines of the input are still in the caches.
  if (care_.publish) flush();
  TOMBOLO_TRY(copy({cpu_.id(), room}, to, bytes));
  rooms_.free(room);  // CEN1
  return {};
}

}  // namespace tombolo::experiments
