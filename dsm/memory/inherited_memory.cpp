// SPDX-License-Identifier: Apache-2.0
#include "dsm/memory/inherited_memory.h"

#include <array>
#include <climits>

#include "base/check.h"
#include "base/rounding.h"
#include "host/memory/page.h"
#include "host/memory/placed_memory.h"
#include "host/memory/raw_calls.h"
#include "host/waiting/futex.h"
#include "machine/waiting.h"

namespace tombolo::dsm {
namespace {

using Count = InheritedMemory::Count;

constexpr std::size_t line_bytes = 64;
constexpr std::uint32_t counts_of_sleepers = 1024;
constexpr std::uint32_t longest_sleep = 10'000;  // microseconds
// Of some 50 ns each, then sleep: a processor that is given away without a sleep may stay away for
// a time slice.
constexpr std::uint32_t polls = 100;

constexpr std::uint32_t free_lock = 0;
constexpr std::uint32_t held = 1;
constexpr std::uint32_t wanted = 2;

const std::uint32_t* futex_of(const Count& count) {
  return reinterpret_cast<const std::uint32_t*>(&count);
}
// The half of the word that changes with small numbers.
const std::uint32_t* futex_of(const InheritedMemory::Word& word) {
  constexpr bool low_first = __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__;
  return reinterpret_cast<const std::uint32_t*>(&word) + (low_first ? 0 : 1);
}

std::size_t bytes_of_words(const MemoryPlan& plan) {
  return round_up(plan.words * sizeof(InheritedMemory::Word), line_bytes);
}
std::size_t bytes_of_locks(const MemoryPlan& plan) {
  return round_up(plan.locks * sizeof(Count), line_bytes);
}

Status barriers_are_not_there() {
  return Status::unsupported(
      "a barrier or reduction of all threads of a program that starts and ends them");
}

}  // namespace

Status InheritedMemories::make(const MemoryPlan& plan) {
  plan_ = plan;
  host::Segment program;
  TOMBOLO_TRY(host::Segment::create_anonymous(plan.at.size(), "program", program));
  TOMBOLO_TRY(
      host::Segment::create_anonymous(InheritedMemory::bytes_for(plan), "runtime", runtime_));
  program.seal();
  runtime_.seal();
  TOMBOLO_TRY(host::place_in_front(program.data(), plan.at, plan.filled));
  for (std::byte* const page : plan.closed) {
    const auto low = reinterpret_cast<std::uint64_t>(page);
    host::raw::protect({low, low + host::page_bytes()}, PROT_NONE);
  }
  return wanted_.any() ? ProcessRecords::make(wanted_, plan.threads, records_) : Status();
}

Status InheritedMemories::enter(Thread thread, std::unique_ptr<ProgramMemory>& out) {
  // No pages are counted where all processes map the same.
  if (records_ != nullptr) TOMBOLO_TRY(records_->enter(thread, nullptr));
  out = std::make_unique<InheritedMemory>(
      thread, plan_, InheritedMemory::parts_at(runtime_.data(), plan_), observer());
  return {};
}

void InheritedMemories::note_counts(bool /*thread_has_ended*/) {
  if (records_ != nullptr) records_->note();
}

void InheritedMemories::tell_counts(Thread /*memory_servers*/) {
  if (records_ == nullptr) return;
  const std::array facts{runtime::Counters::Fact{"machine", "coherent"},
                         runtime::Counters::Fact{"transport", "map"}};
  records_->tell(facts, reinterpret_cast<std::uint64_t>(plan_.at.data()));
}

Observer InheritedMemories::observer() {
  return records_ == nullptr ? Observer{} : records_->observer();
}

std::size_t InheritedMemory::bytes_for(const MemoryPlan& plan) {
  return bytes_of_words(plan) + bytes_of_locks(plan) + counts_of_sleepers * sizeof(Count);
}

InheritedMemory::Parts InheritedMemory::parts_at(std::byte* memory, const MemoryPlan& plan) {
  std::byte* const locks = memory + bytes_of_words(plan);
  return {.words = reinterpret_cast<Word*>(memory),
          .locks = reinterpret_cast<Count*>(locks),
          .sleepers = reinterpret_cast<Count*>(locks + bytes_of_locks(plan))};
}

std::size_t InheritedMemory::page_bytes() const { return host::page_bytes(); }

InheritedMemory::Word& InheritedMemory::at(WordIndex word) const {
  TOMBOLO_CHECK(word < plan_.words, "program memory: word {} of {}", word, plan_.words);
  return parts_.words[word];
}

InheritedMemory::Count& InheritedMemory::sleepers_on(WordIndex word) const {
  return parts_.sleepers[word % counts_of_sleepers];
}

void InheritedMemory::changed(WordIndex word) const {
  if (sleepers_on(word).load() != 0) host::wake(futex_of(at(word)), INT_MAX);
}

std::uint64_t InheritedMemory::load(WordIndex word) {
  looked_at_ = word;
  return seen_ = at(word).load();
}

void InheritedMemory::store(WordIndex word, std::uint64_t value) {
  at(word).store(value);
  changed(word);
}

std::uint64_t InheritedMemory::exchange(WordIndex word, std::uint64_t value) {
  const std::uint64_t former = at(word).exchange(value);
  changed(word);
  return former;
}

std::uint64_t InheritedMemory::fetch_add(WordIndex word, std::uint64_t value) {
  const std::uint64_t former = at(word).fetch_add(value);
  changed(word);
  return former;
}

std::uint64_t InheritedMemory::compare_exchange(WordIndex word, std::uint64_t expected,
                                                std::uint64_t desired) {
  if (at(word).compare_exchange_strong(expected, desired)) {
    changed(word);
    return expected;
  }
  looked_at_ = word;
  return seen_ = expected;
}

Status InheritedMemory::pause() {
  if (++pauses_ < polls) {
    machine::relax_processor();
  } else {
    // A store after the count has changed wakes this process, one before is seen by the kernel.
    sleepers_on(looked_at_).fetch_add(1);
    host::sleep_on(futex_of(at(looked_at_)), static_cast<std::uint32_t>(seen_), longest_sleep);
    sleepers_on(looked_at_).fetch_sub(1);
  }
  return {};
}

// ---- Locks --------------------------------------------------------------------------------------

InheritedMemory::Count& InheritedMemory::lock_at(Lock lock) const {
  TOMBOLO_CHECK(lock < plan_.locks, "program memory: lock {} of {}", lock, plan_.locks);
  return parts_.locks[lock];
}

Status InheritedMemory::acquire(Lock lock) {
  Count& state = lock_at(lock);
  std::uint32_t expected = free_lock;
  if (state.compare_exchange_strong(expected, held, std::memory_order_acquire)) return {};
  return waited_.for_lock([&] { return wait_for(state), Status(); });
}

void InheritedMemory::wait_for(Count& lock) const {
  for (std::uint32_t i = 0; i < polls; ++i) {
    machine::relax_processor();
    std::uint32_t expected = free_lock;
    // relaxed: a hint; the exchange decides. A failed one would take the line from the holder.
    if (lock.load(std::memory_order_relaxed) == free_lock &&
        lock.compare_exchange_strong(expected, held, std::memory_order_acquire))
      return;
  }
  while (lock.exchange(wanted, std::memory_order_acquire) != free_lock)
    host::sleep_on(futex_of(lock), wanted, longest_sleep);
}

Status InheritedMemory::try_acquire(Lock lock, bool& taken) {
  std::uint32_t expected = free_lock;
  taken = lock_at(lock).compare_exchange_strong(expected, held, std::memory_order_acquire);
  return {};
}

Status InheritedMemory::release(Lock lock) {
  Count& state = lock_at(lock);
  if (state.exchange(free_lock, std::memory_order_release) == wanted)
    host::wake(futex_of(state), 1);
  return {};
}

Status InheritedMemory::barrier() { return barriers_are_not_there(); }
Status InheritedMemory::reduce(std::uint64_t&, Combine) { return barriers_are_not_there(); }

}  // namespace tombolo::dsm
