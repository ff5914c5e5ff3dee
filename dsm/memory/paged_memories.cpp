// SPDX-License-Identifier: Apache-2.0
#include "dsm/memory/paged_memories.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string>
#include <utility>

#include "base/check.h"
#include "dsm/memory/cached_memory.h"
#include "dsm/memory/off_stack_memory.h"
#include "dsm/memory/program_shape.h"
#include "host/faults/caught_calls.h"
#include "host/memory/page.h"
#include "host/memory/raw_calls.h"
#include "runtime/collective/collective.h"
#include "runtime/processes/processors_here.h"

namespace tombolo::dsm {
namespace {

std::uint64_t resident_pages(const std::byte* at, Page pages) {
  std::array<unsigned char, 4096> resident{};
  std::uint64_t count = 0;
  for (Page first = 0; first < pages; first += resident.size()) {
    const Page some = std::min<Page>(pages - first, resident.size());
    const std::uint64_t low = reinterpret_cast<std::uint64_t>(at) + first * host::page_bytes();
    if (host::raw::is_mapped({low, low + some * host::page_bytes()}, resident.data()))
      count += static_cast<std::uint64_t>(std::ranges::count_if(
          std::span(resident).first(some), [](unsigned char page) { return page % 2 != 0; }));
  }
  return count;
}

}  // namespace

// The keeper of the processes looks after them (TEM1, TEM2): nothing is to be done in a wait. Each
// process asks for its own processors, to which the program may have bound it meanwhile, and not
// waiting_of(): the environment lies in memory that it has not entered.
runtime::SharedMemory::Surroundings PagedMemories::surroundings() const {
  return {.waiting = machine::WaitPolicy::for_host(plan_.threads, runtime::processors_for(1)),
          .idle = nullptr,
          .for_regions = std::pmr::new_delete_resource(),
          .for_engine = nullptr};
}

runtime::Agreed PagedMemories::make(runtime::Collective<Job>& all, const MemoryPlan& plan) {
  TOMBOLO_AGREE(all.step({}, [&] { return prepare(plan); }));
  return shared_->make(all, settings_.options);
}

Status PagedMemories::prepare(const MemoryPlan& plan) {
  plan_ = plan;
  if (!settings_.options.complaints.empty())
    return Status::bad_configuration(settings_.options.complaints.front());
  TOMBOLO_TRY(can_cache_pages());
  if (!settings_.cache_bytes) settings_.cache_bytes = default_cache_bytes(plan_.threads);
  TOMBOLO_TRY(shape_of(needs_of_pthreads,
                       {.memory_bytes = plan_.at.size(),
                        .cache_bytes = *settings_.cache_bytes,
                        .threads = plan_.threads,
                        .servers = settings_.memory_servers,
                        .locks = plan_.locks,
                        .tuning = settings_.tuning},
                       shape_));
  shape_.in_place = can_lie_in_place(settings_.options, plan_.at.size(), plan_.threads);
  // That nothing else lies there; enter() takes the place of the reservation.
  const std::span<std::byte> rest = plan.at.subspan(plan.filled);
  TOMBOLO_TRY(host::FixedRange::reserve(reinterpret_cast<std::uint64_t>(rest.data()), rest.size(),
                                        behind_));
  if (settings_.records.any())
    TOMBOLO_TRY(ProcessRecords::make(settings_.records, plan_.threads, records_));
  kind_ = paged_kind({settings_.options.machine, settings_.options.native_atomics()},
                     PageProtocol::release);
  plan_homes();
  return {};
}

// This process plays all of them: they are forked from it.
void PagedMemories::plan_homes() {
  const runtime::Member me = runtime::this_member(settings_.options);
  std::vector<runtime::Member> members(shape_.cores(), me);
  std::size_t sync_bytes = 0;
  for (Thread core = 0; core < shape_.cores(); ++core) {
    const MemoryKind::Sizes sizes = kind_->sizes(shape_, plan_.words, core);
    members[core].bytes = sizes.data_bytes;
    sync_bytes = sizes.sync_bytes;
  }
  shared_.emplace(runtime::SharedMemory::Request{.sync_bytes = sync_bytes}, 0, std::move(members));
}

Status PagedMemories::enter(Thread thread, std::unique_ptr<ProgramMemory>& out) {
  const runtime::SharedMemory::Surroundings around = surroundings();
  if (records_ != nullptr) TOMBOLO_TRY(records_->enter(thread, &shape_));
  MemoryKind::Parts parts;
  parts.attachment = shared_->attachment(around, settings_.options);
  parts.attachment.self = thread;
  parts.particulars = shared_->particulars(around, settings_.options);
  parts.shape = shape_;
  parts.give_up = settings_.give_up;
  parts.observer = observer();
  return make_cached_memory(plan_, *kind_, std::move(parts), out);
}

void PagedMemories::note_counts(bool thread_has_ended) {
  if (records_ == nullptr) return;
  records_->note();
  if (thread_has_ended) records_->note_pages();
}

Observer PagedMemories::observer() {
  return records_ == nullptr ? Observer{} : records_->observer();
}

// Of each memory server, the pages that have memory by now in its region.
std::vector<std::uint64_t> PagedMemories::held_pages(Thread memory_servers) const {
  const machine::Attachment at = shared_->attachment(surroundings(), settings_.options);
  std::vector<std::uint64_t> held;
  for (Thread i = 0; i < memory_servers; ++i)
    held.push_back(resident_pages(at.data[plan_.threads + i].memory, shape_.pages_per_home()));
  return held;
}

// On a stack of its own, as each call of the memory: to find the lines of the source it starts
// other programs.
void PagedMemories::tell_counts(Thread memory_servers) {
  if (records_ == nullptr) return;
  const OffStackMemory::Stack stack;
  if (!stack) return;
  host::call_on(stack.memory(), [this, memory_servers] {
    const host::CallsPass of_the_runtime;
    const std::array facts{
        runtime::Counters::Fact{"machine", std::string(name(settings_.options.machine))},
        runtime::Counters::Fact{"transport", "window"},
        runtime::Counters::Fact{"protocol", "release"}};
    records_->tell(facts, reinterpret_cast<std::uint64_t>(plan_.at.data()),
                   held_pages(memory_servers));
  });
}

}  // namespace tombolo::dsm
