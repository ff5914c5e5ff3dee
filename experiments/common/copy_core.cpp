// SPDX-License-Identifier: Apache-2.0
#include "experiments/common/copy_core.h"

#include <algorithm>

namespace tombolo::experiments {

using scc::Chip;
using scc::DeviceKind;
using scc::MemoryType;
using scc::View;
using simulator::Address;
using simulator::CoreId;

namespace {

constexpr std::uint64_t line_size = 32;
constexpr std::uint64_t slots = 32;
constexpr std::uint64_t head_offset = line_size;
constexpr std::uint64_t tail_offset = line_size + 8;
constexpr std::uint64_t commands = 2 * line_size;
constexpr std::uint64_t done_offset = commands + slots * line_size;

// A command as it lies in its line.
struct Slot {
  std::uint64_t from;  // controller in the upper bits
  std::uint64_t to;
  std::uint32_t bytes;
  CopyMethod method;
  std::uint32_t notify;
  std::uint32_t unused = 0;
};
static_assert(sizeof(Slot) == line_size);

constexpr unsigned offset_bits = 40;

std::uint64_t encode(SystemAddress a) {
  return static_cast<std::uint64_t>(a.controller) << offset_bits | a.offset;
}

SystemAddress decode(std::uint64_t a) {
  return {static_cast<std::uint32_t>(a >> offset_bits),
          a & ((std::uint64_t{1} << offset_bits) - 1)};
}

SystemAddress later(SystemAddress a, std::uint64_t bytes) {
  return {a.controller, a.offset + bytes};
}

// The buffer's words are read past the caches.
View word(Chip& chip, CoreId core, std::uint64_t at) {
  return {chip.mpb(core) + at, MemoryType::ncm};
}

View done_word(Chip& chip, CoreId notified, CoreId copy_core) {
  const View at = word(chip, notified, done_offset + copy_core.index() * std::uint64_t{8});
  TOMBOLO_CHECK(done_offset + chip.cores() * std::uint64_t{8} <= chip.mpb_bytes(),
                "copy cores: the words of {} cores do not fit into {} bytes", chip.cores(),
                chip.mpb_bytes());
  return at;
}

// Bytes up to the end of the page of the lookup table, or of `part` bytes.
std::uint64_t room(SystemAddress a, std::uint64_t part) { return part - a.offset % part; }

}  // namespace

SystemAddress system_address(Chip& chip, CoreId core, Address physical) {
  const scc::Target target = chip.resolve(core, physical);
  TOMBOLO_CHECK(target.kind == DeviceKind::dram,
                "core {}: physical address {:#x} is no main memory", core.index(), physical.byte());
  return {target.number, target.offset};
}

// ---- Sender -------------------------------------------------------------------------------------

Ticket CopyClient::submit(CoreId copy_core, const CopyCommand& command, CoreId notify) {
  Chip& chip = cpu_.chip();
  const auto pause = [this] { cpu_.compute(cpu_.timing().loop); };
  std::uint64_t tail = 0;
  while (true) {
    while (!cpu_.test_and_set(copy_core)) pause();
    tail = cpu_.load<std::uint64_t>(word(chip, copy_core, tail_offset));
    if (tail - cpu_.load<std::uint64_t>(word(chip, copy_core, head_offset)) < slots) break;
    cpu_.clear(copy_core);
    pause();
  }
  const Slot slot{.from = encode(command.from),
                  .to = encode(command.to),
                  .bytes = command.bytes,
                  .method = command.method,
                  .notify = notify.index()};
  // A whole line: the combining buffer sends it off by itself.
  cpu_.copy_to({chip.mpb(copy_core) + (commands + tail % slots * line_size), MemoryType::mpbt_wt},
               &slot, sizeof slot);
  cpu_.store(word(chip, copy_core, tail_offset), tail + 1);
  cpu_.clear(copy_core);
  return {copy_core, tail + 1};
}

bool CopyClient::is_done(const Ticket& ticket) {
  const View done = done_word(cpu_.chip(), cpu_.id(), ticket.copy_core);
  return cpu_.load<std::uint64_t>(done) >= ticket.number;
}

void CopyClient::wait(const Ticket& ticket) {
  while (!is_done(ticket)) cpu_.compute(cpu_.timing().loop);
}

std::uint64_t CopyClient::buffer_bytes(const Chip& chip) {
  const std::uint64_t bytes = done_offset + chip.cores() * sizeof(std::uint64_t);
  return (bytes + line_size - 1) / line_size * line_size;
}

// ---- Copy core ----------------------------------------------------------------------------------

void CopyCore::serve() {
  Chip& chip = cpu_.chip();
  const CoreId self = cpu_.id();
  while (true) {
    while (cpu_.load<std::uint64_t>(word(chip, self, tail_offset)) == done_)
      cpu_.compute(cpu_.timing().loop);
    Slot slot{};
    cpu_.copy_from(word(chip, self, commands + done_ % slots * line_size), &slot, sizeof slot);
    if (slot.method == CopyMethod::memcpy)
      copy_by_memcpy(decode(slot.from), decode(slot.to), slot.bytes);
    if (slot.method == CopyMethod::lut) copy_by_lut(decode(slot.from), decode(slot.to), slot.bytes);
    ++done_;
    cpu_.store(word(chip, self, head_offset), done_);
    cpu_.store(done_word(chip, CoreId(slot.notify), self), done_);  // CC2
    if (slot.method == CopyMethod::stop) return;
  }
}

// Lets one of the free entries lead to the page of `to`; where that is in physical memory.
Address CopyCore::map(std::uint32_t which, SystemAddress to) {
  Chip& chip = cpu_.chip();
  const std::uint32_t entry = chip.first_free_entry() + which;
  const std::uint64_t in_page = to.offset % chip.page_bytes();
  cpu_.wait_for_writes();
  cpu_.set_lut(cpu_.id(), entry, {DeviceKind::dram, to.controller, to.offset - in_page});
  cpu_.wait_for_writes();
  return chip.page(entry) + in_page;
}

// ---- memcpy -------------------------------------------------------------------------------------

// The source is read by the line into L1 alone, so that CL1INVMB forgets it; the target is written
// through the combining buffer. With cacheable pages each word of the target would go to memory by
// itself, as the caches allocate no line for a store.
void CopyCore::memcpy_part(SystemAddress from, SystemAddress to, std::uint64_t bytes) {
  cpu_.cl1invmb();  // CC3
  const View source{map(0, from), MemoryType::mpbt_wb};
  const View target{map(1, to), MemoryType::mpbt_wb};
  std::byte held[line_size];
  for (std::uint64_t done = 0; done < bytes;) {
    const std::uint64_t n = std::min(bytes - done, room(later(to, done), line_size));
    cpu_.copy_from(source + done, held, n);
    cpu_.write(target + done, held, n);
    done += n;
  }
  cpu_.flush_combined();
  cpu_.cl1invmb();  // CC3
}

void CopyCore::copy_by_memcpy(SystemAddress from, SystemAddress to, std::uint64_t bytes) {
  const std::uint64_t page = cpu_.chip().page_bytes();
  for (std::uint64_t done = 0; done < bytes;) {
    const std::uint64_t n =
        std::min({bytes - done, room(later(from, done), page), room(later(to, done), page)});
    memcpy_part(later(from, done), later(to, done), n);
    done += n;
  }
}

// ---- LUT copy -----------------------------------------------------------------------------------

void CopyCore::lut_block(std::uint32_t which, SystemAddress from, SystemAddress to,
                         std::uint64_t bytes) {
  const View block{map(which, from), MemoryType::dcm};
  for (std::uint64_t at = 0; at < bytes; at += line_size) {
    cpu_.load<std::uint8_t>(block + at);
    cpu_.compute(cpu_.timing().loop);
  }
  map(which, to);
  // The line's own byte: its value stays, and the line becomes dirty.
  for (std::uint64_t at = 0; at < bytes; at += line_size) {
    cpu_.store(block + at, cpu_.load<std::uint8_t>(block + at));
    cpu_.compute(cpu_.timing().loop);
  }
  cpu_.wbinvd();  // CC4: dirty lines of L1 go to L2 now, not among the fills of the next block
}

void CopyCore::copy_by_lut(SystemAddress from, SystemAddress to, std::uint64_t bytes) {
  const auto most = static_cast<std::uint64_t>(cpu_.chip().parameters().caches.l2_bytes);
  const std::uint64_t page = cpu_.chip().page_bytes();
  // A line keeps its place in the page when the page is exchanged.
  if (from.offset % page != to.offset % page) return copy_by_memcpy(from, to, bytes);
  const std::uint64_t head = std::min(bytes, (line_size - from.offset % line_size) % line_size);
  const std::uint64_t tail = (bytes - head) % line_size;
  copy_by_memcpy(from, to, head);
  copy_by_memcpy(later(from, bytes - tail), later(to, bytes - tail), tail);
  if (head + tail == bytes) return;
  if (!emptied_) {
    cpu_.wbinvd();
    cpu_.flush_l2();
    emptied_ = true;
  }
  // Blocks end where they fill L2 exactly, so that all but the first and the last are whole, and
  // each that a third one follows has been pushed out by the second (CC3).
  std::uint32_t which = 0;
  for (std::uint64_t done = head; done < bytes - tail; which = 1 - which) {
    const std::uint64_t n = std::min(bytes - tail - done, room(later(from, done), most));
    lut_block(which, later(from, done), later(to, done), n);
    done += n;
  }
  cpu_.flush_l2();  // CC2
}

}  // namespace tombolo::experiments
