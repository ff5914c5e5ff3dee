// SPDX-License-Identifier: Apache-2.0
// Purpose: one core of the chip: its caches, its write-combining buffer and its lookup table, and
// the operations that a program has: loads and stores by memory type, the instructions that manage
// the caches, the registers. Each costs its virtual time.
//
//   cpu.write({address, MemoryType::mpbt_wt}, data, 64);
//   cpu.flush_combined();            // the dummy store
//   cpu.wait_for_writes();
//
// How a miss goes. A load that misses waits for the whole trip. A store that leaves the core is
// posted: the core goes on, with work and in L1, but has one write outstanding at most. The next
// store to leave, or to be combined, waits until it is done, and so does any other access to L2 or
// beyond (decision 0039). Without the parameter stalls_behind_write a load looks into the caches
// meanwhile.
//
// Invariants: CU1 a load returns the bytes that this hardware would return: a line that stays in a
//                 cache, or memory that a core's cache or buffer has not written to yet, is stale.
//             CU2 a line leaves a cache whole; the combining buffer writes just the bytes it has.
//             CU3 this core's own accesses to memory are in order: a request is sent when the write
//                 before it is done.
//             CU4 a load of bytes that wait in this core's combining buffer sends them off first
//                 (assumed: the papers do not say it, and one core's own order would break).
// Thread safety: used from its program only, or before and after the run.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <functional>
#include <optional>

#include "backends/scc/chip.h"
#include "backends/scc/memory_type.h"
#include "simulator/parts/set_associative_cache.h"
#include "simulator/parts/write_combining_buffer.h"

namespace tombolo::scc {

// The operations of a core, counted for reports.
struct Counters {
  std::uint64_t words_read = 0;
  std::uint64_t words_written = 0;
  std::uint64_t requests_read = 0;     // that left the core
  std::uint64_t requests_written = 0;  // likewise
  std::uint64_t tests = 0;             // of test-and-set registers
  std::uint64_t tests_failed = 0;
  std::uint64_t kernel_flushes = 0;
  // The time in which it waited: for loads that left it, for the write before, for registers.
  Duration reading;
  Duration writing;
  Duration testing;
};

class Cpu {
 public:
  Cpu(Chip& chip, CoreId id);

  CoreId id() const { return id_; }
  Chip& chip() { return chip_; }
  const Timing& timing() const { return timing_; }
  const Counters& counters() const { return counters_; }

  // ---- Time -------------------------------------------------------------------------------------

  Time now() const { return fibre_->now(); }
  simulator::Core& fibre() { return *fibre_; }
  // Lets another fibre of the simulation run on this core from now on, as a system's threads do
  // that share it. The one that ran before waits until it is called here again; time does not
  // go back.
  void run_on(simulator::Core& fibre) { fibre_ = &fibre; }
  // Work that touches no memory.
  void compute(Duration d) { fibre_->advance(d); }
  void compute_cycles(std::int64_t n) { fibre_->advance(timing_.core.cycles(n)); }
  void compute_cycles(HalfCycles n) { fibre_->advance(timing_.cycles(n)); }

  // ---- Loads and stores -------------------------------------------------------------------------

  // Word by word (4 bytes), each a load instruction; up to 8 bytes inside an aligned 8 are one. Of
  // memory that is not cached by doublewords (8 bytes): decision 0012.
  void read(View from, void* to, std::size_t bytes);
  void write(View to, const void* from, std::size_t bytes);
  template <class T>
  T load(View from) {
    static_assert(sizeof(T) <= 8);
    T value;
    read(from, &value, sizeof value);
    return value;
  }
  template <class T>
  void store(View to, T value) {
    static_assert(sizeof(T) <= 8);
    write(to, &value, sizeof value);
  }
  // A copy loop: as read and write, and the instructions around them.
  void copy_from(View from, void* to, std::size_t bytes) {
    copy(bytes, [&] { read(from, to, bytes); });
  }
  void copy_to(View to, const void* from, std::size_t bytes) {
    copy(bytes, [&] { write(to, from, bytes); });
  }

  // ---- Caches -----------------------------------------------------------------------------------

  // Invalidates the lines of MPBT pages in L1. Stores that hit them and nothing else are lost.
  void cl1invmb();
  // Privileged, with the system call: writes L1 back (into L2 where the line is there) and
  // invalidates it; invalidates it alone. Neither touches L2 (000 section 4.2.4).
  void wbinvd();
  void invd();
  // The kernel's flush of L2: reads as many bytes that are not in it, from two blocks in turn (002
  // section 2.3.4). Stale lines in L1 go as well, since it is smaller.
  void flush_l2();
  // Empties the combining buffer by a store to a line of no other use (002 section 2.3.1).
  void flush_combined();
  // Until this core's writes are in memory; bytes still combined or cached do not count.
  void wait_for_writes() { wait_until(write_done_); }

  // On a chip that has them (000 section 4.6). The range is in this core's physical memory.
  void write_back(View first, std::size_t bytes);
  void invalidate(View first, std::size_t bytes);
  // Lines of the range in the caches of another core, at its own physical addresses. They are gone
  // when wait_for_writes() returns.
  void invalidate_at(CoreId other, Address first, std::size_t bytes);
  // The tile's copy engine moves whole lines while the core goes on. They have arrived when
  // wait_for_writes() returns. `data`: their bytes, where the simulated memory at `from` stands
  // only for the time that it takes; null: the bytes that are there.
  void copy_by_engine(View from, View to, std::size_t bytes, const std::byte* data = nullptr);

  // ---- Registers --------------------------------------------------------------------------------

  // Reads the test-and-set register of a core. True: it was clear, and is ours now.
  bool test_and_set(CoreId of);
  void clear(CoreId of);
  // Sets the interrupt bit of a core's registers.
  void interrupt(CoreId of);
  // The interrupts of this core. A program looks for them where it can be interrupted: it takes
  // one, or waits for one until the deadline; false: none came.
  bool take_interrupt();
  bool wait_for_interrupt(Time deadline = Time::never());
  // Changes an entry of a core's lookup table. It counts when wait_for_writes() returns; lines in
  // caches stay, with their bytes.
  void set_lut(CoreId of, std::uint32_t entry, LutEntry to);
  // Reads one, over the mesh.
  LutEntry read_lut(CoreId of, std::uint32_t entry);

  // ---- Memory of its own ------------------------------------------------------------------------

  // Takes bytes of the core's private memory, from a new line on, for good.
  Address allocate_private(std::size_t bytes);

  // The caches' bytes of a line, without touching anything: for tests.
  bool in_l1(Address a) const { return l1_.look(line_size_.line(a)).has_value(); }
  bool in_l2(Address a) const { return l2_.look(line_size_.line(a)).has_value(); }

 private:
  friend class Chip;

  static constexpr std::size_t core_line_bytes = 32;
  static constexpr simulator::LineKind normal = 0;
  static constexpr simulator::LineKind mpbt = 1;
  using LineBytes = std::array<std::byte, core_line_bytes>;

  void run(simulator::Core& fibre, const std::function<void(Cpu&)>& program);

  bool reads_uncached(MemoryType type) const;
  void read_in_line(View from, std::byte* to, std::size_t bytes);
  void read_uncached(View from, std::byte* to, std::size_t bytes);
  void write_in_line(View to, const std::byte* from, std::size_t bytes);
  void write_l2(View to, const std::byte* from, std::size_t bytes);
  // `instruction`: the time of each store instruction; none if they have been counted.
  void write_uncached(View to, const std::byte* from, std::size_t bytes, Duration instruction);
  void combine(View to, const std::byte* from, std::size_t bytes);
  // A line that has left a cache, by value: while it is on its way, others may use the cache.
  struct LeavingLine {
    explicit LeavingLine(const simulator::CachedLine& gone) : line(gone.line), kind(gone.kind) {
      std::copy_n(gone.bytes, core_line_bytes, bytes.data());
    }
    simulator::CachedLine seen() const { return {line, kind, true, bytes.data()}; }
    simulator::Line line;
    simulator::LineKind kind;
    LineBytes bytes;
  };
  LineBytes fill_l1(View of);
  void leave_l1(const simulator::CachedLine& line);
  // A line, or a part of it, over the mesh.
  void request_read(Address from, std::byte* to, std::size_t bytes);
  void post_write(Address line, std::uint64_t mask, const std::byte* bytes);
  void post(const simulator::CombinedLine& line) {
    post_write(line_size_.first(line.line), line.mask, line.bytes.data());
  }
  // Reads of a core's registers; the look happens at the device.
  template <class Look>
  void read_registers(CoreId of, Look&& look);
  template <class Effect>
  void post_to_registers(CoreId of, const Effect& effect);
  Chip::Trip send(const Target& target, Time start, std::size_t out, std::size_t back,
                  Chip::Sender sender = Chip::Sender::core);
  Time await_request(Address to);
  // Before an access that L1 does not answer.
  void stall_behind_write() {
    if (stalls_behind_write_ && own_write_done_ > now()) [[unlikely]] {
      wait_until(own_write_done_);
      see_others();
    }
  }
  void wait_until(Time done) {
    if (done <= now()) return;
    counters_.writing += done - now();
    fibre_->advance_to(done);
  }
  Duration before(Address to) const;
  Duration after(const Target& target) const;
  bool by_bypass(DeviceKind kind, std::uint32_t device) const;
  std::int64_t valid_lines() const;
  bool l2_has_room() const;
  void read_flush_block();
  void write_line_back(simulator::Line line);
  void drop(Address line);
  // A word at which a fibre waits for interrupts; nothing else waits at its core's registers.
  Address interrupt_word(CoreId of) const;
  LineBytes engine_reads(View from);
  template <class Visit>
  void each_line(View first, std::size_t bytes, Visit&& visit);
  template <class Body>
  void copy(std::size_t bytes, Body&& body) {
    // The cost of a word beyond the load or the store itself.
    fibre_->advance((timing_.copy_word - timing_.load) *
                    static_cast<std::int64_t>((bytes + 3) / 4));
    body();
  }

  // Where others reach into these caches, their operations before now must have happened.
  void see_others() {
    if (caches_are_shared_) [[unlikely]]
      fibre_->await_turn();
  }

  Chip& chip_;
  const Timing& timing_;
  CoreId id_;
  bool caches_are_shared_;
  bool stalls_behind_write_;
  simulator::Core* fibre_ = nullptr;
  simulator::LineSize line_size_{core_line_bytes};
  simulator::SetAssociativeCache l1_;
  simulator::SetAssociativeCache l2_;
  simulator::WriteCombiningBuffer combined_{line_size_};
  Time write_done_;                     // of all that this core or its tile's engine has under way
  Time own_write_done_;                 // of the last write of the core itself
  std::array<Time, 4> engine_lines_{};  // when the lines that the engine has under way arrive
  std::uint64_t private_used_ = 0;
  unsigned flush_blocks_ = 0;  // that the kernel has read
  bool interrupted_ = false;
  Counters counters_;
};

}  // namespace tombolo::scc
