// SPDX-License-Identifier: Apache-2.0
#include "backends/scc/cpu.h"

#include <cstring>
#include <utility>

#include "base/copy.h"

namespace tombolo::scc {
namespace {

using simulator::CachedLine;
using simulator::CacheShape;
using simulator::WriteOutcome;
using simulator::WritePolicy;

CacheShape shape(std::int64_t bytes, const Parameters& p) {
  return {.bytes = static_cast<std::size_t>(bytes),
          .ways = static_cast<std::uint32_t>(p.caches.ways),
          .line_size = simulator::LineSize(static_cast<std::size_t>(p.caches.line_bytes))};
}

std::int64_t words(std::size_t bytes) { return static_cast<std::int64_t>((bytes + 3) / 4); }

// Load or store instructions for a part of a line: words, or one up to 8 bytes in an aligned 8.
std::int64_t instructions(Address first, std::size_t bytes) {
  return first.byte() / 8 == (first.byte() + bytes - 1) / 8 ? 1 : words(bytes);
}

constexpr std::size_t word_size = 4;
constexpr std::size_t double_word = 8;
constexpr std::uint64_t whole_line = 0xffffffff;

std::uint64_t mask_of(std::size_t offset, std::size_t bytes) {
  return ((std::uint64_t{1} << bytes) - 1) << offset;
}

// Calls access(done, n) for each transaction on the core's bus of 64 bits: aligned parts of `unit`
// bytes, or all at once if it lies inside an aligned 8.
template <class Access>
void by_transactions(Address first, std::size_t bytes, std::size_t unit, Access&& access) {
  const std::uint64_t start = first.byte();
  if (start / 8 == (start + bytes - 1) / 8) return access(0, bytes);
  for (std::size_t done = 0; done < bytes;) {
    const std::size_t n = std::min<std::size_t>(bytes - done, unit - (start + done) % unit);
    access(done, n);
    done += n;
  }
}

}  // namespace

Cpu::Cpu(Chip& chip, CoreId id)
    : chip_(chip),
      timing_(chip.timing()),
      id_(id),
      caches_are_shared_(chip.parameters().extensions.remote_invalidation),
      stalls_behind_write_(chip.parameters().core.stalls_behind_write),
      l1_(shape(chip.parameters().caches.l1_bytes, chip.parameters())),
      l2_(shape(chip.parameters().caches.l2_bytes, chip.parameters())) {}

void Cpu::run(simulator::Core& fibre, const std::function<void(Cpu&)>& program) {
  fibre_ = &fibre;
  program(*this);
  wait_for_writes();
}

// ---- Loads --------------------------------------------------------------------------------------

bool Cpu::reads_uncached(MemoryType type) const {
  if (!scc::in_l1(type)) return true;
  return chip_.parameters().errata.mpbt_wt_reads_uncached && writes_through_l1(type) &&
         type != MemoryType::wt;
}

void Cpu::read(View from, void* to, std::size_t bytes) {
  auto* out = static_cast<std::byte*>(to);
  counters_.words_read += static_cast<std::uint64_t>(words(bytes));
  while (bytes > 0) {
    const std::size_t n = std::min(bytes, core_line_bytes - line_size_.offset(from.first));
    read_in_line(from, out, n);
    from = from + n;
    out += n;
    bytes -= n;
  }
}

void Cpu::read_in_line(View from, std::byte* to, std::size_t bytes) {
  see_others();
  if (combined_.holds(line_size_.line(from.first))) [[unlikely]]
    post(*combined_.drain());  // CU4
  if (reads_uncached(from.type)) return read_uncached(from, to, bytes);
  fibre_->advance(timing_.load * instructions(from.first, bytes));
  if (l1_.read(from.first, to, bytes)) return;
  const LineBytes line = fill_l1(from);
  copy_bytes(to, line.data() + line_size_.offset(from.first), bytes);
}

void Cpu::read_uncached(View from, std::byte* to, std::size_t bytes) {
  const bool first_word_only =
      from.type == MemoryType::ncm_wcb && chip_.parameters().errata.ncm_wcb_reads_first_word;
  by_transactions(from.first, bytes, double_word, [&](std::size_t done, std::size_t n) {
    Address at = from.first + done;
    if (first_word_only) at = line_size_.first(line_size_.line(at)) + at.byte() % 8;
    fibre_->advance(timing_.load);
    request_read(at, to + done, n);
  });
}

// The bytes as they were fetched: while the line that had to make room is on its way, others may
// take this one away again.
Cpu::LineBytes Cpu::fill_l1(View of) {
  const simulator::Line line = line_size_.line(of.first);
  const Address first = line_size_.first(line);
  LineBytes bytes;
  std::optional<LeavingLine> out_of_l2;
  stall_behind_write();
  if (!scc::in_l2(of.type)) {
    request_read(first, bytes.data(), core_line_bytes);
  } else if (l2_.read(first, bytes.data(), core_line_bytes)) {
    fibre_->advance(timing_.l2);
  } else {
    request_read(first, bytes.data(), core_line_bytes);
    const auto gone = l2_.fill(line, normal, bytes.data());
    if (gone && gone->dirty) out_of_l2 = LeavingLine(*gone);
  }
  const auto gone = l1_.fill(line, is_mpbt(of.type) ? mpbt : normal, bytes.data());
  std::optional<LeavingLine> out_of_l1;
  if (gone && gone->dirty) out_of_l1 = LeavingLine(*gone);
  if (out_of_l2) post_write(line_size_.first(out_of_l2->line), whole_line, out_of_l2->bytes.data());
  if (out_of_l1) leave_l1(out_of_l1->seen());
  return bytes;
}

// A changed line of L1 goes to L2 if it is there, which allocates no line for a write.
void Cpu::leave_l1(const CachedLine& line) {
  const Address first = line_size_.first(line.line);
  if (line.kind == normal) {
    stall_behind_write();
    fibre_->advance(timing_.l2);
    if (l2_.write(first, line.bytes, core_line_bytes, WritePolicy::write_back) ==
        WriteOutcome::kept)
      return;
  }
  post_write(first, whole_line, line.bytes);
}

// ---- Stores -------------------------------------------------------------------------------------

void Cpu::write(View to, const void* from, std::size_t bytes) {
  const auto* in = static_cast<const std::byte*>(from);
  counters_.words_written += static_cast<std::uint64_t>(words(bytes));
  while (bytes > 0) {
    const std::size_t n = std::min(bytes, core_line_bytes - line_size_.offset(to.first));
    write_in_line(to, in, n);
    to = to + n;
    in += n;
    bytes -= n;
  }
}

void Cpu::write_in_line(View to, const std::byte* from, std::size_t bytes) {
  see_others();
  const WritePolicy policy =
      writes_through_l1(to.type) ? WritePolicy::write_through : WritePolicy::write_back;
  if (scc::in_l1(to.type) && l1_.write(to.first, from, bytes, policy) == WriteOutcome::kept) {
    fibre_->advance(timing_.store * instructions(to.first, bytes));
    return;
  }
  if (to.type == MemoryType::wt) l2_.write(to.first, from, bytes, policy);
  if (combines(to.type)) return combine(to, from, bytes);
  if (scc::in_l2(to.type) && l2_.look(line_size_.line(to.first))) return write_l2(to, from, bytes);
  write_uncached(to, from, bytes, timing_.store);
}

// L2 has the line, but perhaps no longer when the write before is done.
void Cpu::write_l2(View to, const std::byte* from, std::size_t bytes) {
  fibre_->advance(timing_.store * instructions(to.first, bytes));
  stall_behind_write();
  if (l2_.write(to.first, from, bytes, WritePolicy::write_back) != WriteOutcome::kept)
    return write_uncached(to, from, bytes, Duration());
  fibre_->advance(timing_.l2 * instructions(to.first, bytes));
}

void Cpu::write_uncached(View to, const std::byte* from, std::size_t bytes, Duration instruction) {
  const std::size_t unit = scc::in_l1(to.type) ? word_size : double_word;
  by_transactions(to.first, bytes, unit, [&](std::size_t done, std::size_t n) {
    const Address at = to.first + done;
    const std::size_t offset = line_size_.offset(at);
    LineBytes line;
    std::memcpy(line.data() + offset, from + done, n);
    fibre_->advance(instruction);
    post_write(line_size_.first(line_size_.line(at)), mask_of(offset, n), line.data());
  });
}

void Cpu::combine(View to, const std::byte* from, std::size_t bytes) {
  wait_for_writes();  // one outstanding
  fibre_->advance(timing_.store * instructions(to.first, bytes));
  if (const auto out = combined_.write(to.first, from, bytes)) post(*out);
  if (combined_.full()) post(*combined_.drain());
}

// ---- Over the mesh ------------------------------------------------------------------------------

bool Cpu::by_bypass(DeviceKind kind, std::uint32_t device) const {
  return kind == DeviceKind::mpb && device == chip_.tile_number(id_) &&
         !chip_.parameters().errata.local_mpb_bypass_unusable;
}

// The core's own part of a trip: until the request leaves the tile, caches were looked into; the
// rest of it after the reply has come.
Duration Cpu::before(Address to) const {
  // Looked at before its turn, so an entry that was just set may not be there yet: resolve()
  // checks.
  const std::uint64_t number = to.byte() / chip_.page_bytes();
  if (number >= static_cast<std::uint64_t>(chip_.parameters().layout.lut_entries))
    return timing_.miss + timing_.l2;
  const LutEntry entry = chip_.lut(id_, static_cast<std::uint32_t>(number));
  return by_bypass(entry.kind, entry.device) ? Duration() : timing_.miss + timing_.l2;
}
Duration Cpu::after(const Target& target) const {
  if (by_bypass(target.kind, target.number)) return timing_.local_mpb;
  return target.device->timing.path - timing_.l2;
}

Chip::Trip Cpu::send(const Target& target, Time start, std::size_t out, std::size_t back,
                     Chip::Sender sender) {
  if (!by_bypass(target.kind, target.number))
    return chip_.send(id_, target, start, out, back, sender);
  const auto slot = target.device->server.serve(start, target.device->timing.busy);
  return {slot.begin, slot.begin};  // all of it is in local_mpb
}

// The turn to hand in a request that the core waits for, and when it leaves the tile: not before
// the write before it is done (CU3). It is handed in `before` earlier, as a posted write is: else a
// device that is busy all the time would serve writes before reads that came at the same time.
Time Cpu::await_request(Address to) {
  stall_behind_write();
  wait_until(write_done_ - before(to));
  fibre_->await_turn();
  return now() + before(to);
}

void Cpu::request_read(Address from, std::byte* to, std::size_t bytes) {
  ++counters_.requests_read;
  const Time leaves = await_request(from);
  const Time begin = now();
  const Target target = chip_.resolve(id_, from);  // in its turn: an entry may have changed
  const Chip::Trip trip = send(target, leaves, 0, bytes);
  fibre_->advance_to(trip.effect);
  fibre_->await_turn();
  copy_bytes(to, target.memory(), bytes);
  fibre_->advance_to(trip.reply);
  fibre_->advance(after(target));
  counters_.reading += now() - begin;
}

void Cpu::post_write(Address line, std::uint64_t mask, const std::byte* bytes) {
  ++counters_.requests_written;
  LineBytes held;
  std::memcpy(held.data(), bytes, core_line_bytes);
  wait_for_writes();  // one outstanding
  fibre_->await_turn();
  const Target target = chip_.resolve(id_, line);
  const Chip::Trip trip = send(target, now() + before(line), core_line_bytes, 0);
  write_done_ = own_write_done_ = trip.reply + after(target);
  std::byte* const memory = target.memory();
  chip_.simulation().at(trip.effect, [held, memory, mask](Time) {
    if (mask == whole_line) {
      std::memcpy(memory, held.data(), core_line_bytes);
      return;
    }
    for (std::size_t i = 0; i < core_line_bytes; ++i)
      if ((mask >> i & 1) != 0) memory[i] = held[i];
  });
}

// ---- Caches -------------------------------------------------------------------------------------

void Cpu::cl1invmb() {
  fibre_->advance(timing_.cl1invmb);
  l1_.invalidate_kind(mpbt);
}

std::int64_t Cpu::valid_lines() const {
  std::int64_t lines = 0;
  l1_.visit([&](const CachedLine&) { ++lines; });
  return lines;
}

void Cpu::wbinvd() {
  fibre_->advance(timing_.system_call + timing_.wbinvd + timing_.wbinvd_valid_line * valid_lines());
  l1_.flush([this](const CachedLine& line) { leave_l1(line); });
  wait_for_writes();
}

void Cpu::invd() {
  fibre_->advance(timing_.system_call + timing_.invd_valid_line * valid_lines());
  l1_.invalidate_if([](const CachedLine&) { return true; });
}

void Cpu::flush_l2() {
  ++counters_.kernel_flushes;
  fibre_->advance(timing_.system_call);
  // While a set has room, reading a block fills that first and leaves old lines in their ways.
  if (l2_has_room()) read_flush_block();
  read_flush_block();
  wait_for_writes();
}

bool Cpu::l2_has_room() const {
  std::size_t lines = 0;
  l2_.visit([&](const CachedLine&) { ++lines; });
  return lines * core_line_bytes < l2_.shape().bytes;
}

// The two blocks in turn are the last of the private memory that is not public.
void Cpu::read_flush_block() {
  const auto bytes = static_cast<std::uint64_t>(chip_.parameters().caches.l2_bytes);
  const Address block(chip_.private_bytes() - bytes * (1 + flush_blocks_++ % 2));
  for (std::uint64_t at = 0; at < bytes; at += core_line_bytes) {
    load<std::uint32_t>({block + at, MemoryType::dcm});
    fibre_->advance(timing_.flush_loop);
  }
}

void Cpu::flush_combined() {
  if (chip_.parameters().extensions.guaranteed_commit) {
    fibre_->advance(timing_.store);
    if (const auto out = combined_.drain()) post(*out);
    return;
  }
  // A line for each core at the end of its controller's legacy shared memory.
  const Address line = chip_.shared(chip_.controller_of(id_)) +
                       (chip_.page_bytes() - (id_.index() + 1) * core_line_bytes);
  const std::uint32_t nothing = 0;
  write({line, MemoryType::mpbt_wb}, &nothing, sizeof nothing);
}

template <class Visit>
void Cpu::each_line(View first, std::size_t bytes, Visit&& visit) {
  if (bytes == 0) return;
  const std::uint64_t last = line_size_.line(first.first + (bytes - 1)).number();
  for (std::uint64_t n = line_size_.line(first.first).number(); n <= last; ++n) {
    fibre_->advance(timing_.line_operation);
    visit(simulator::Line(n));
  }
}

void Cpu::write_back(View first, std::size_t bytes) {
  TOMBOLO_CHECK(chip_.parameters().extensions.selective_write_back,
                "core {}: write_back on a chip without selective_write_back", id_.index());
  each_line(first, bytes, [this](simulator::Line line) { write_line_back(line); });
  wait_for_writes();
}

void Cpu::write_line_back(simulator::Line line) {
  if (combined_.holds(line)) post(*combined_.drain());
  // L1 has the newer bytes: they go to L2, if it has the line, and on from there.
  if (const auto out = l1_.clean(line)) leave_l1(LeavingLine(*out).seen());
  if (const auto out = l2_.clean(line)) post_write(line_size_.first(line), whole_line, out->bytes);
}

void Cpu::invalidate(View first, std::size_t bytes) {
  TOMBOLO_CHECK(chip_.parameters().extensions.selective_invalidation,
                "core {}: invalidate on a chip without selective_invalidation", id_.index());
  const Address end = first.first + bytes;
  each_line(first, bytes, [&](simulator::Line line) {
    // Stores to the rest of a line that is only partly in the range are not to be lost.
    const Address start = line_size_.first(line);
    if (start < first.first || start + core_line_bytes > end) write_line_back(line);
    stall_behind_write();
    drop(start);
  });
}

void Cpu::drop(Address line) {
  l1_.evict(line_size_.line(line));
  l2_.evict(line_size_.line(line));
}

void Cpu::invalidate_at(CoreId other, Address first, std::size_t bytes) {
  TOMBOLO_CHECK(chip_.parameters().extensions.remote_invalidation,
                "core {}: invalidate_at on a chip without remote_invalidation", id_.index());
  const Address registers = chip_.registers(other);
  Cpu* const cpu = &chip_.cpu(other);
  each_line({first, MemoryType::ncm}, bytes, [&](simulator::Line line) {
    fibre_->await_turn();
    const Target target = chip_.resolve_registers(id_, other);
    const Chip::Trip trip = send(target, now() + before(registers), 8, 0);
    // It waits for nothing, but is to be done when the core waits for its writes.
    write_done_ = std::max(write_done_, trip.reply);
    const Address gone = line_size_.first(line);
    chip_.simulation().at(trip.effect, [cpu, gone](Time) { cpu->drop(gone); });
  });
}

// ---- Copy engine --------------------------------------------------------------------------------

// The engine sits beside L2 and sees the contents of this core's caches.
Cpu::LineBytes Cpu::engine_reads(View from) {
  LineBytes bytes;
  const simulator::Line line = line_size_.line(from.first);
  if (const auto held = l1_.look(line)) {
    std::memcpy(bytes.data(), held->bytes, core_line_bytes);
  } else if (const auto below = l2_.look(line)) {
    std::memcpy(bytes.data(), below->bytes, core_line_bytes);
  } else {
    chip_.peek(id_, from.first, bytes.data(), core_line_bytes);
  }
  return bytes;
}

void Cpu::copy_by_engine(View from, View to, std::size_t bytes, const std::byte* data) {
  TOMBOLO_CHECK(chip_.parameters().extensions.copy_engine,
                "core {}: copy_by_engine on a chip without a copy engine", id_.index());
  TOMBOLO_CHECK(line_size_.offset(from.first) == 0 && line_size_.offset(to.first) == 0 &&
                    bytes % core_line_bytes == 0,
                "core {}: the copy engine moves whole lines", id_.index());
  fibre_->advance(timing_.copy_engine_start);
  // This core's earlier stores to these lines are older than the bytes that the engine brings.
  if (const auto out = combined_.drain()) post(*out);
  for (std::size_t done = 0; done < bytes; done += core_line_bytes) drop(to.first + done);
  wait_for_writes();
  fibre_->await_turn();
  for (std::size_t done = 0; done < bytes; done += core_line_bytes) {
    // As many lines under way as it remembers; the oldest makes room.
    Time& slot = engine_lines_[done / core_line_bytes % engine_lines_.size()];
    Time start = std::max(now(), slot);
    if (!l1_.look(line_size_.line(from.first + done)) &&
        !l2_.look(line_size_.line(from.first + done)))
      start = send(chip_.resolve(id_, from.first + done), start, 0, core_line_bytes,
                   Chip::Sender::engine)
                  .reply;
    const Target target = chip_.resolve(id_, to.first + done);
    const Chip::Trip trip = send(target, start, core_line_bytes, 0, Chip::Sender::engine);
    slot = trip.reply;
    write_done_ = std::max(write_done_, trip.reply);
    LineBytes held;
    if (data == nullptr) {
      held = engine_reads(from + done);
    } else {
      std::memcpy(held.data(), data + done, core_line_bytes);
    }
    std::byte* const memory = target.memory();
    chip_.simulation().at(
        trip.effect, [held, memory](Time) { std::memcpy(memory, held.data(), core_line_bytes); });
  }
}

// ---- Registers ----------------------------------------------------------------------------------

template <class Look>
void Cpu::read_registers(CoreId of, Look&& look) {
  const Address registers = chip_.registers(of);
  fibre_->advance(timing_.load);
  const Time leaves = await_request(registers);
  const Time begin = now();
  const Target target = chip_.resolve_registers(id_, of);
  const Chip::Trip trip = send(target, leaves, 0, 4);
  fibre_->advance_to(trip.effect);
  fibre_->await_turn();
  look();
  fibre_->advance_to(trip.reply);
  fibre_->advance(after(target));
  counters_.testing += now() - begin;
}

bool Cpu::test_and_set(CoreId of) {
  ++counters_.tests;
  bool ours = false;
  read_registers(of, [&] {
    std::uint8_t& bit = chip_.test_and_set_bits()[of.index()];
    ours = bit == 0;
    bit = 1;
  });
  if (!ours) ++counters_.tests_failed;
  return ours;
}

LutEntry Cpu::read_lut(CoreId of, std::uint32_t entry) {
  LutEntry found;
  read_registers(of, [&] { found = chip_.lut(of, entry); });
  return found;
}

template <class Effect>
void Cpu::post_to_registers(CoreId of, const Effect& effect) {
  fibre_->advance(timing_.store);
  wait_for_writes();  // one outstanding
  fibre_->await_turn();
  const Target target = chip_.resolve_registers(id_, of);
  const Chip::Trip trip = send(target, now() + before(chip_.registers(of)), 4, 0);
  write_done_ = own_write_done_ = trip.reply + after(target);
  chip_.simulation().at(trip.effect, effect);
}

void Cpu::clear(CoreId of) {
  std::uint8_t* const bit = &chip_.test_and_set_bits()[of.index()];
  post_to_registers(of, [bit](Time) { *bit = 0; });
}

Address Cpu::interrupt_word(CoreId of) const {
  return chip_.registers(of) + of.index() * std::uint64_t{8};
}

void Cpu::interrupt(CoreId of) {
  Cpu* const other = &chip_.cpu(of);
  post_to_registers(of, [other](Time at) {
    other->interrupted_ = true;
    other->chip_.simulation().wake(other->interrupt_word(other->id_), 8, at);
  });
}

bool Cpu::take_interrupt() {
  fibre_->await_turn();
  return std::exchange(interrupted_, false);
}

bool Cpu::wait_for_interrupt(Time deadline) {
  const bool came = fibre_->wait_until(
      interrupt_word(id_), "an interrupt", [this] { return interrupted_; }, deadline);
  if (came) interrupted_ = false;
  return came;
}

void Cpu::set_lut(CoreId of, std::uint32_t entry, LutEntry to) {
  Chip* const chip = &chip_;
  post_to_registers(of, [chip, of, entry, to](Time) { chip->set_lut(of, entry, to); });
}

Address Cpu::allocate_private(std::size_t bytes) {
  const Address at(private_used_);
  private_used_ += (bytes + core_line_bytes - 1) / core_line_bytes * core_line_bytes;
  // The kernel's two blocks for flushes lie at the end.
  const auto reserved = 2 * static_cast<std::uint64_t>(chip_.parameters().caches.l2_bytes);
  TOMBOLO_CHECK(private_used_ + reserved <= chip_.private_bytes(),
                "core {}: {} bytes of private memory are wanted; there are {}", id_.index(),
                private_used_, chip_.private_bytes() - reserved);
  return at;
}

}  // namespace tombolo::scc
