// SPDX-License-Identifier: Apache-2.0
#include "dsm/memory/paged_memories.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string>
#include <utility>

#include "base/check.h"
#include "dsm/memory/cached_memory.h"
#include "dsm/memory/program_shape.h"
#include "host/faults/caught_calls.h"
#include "host/memory/page.h"
#include "host/memory/raw_calls.h"
#include "runtime/collective/collective.h"
#include "runtime/collective/memory_exchange.h"
#include "runtime/engines/attachment.h"
#include "runtime/engines/chosen_core.h"

namespace tombolo::dsm {
namespace {

runtime::MachineChoice choice_of(const runtime::Options& options) {
  return {options.machine, options.native_atomics};
}

runtime::SharedMemory::Surroundings surroundings(Thread threads) {
  // The keeper of the processes looks after them (TEM1, TEM2): nothing is to be done in a wait.
  return {.waiting = waiting_of(threads),
          .idle = nullptr,
          .for_regions = std::pmr::new_delete_resource(),
          .for_engine = nullptr};
}

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

Status PagedMemories::make(const MemoryPlan& plan) {
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
                        .locks = plan_.locks},
                       shape_));
  shape_.in_place = can_lie_in_place(settings_.options, plan_.at.size(), plan_.threads);
  // That nothing else lies there; enter() takes the place of the reservation.
  const std::span<std::byte> rest = plan.at.subspan(plan.filled);
  TOMBOLO_TRY(host::FixedRange::reserve(reinterpret_cast<std::uint64_t>(rest.data()), rest.size(),
                                        behind_));
  if (settings_.records.any())
    TOMBOLO_TRY(ProcessRecords::make(settings_.records, plan_.threads, records_));
  return make_homes();
}

// This process plays all of them: they are forked from it.
Status PagedMemories::make_homes() {
  const runtime::Member me = runtime::this_member(settings_.options);
  std::vector<runtime::Member> members(shape_.cores(), me);
  std::size_t sync_bytes = 0;
  runtime::with_core(choice_of(settings_.options), [&]<class C>() {
    const auto layout = CachedMemory<C>::take(shape_, plan_.words);
    sync_bytes = layout.sync_bytes;
    for (machine::Home core = 0; core < shape_.cores(); ++core)
      members[core].bytes = CoreTransport<C>::data_bytes(shape_, core);
  });
  shared_.emplace(runtime::SharedMemory::Request{.sync_bytes = sync_bytes}, 0, std::move(members));
  std::vector<std::uint64_t> desk(runtime::MemoryExchange::bytes_for(1) / sizeof(std::uint64_t) +
                                  8);
  void* at = desk.data();
  std::size_t room = desk.size() * sizeof(std::uint64_t);
  constexpr std::size_t line = 64;
  auto* const memory =
      static_cast<std::byte*>(std::align(line, runtime::MemoryExchange::bytes_for(1), at, room));
  TOMBOLO_CHECK(memory != nullptr, "no line of memory in {} bytes", room);
  runtime::MemoryExchange exchange(memory, 0, 1, {}, nullptr);
  runtime::Collective all(exchange);
  return shared_->make(all, settings_.options).status();
}

Status PagedMemories::enter(Thread thread, std::unique_ptr<ProgramMemory>& out) {
  const runtime::SharedMemory::Surroundings around = surroundings(plan_.threads);
  machine::Attachment attachment = shared_->attachment(around, settings_.options);
  attachment.self = thread;
  runtime::Particulars particulars = shared_->particulars(around, settings_.options);
  if (records_ != nullptr) TOMBOLO_TRY(records_->enter(thread, &shape_));
  Status status;
  runtime::with_core(choice_of(settings_.options), [&]<class C>() {
    status = make_cached_memory<C>(
        plan_, shape_, runtime::attachment_of<C>(std::move(attachment), std::move(particulars)),
        settings_.give_up, observer(), out);
  });
  return status;
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
  const machine::Attachment at =
      shared_->attachment(surroundings(plan_.threads), settings_.options);
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
        runtime::Counters::Fact{"protocol", "regional"}};
    records_->tell(facts, reinterpret_cast<std::uint64_t>(plan_.at.data()),
                   held_pages(memory_servers));
  });
}

}  // namespace tombolo::dsm
