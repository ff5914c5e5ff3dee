// SPDX-License-Identifier: Apache-2.0
#include "dsm/memory/mapped_memories.h"

#include <array>
#include <span>

#include "host/memory/page.h"
#include "host/memory/placed_memory.h"
#include "host/memory/raw_calls.h"

namespace tombolo::dsm {
namespace {

void close_to_program(std::span<std::byte* const> pages) {
  for (std::byte* const page : pages) {
    const auto low = reinterpret_cast<std::uint64_t>(page);
    host::raw::protect({low, low + host::page_bytes()}, PROT_NONE);
  }
}

}  // namespace

runtime::Agreed MappedMemories::make(runtime::Collective<Job>& all, const MemoryPlan& plan) {
  return all.step({}, [&] { return make(plan); });
}

Status MappedMemories::make(const MemoryPlan& plan) {
  memory_ = plan.at.data();
  words_.emplace(plan);
  host::Segment program;
  TOMBOLO_TRY(host::Segment::create_anonymous(plan.at.size(), "program", program));
  TOMBOLO_TRY(host::Segment::create_anonymous(words_->bytes(), "runtime", runtime_));
  program.seal();
  runtime_.seal();
  TOMBOLO_TRY(host::place_in_front(program.data(), plan.at, plan.filled));
  close_to_program(plan.closed);
  return wanted_.any() ? ProcessRecords::make(wanted_, plan.threads, records_) : Status();
}

Status MappedMemories::enter(Thread thread, std::unique_ptr<ProgramMemory>& out) {
  // No pages are counted where all processes map the same.
  if (records_ != nullptr) TOMBOLO_TRY(records_->enter(thread, nullptr));
  out = words_->enter(thread, runtime_.data(), observer());
  return {};
}

void MappedMemories::note_counts(bool /*thread_has_ended*/) {
  if (records_ != nullptr) records_->note();
}

void MappedMemories::tell_counts(Thread /*memory_servers*/) {
  if (records_ == nullptr) return;
  const std::array facts{runtime::Counters::Fact{"machine", "coherent"},
                         runtime::Counters::Fact{"transport", "map"}};
  records_->tell(facts, reinterpret_cast<std::uint64_t>(memory_));
}

Observer MappedMemories::observer() {
  return records_ == nullptr ? Observer{} : records_->observer();
}

}  // namespace tombolo::dsm
