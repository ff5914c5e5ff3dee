// SPDX-License-Identifier: Apache-2.0
#include "dsm/memory/inherited_memory.h"

#include <array>

#include "base/check.h"
#include "host/memory/page.h"
#include "host/memory/placed_memory.h"
#include "host/memory/raw_calls.h"

namespace tombolo::dsm {
namespace {

using Core = InheritedMemory::Core;

constexpr WordIndex counts_of_sleepers = 1024;
constexpr std::uint32_t longest_sleep = 10'000;  // microseconds
// Of some 50 ns each, then sleep: a processor that is given away without a sleep may stay away for
// a time slice.
constexpr std::uint32_t polls = 100;

// The words lie in one block, of home 0.
Core::Attachment attachment(Thread self, Thread threads, std::byte* shared) {
  Core::Attachment at;
  at.self = self;
  at.cores = threads;
  at.sync = shared;
  at.waiting.sleep_us_max = longest_sleep;
  return at;
}

Status barriers_are_not_there() {
  return Status::unsupported(
      "a barrier or reduction of all threads of a program that starts and ends them");
}

}  // namespace

runtime::Agreed InheritedMemories::make(runtime::Collective<Job>& all, const MemoryPlan& plan) {
  return all.step({}, [&] { return make(plan); });
}

Status InheritedMemories::make(const MemoryPlan& plan) {
  plan_ = plan;
  host::Segment program;
  TOMBOLO_TRY(host::Segment::create_anonymous(plan.at.size(), "program", program));
  TOMBOLO_TRY(
      host::Segment::create_anonymous(InheritedMemory::take(plan).bytes, "runtime", runtime_));
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
  out = std::make_unique<InheritedMemory>(thread, plan_, runtime_.data(), observer());
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

InheritedMemory::Layout InheritedMemory::take(const MemoryPlan& plan) {
  machine::SyncLayout layout(Core::reserved_sync_bytes(plan.threads));
  Layout taken{.words = layout.take_lines(plan.words),
               .locks = layout.take_lines(plan.locks),
               .sleepers = layout.take_lines(counts_of_sleepers)};
  taken.bytes = layout.bytes();
  return taken;
}

InheritedMemory::InheritedMemory(Thread self, const MemoryPlan& plan, std::byte* shared,
                                 const Observer& observer)
    : plan_(plan),
      core_(attachment(self, plan.threads, shared)),
      words_(core_.word({0, take(plan).words})),
      locks_(core_.word({0, take(plan).locks})),
      sleepers_(core_.word({0, take(plan).sleepers})),
      mutex_(core_),
      waited_(observer) {}

std::size_t InheritedMemory::page_bytes() const { return host::page_bytes(); }

// ---- Words --------------------------------------------------------------------------------------

sync::WatchedWord<Core> InheritedMemory::at(WordIndex word) {
  TOMBOLO_CHECK(word < plan_.words, "program memory: word {} of {}", word, plan_.words);
  return {core_, words_ + word, sleepers_ + word % counts_of_sleepers};
}

std::uint64_t InheritedMemory::load(WordIndex word) {
  looked_at_ = word;
  return seen_ = at(word).load();
}

void InheritedMemory::store(WordIndex word, std::uint64_t value) { at(word).store(value); }

std::uint64_t InheritedMemory::exchange(WordIndex word, std::uint64_t value) {
  return at(word).exchange(value);
}

std::uint64_t InheritedMemory::fetch_add(WordIndex word, std::uint64_t value) {
  return at(word).fetch_add(value);
}

std::uint64_t InheritedMemory::compare_exchange(WordIndex word, std::uint64_t expected,
                                                std::uint64_t desired) {
  const std::uint64_t found = at(word).compare_exchange(expected, desired);
  if (found == expected) return found;
  looked_at_ = word;
  return seen_ = found;
}

Status InheritedMemory::pause() {
  if (++pauses_ >= polls) return at(looked_at_).sleep(seen_);
  machine::relax_processor();
  return {};
}

// ---- Locks --------------------------------------------------------------------------------------

Core::Word InheritedMemory::lock_at(Lock lock) {
  TOMBOLO_CHECK(lock < plan_.locks, "program memory: lock {} of {}", lock, plan_.locks);
  return locks_ + lock;
}

Status InheritedMemory::acquire(Lock lock) {
  const Core::Word word = lock_at(lock);
  if (mutex_.try_acquire(word)) [[likely]]
    return {};
  return waited_.for_lock([&] { return mutex_.acquire(word); });
}

Status InheritedMemory::try_acquire(Lock lock, bool& taken) {
  taken = mutex_.try_acquire(lock_at(lock));
  return {};
}

Status InheritedMemory::release(Lock lock) {
  mutex_.release(lock_at(lock));
  return {};
}

Status InheritedMemory::barrier() { return barriers_are_not_there(); }
Status InheritedMemory::reduce(std::uint64_t&, Combine) { return barriers_are_not_there(); }

}  // namespace tombolo::dsm
