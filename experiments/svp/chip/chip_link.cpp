// SPDX-License-Identifier: Apache-2.0
#include "experiments/svp/chip/chip_link.h"

#include <algorithm>

namespace tombolo::experiments {

using scc::MemoryType;
using scc::View;
using simulator::Address;
using simulator::CoreId;

// ---- Memory -------------------------------------------------------------------------------------

std::byte* ChipMemory::allocate(scc::Cpu& cpu, std::size_t bytes) {
  Block block{cpu.id(), cpu.allocate_private(bytes), std::make_unique<std::byte[]>(bytes), bytes};
  std::byte* const at = block.bytes.get();
  blocks_.emplace(reinterpret_cast<std::uintptr_t>(at), std::move(block));
  return at;
}

const ChipMemory::Block* ChipMemory::find(const void* at, std::size_t bytes) const {
  const auto address = reinterpret_cast<std::uintptr_t>(at);
  auto block = blocks_.upper_bound(address);
  if (block == blocks_.begin()) return nullptr;
  --block;
  return address + bytes <= block->first + block->second.size ? &block->second : nullptr;
}

ChipMemory::Place ChipMemory::place(const void* at) const {
  const Block* const block = find(at, 1);
  TOMBOLO_CHECK(block != nullptr, "{} is no memory of the chip", at);
  const auto offset =
      static_cast<std::uint64_t>(static_cast<const std::byte*>(at) - block->bytes.get());
  return {block->owner, {block->first + offset, MemoryType::dcm}};
}

void ChipMemory::stored(scc::Cpu& cpu, const void* from, std::size_t bytes) {
  cpu.write(place(from).view, from, bytes);
}

void ChipMemory::load(scc::Cpu& cpu, void* to, std::size_t bytes) {
  cpu.read(place(to).view, to, bytes);
}

// ---- Messages -----------------------------------------------------------------------------------

std::size_t ChipLink::most_bytes() const { return cpu_.chip().mpb_bytes() - data_at_; }

View ChipLink::head_of(svp::Site site) const {
  return {cpu_.chip().mpb(CoreId(site)), MemoryType::ncm};
}

View ChipLink::data_of(svp::Site site) const {
  return {cpu_.chip().mpb(CoreId(site)) + data_at_, MemoryType::mpbt_wb};
}

void ChipLink::lock(svp::Site site) {
  while (!cpu_.test_and_set(CoreId(site))) cpu_.compute(cpu_.timing().loop);
}

bool ChipLink::try_send(const svp::VirtualChannel& to, svp::Kind kind,
                        std::span<const std::byte> bytes) {
  lock(to.peer);
  const bool free = cpu_.load<std::uint32_t>(head_of(to.peer)) == 0;
  if (free) {
    const Head head{.full = 1,
                    .sender = self(),
                    .opener = to.opener,
                    .number = to.number,
                    .kind = static_cast<std::uint32_t>(kind),
                    .bytes = static_cast<std::uint32_t>(bytes.size())};
    cpu_.cl1invmb();  // stores are to miss the first level, and be combined
    if (!bytes.empty()) cpu_.copy_to(data_of(to.peer), bytes.data(), bytes.size());
    cpu_.flush_combined();  // the last line of the data is there before the head says so
    cpu_.write(head_of(to.peer), &head, sizeof head);
  }
  cpu_.clear(CoreId(to.peer));
  return free;
}

bool ChipLink::receive(Head* head) {
  if (cpu_.load<std::uint32_t>(head_of(self())) == 0) return false;
  lock(self());  // CK1: the sender has written all of it
  cpu_.read(head_of(self()), head, sizeof *head);
  received_.resize(head->bytes);
  cpu_.cl1invmb();  // lines of the message before
  if (head->bytes > 0) cpu_.copy_from(data_of(self()), received_.data(), head->bytes);
  return true;
}

void ChipLink::leave_buffer(bool taken) {
  if (taken) cpu_.store<std::uint32_t>(head_of(self()), 0);
  cpu_.clear(CoreId(self()));
}

// ---- Memory of other cores ----------------------------------------------------------------------

// The creator's stores leave its caches, and no old line of its memory stays in them, which could
// overwrite the family's output later.
void ChipReach::publish(const void*, std::size_t) {
  if (!care_.publish) return;
  cpu_.wbinvd();
  cpu_.flush_l2();
}

// The family's output is in memory; lines of it that the creator has read since are stale.
void ChipReach::refresh(void* to, std::size_t bytes) {
  if (care_.refresh) {
    cpu_.wbinvd();
    cpu_.flush_l2();
  }
  memory_.load(cpu_, to, bytes);
}

template <class Access>
void ChipReach::by_pages(const ChipMemory::Place& place, std::size_t bytes, MemoryType type,
                         Access&& access) {
  scc::Chip& chip = cpu_.chip();
  const std::uint32_t entry = chip.first_free_entry();
  for (std::size_t done = 0; done < bytes;) {
    const Address from = place.view.first + done;
    const std::uint64_t in_page = from.byte() % chip.page_bytes();
    const std::size_t n = std::min<std::size_t>(bytes - done, chip.page_bytes() - in_page);
    cpu_.cl1invmb();  // CK2, and lines of an earlier use of the same memory are stale
    cpu_.wait_for_writes();
    cpu_.set_lut(
        cpu_.id(), entry,
        cpu_.read_lut(place.owner, static_cast<std::uint32_t>(from.byte() / chip.page_bytes())));
    cpu_.wait_for_writes();
    access(View{chip.page(entry) + in_page, type}, done, n);
    done += n;
  }
}

bool ChipReach::is_there(svp::Site site, std::uint64_t address, std::size_t bytes) const {
  const ChipMemory::Block* const block =
      memory_.find(reinterpret_cast<const void*>(address), bytes);
  return block != nullptr && block->owner == CoreId(site);
}

void ChipReach::read_there(std::uint64_t address, std::byte* to, std::size_t bytes) {
  by_pages(memory_.place(reinterpret_cast<const void*>(address)), bytes, MemoryType::mpbt_wb,
           [&](View view, std::size_t at, std::size_t n) { cpu_.read(view, to + at, n); });
}

void ChipReach::write_there(std::uint64_t address, const std::byte* from, std::size_t bytes) {
  by_pages(memory_.place(reinterpret_cast<const void*>(address)), bytes, MemoryType::mpbt_wb,
           [&](View view, std::size_t at, std::size_t n) {
             cpu_.write(view, from + at, n);
             cpu_.flush_combined();  // the last line is in memory before the completion is sent
           });
  cpu_.wait_for_writes();
}

Status ChipReach::check_there(svp::Site site, std::uint64_t address, std::size_t bytes) const {
  if (is_there(site, address, bytes)) return {};
  return Status::out_of_range("an array of the creator is no memory of its core");
}

Status ChipReach::get(svp::Site site, std::uint64_t address, void* to, std::size_t bytes) {
  if (bytes == 0) return {};
  TOMBOLO_TRY(check_there(site, address, bytes));
  read_there(address, static_cast<std::byte*>(to), bytes);
  return {};
}

Status ChipReach::put(svp::Site site, std::uint64_t address, const void* from, std::size_t bytes) {
  if (bytes == 0) return {};
  TOMBOLO_TRY(check_there(site, address, bytes));
  write_there(address, static_cast<const std::byte*>(from), bytes);
  return {};
}

Status ChipReach::engine_get(svp::Site site, std::uint64_t address, void* to, std::size_t bytes) {
  TOMBOLO_TRY(check_there(site, address, bytes));
  const auto place = memory_.place(reinterpret_cast<const void*>(address));
  const Status status = engine_.get({place.owner, place.view.first}, to, bytes);
  return status.code() == Code::no_memory ? get(site, address, to, bytes) : status;
}

Status ChipReach::engine_put(svp::Site site, std::uint64_t address, const void* from,
                             std::size_t bytes) {
  TOMBOLO_TRY(check_there(site, address, bytes));
  const auto place = memory_.place(reinterpret_cast<const void*>(address));
  const Status status = engine_.put({place.owner, place.view.first}, from, bytes);
  return status.code() == Code::no_memory ? put(site, address, from, bytes) : status;
}

void* ChipReach::map(svp::Site site, std::uint64_t address, std::size_t bytes) {
  if (!is_there(site, address, bytes)) return nullptr;
  auto held = std::make_unique<std::byte[]>(bytes);
  read_there(address, held.get(), bytes);
  void* const mapped = held.get();
  mapped_.emplace(mapped, std::move(held));
  return mapped;
}

void ChipReach::unmap(svp::Site, std::uint64_t address, void* at, std::size_t bytes, bool written) {
  if (written) write_there(address, static_cast<const std::byte*>(at), bytes);
  mapped_.erase(at);
}

}  // namespace tombolo::experiments
