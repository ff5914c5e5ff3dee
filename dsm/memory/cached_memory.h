// SPDX-License-Identifier: Apache-2.0
// Purpose: the memory of a program of Pthreads whose processes each cache pages of it: the part
// of one process, over the core of a machine or between hosts.
//
// Invariants: CHM1 the variables that the program has at the start are the first stores of its
//                  first thread: the others see them as all that was stored before they started.
//             CHM2 spans tell all (dsm/protocol/shape.h): a program of Pthreads knows of no
//                  regions.
//             CHM3 calls of a memory run on a stack that is no page of it (off_stack_memory.h).
// Thread safety: as ProgramMemories.
#pragma once

#include <cstring>
#include <memory>
#include <utility>

#include "dsm/memory/off_stack_memory.h"
#include "dsm/memory/paged_memory.h"
#include "dsm/memory/program_memories.h"
#include "dsm/pages/fault_pages.h"
#include "dsm/protocol/page_diff.h"
#include "dsm/protocol/regional.h"
#include "dsm/transport/core_transport.h"
#include "dsm/transport/counting.h"
#include "host/memory/page.h"
#include "host/memory/zero_memory.h"

namespace tombolo::dsm {

template <machine::Core C>
using CachedMemory = PagedMemory<Counting<CoreTransport<C>>, FaultPages, Regional>;

// Whether this host can catch page faults and system calls as the caches need it. Errors:
// unsupported.
Status can_cache_pages();

// A cache's, if its size is not given: those of all threads have memory.
std::uint64_t default_cache_bytes(Thread threads);

// The program's variables, while the view takes their place.
class SavedVariables {
 public:
  explicit SavedVariables(std::span<std::byte> at) : at_(at), copy_(at.size()) {
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

// Where the pages of this thread lie, in place; null: in memory of its cache's own.
template <machine::Core C>
std::byte* frames_in(const machine::AttachmentOf<C>& attachment, const Shape& shape) {
  if constexpr (C::properties.coherent)
    if (shape.in_place)
      return attachment.data[attachment.self].memory + CoreTransport<C>::exposed_at(shape);
  return nullptr;
}

// The part of the process of `attachment`'s core. It replaces the memory at the plan's address;
// only the first one's variables are put back (CHM1).
template <machine::Core C>
Status make_cached_memory(const MemoryPlan& plan, const Shape& shape,
                          machine::AttachmentOf<C> attachment, void (*give_up)(const Status&),
                          const Observer& observer, std::unique_ptr<ProgramMemory>& out) {
  OffStackMemory::Stack stack;
  if (!stack) return Status::no_memory("no address space for a stack of the runtime");
  SavedVariables variables(plan.at.first(attachment.self == 0 ? plan.filled : 0));
  if (!variables) return Status::no_memory("no address space for a copy of the variables");
  std::unique_ptr<FaultPages> pages;
  // From here on until they are put back the program has no variables.
  TOMBOLO_TRY(FaultPages::create(
      shape,
      {.address = plan.at.data(), .replace = true, .frames = frames_in<C>(attachment, shape)},
      pages));
  auto memory = std::make_unique<CachedMemory<C>>(std::move(attachment),
                                                  CachedMemory<C>::take(shape, plan.words), shape,
                                                  std::move(pages), give_up, observer);
  for (std::byte* const page : plan.closed) memory->close_to_program(page);
  out = std::make_unique<OffStackMemory>(std::move(memory), std::move(stack), observer);
  variables.put_back();
  return {};
}

}  // namespace tombolo::dsm
