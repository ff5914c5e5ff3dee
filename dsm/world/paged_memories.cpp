// SPDX-License-Identifier: Apache-2.0
#include "dsm/world/paged_memories.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <string>
#include <utility>

#include "base/check.h"
#include "dsm/pages/fault_pages.h"
#include "dsm/protocol/page_diff.h"
#include "dsm/protocol/regional.h"
#include "dsm/transport/core_transport.h"
#include "dsm/transport/counting.h"
#include "dsm/transport/paged_memory.h"
#include "dsm/world/off_stack_memory.h"
#include "host/faults/caught_calls.h"
#include "host/memory/page.h"
#include "host/memory/zero_memory.h"
#include "runtime/collective/collective.h"
#include "runtime/collective/memory_exchange.h"
#include "runtime/engines/attachment.h"
#include "runtime/engines/chosen_core.h"
#include "runtime/processes/processors_here.h"

namespace tombolo::dsm {
namespace {

template <machine::Core C>
using Paged = PagedMemory<Counting<CoreTransport<C>>, FaultPages, Regional>;

// The buffers of one system call are open together (system_calls.h), and the pages of the
// instructions around it.
constexpr std::uint64_t fewest_cached_pages = 256;
constexpr std::uint32_t notices = 16384;
// Each release names the pages it has changed to all: the logs of locks are for recorded stores.
constexpr std::uint32_t updates = 16;
constexpr std::uint32_t read_ahead = 16;

runtime::MachineChoice choice_of(const runtime::Options& options) {
  return {options.machine, options.native_atomics};
}

runtime::SharedMemory::Surroundings surroundings(Thread threads) {
  // The keeper of the processes looks after them (TEM1, TEM2): nothing is to be done in a wait.
  return {.waiting = machine::WaitPolicy::for_host(threads, runtime::processors_for(1)),
          .idle = nullptr,
          .for_regions = std::pmr::new_delete_resource(),
          .for_engine = nullptr};
}

// The program's variables, while the view takes their place.
class Variables {
 public:
  explicit Variables(std::span<std::byte> at) : at_(at), copy_(at.size()) {
    if (copy_) std::memcpy(copy_.as<std::byte>(), at.data(), at.size());
  }
  explicit operator bool() const { return static_cast<bool>(copy_); }

  // Page faults, as stores of the program. Pages of zeros are there.
  void put_back() {
    const std::size_t page = host::page_bytes();
    for (std::size_t at = 0; at < at_.size(); at += page) {
      const std::span bytes(copy_.as<std::byte>() + at, page);
      if (!all_zero(bytes)) std::memcpy(at_.data() + at, bytes.data(), page);
    }
  }

 private:
  std::span<std::byte> at_;
  host::ZeroMemory copy_;
};

}  // namespace

Status PagedMemories::make(const MemoryPlan& plan) {
  plan_ = plan;
  if (!settings_.options.complaints.empty())
    return Status::bad_configuration(settings_.options.complaints.front());
  if (!host::calls_on_stacks)
    return Status::unsupported("transport window for programs of Pthreads on this processor");
  TOMBOLO_TRY(host::can_catch_calls());
  TOMBOLO_TRY(host::available(host::FaultMechanism::automatic));
  TOMBOLO_TRY(choose_shape());
  // That nothing else lies there; enter() takes the place of the reservation.
  const std::span<std::byte> rest = plan.at.subspan(plan.filled);
  TOMBOLO_TRY(host::FixedRange::reserve(reinterpret_cast<std::uint64_t>(rest.data()), rest.size(),
                                        behind_));
  if (settings_.records.any())
    TOMBOLO_TRY(ProcessRecords::make(settings_.records, plan_.threads, records_));
  return make_homes();
}

Status PagedMemories::choose_shape() {
  const std::uint64_t page = host::page_bytes();
  const std::uint64_t cached = settings_.cache_bytes / page;
  if (cached < fewest_cached_pages)
    return Status::bad_configuration(
        fmt::format("a cache of {} bytes is too small for a program of Pthreads: at least {}; see "
                    "TOMBOLO_DSM_CACHE and --cache",
                    settings_.cache_bytes, fewest_cached_pages * page));
  // Not in place (docs/decisions/0025): pages are kept from barriers of all threads on, of which a
  // program of Pthreads has none, or where stores follow each other. pigz, pbzip2, zstd and xz took
  // as long with it, and each process wants address space, as memory, for all pages.
  shape_ = {.threads = plan_.threads,
            .pages = plan_.at.size() / page,
            .page_bytes = page,
            .cached_pages =
                static_cast<std::uint32_t>(std::min<std::uint64_t>(cached, plan_.at.size() / page)),
            .locks = plan_.locks,
            .notices = notices,
            .updates = updates,
            .read_ahead = read_ahead,
            .spans_tell_all = true};
  return {};
}

// This process plays all of them: they are forked from it.
Status PagedMemories::make_homes() {
  runtime::Member member = runtime::this_member(settings_.options);
  std::size_t sync_bytes = 0;
  runtime::with_core(choice_of(settings_.options), [&]<class C>() {
    const auto layout = Paged<C>::take(shape_, plan_.words);
    sync_bytes = layout.sync_bytes;
    member.bytes = CoreTransport<C>::data_bytes(shape_);
  });
  shared_.emplace(runtime::SharedMemory::Request{.sync_bytes = sync_bytes}, 0,
                  std::vector<runtime::Member>(plan_.threads, member));
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
  OffStackMemory::Stack stack;
  if (!stack) return Status::no_memory("no address space for a stack of the runtime");
  Variables variables(plan_.at.first(thread == 0 ? plan_.filled : 0));
  if (!variables) return Status::no_memory("no address space for a copy of the variables");
  if (records_ != nullptr) TOMBOLO_TRY(records_->enter(thread, &shape_));
  const Observer observer = this->observer();
  Status status;
  runtime::with_core(choice_of(settings_.options), [&]<class C>() {
    std::unique_ptr<FaultPages> pages;
    // From here on until they are put back the program has no variables.
    status = FaultPages::create(shape_, {.address = plan_.at.data(), .replace = true}, pages);
    if (!status.ok()) return;
    auto memory = std::make_unique<Paged<C>>(
        runtime::attachment_of<C>(std::move(attachment), std::move(particulars)),
        Paged<C>::take(shape_, plan_.words), shape_, std::move(pages), settings_.give_up, observer);
    for (std::byte* const page : plan_.closed) memory->close_to_program(page);
    out = std::make_unique<OffStackMemory>(std::move(memory), std::move(stack), observer);
  });
  TOMBOLO_TRY(std::move(status));
  variables.put_back();
  return {};
}

void PagedMemories::note_counts(bool thread_has_ended) {
  if (records_ == nullptr) return;
  records_->note();
  if (thread_has_ended) records_->note_pages();
}

Observer PagedMemories::observer() {
  return records_ == nullptr ? Observer{} : records_->observer();
}

// On a stack of its own, as each call of the memory: to find the lines of the source it starts
// other programs.
void PagedMemories::tell_counts() {
  if (records_ == nullptr) return;
  const OffStackMemory::Stack stack;
  if (!stack) return;
  host::call_on(stack.memory(), [this] {
    const host::CallsPass of_the_runtime;
    const std::array facts{
        runtime::Counters::Fact{"machine", std::string(name(settings_.options.machine))},
        runtime::Counters::Fact{"transport", "window"},
        runtime::Counters::Fact{"protocol", "regional"}};
    records_->tell(facts, reinterpret_cast<std::uint64_t>(plan_.at.data()));
  });
}

}  // namespace tombolo::dsm
