// SPDX-License-Identifier: Apache-2.0
#include "dsm/memory/cached_memory.h"

#include <cstring>
#include <span>
#include <utility>

#include "dsm/memory/default_sizes.h"
#include "dsm/memory/off_stack_memory.h"
#include "dsm/memory/program_shape.h"
#include "dsm/protocol/page_diff.h"
#include "host/faults/caught_calls.h"
#include "host/faults/mechanism.h"
#include "host/memory/memory_room.h"
#include "host/memory/page.h"
#include "host/memory/zero_memory.h"

namespace tombolo::dsm {
namespace {

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

}  // namespace

Status can_cache_pages() {
  if (!host::calls_on_stacks)
    return Status::unsupported("programs of Pthreads that cache pages, on this processor");
  TOMBOLO_TRY(host::can_catch_calls());
  return host::available(host::FaultMechanism::automatic);
}

std::uint64_t default_cache_bytes(Thread threads) {
  return default_cache_bytes(host::memory_room().bytes, threads,
                             needs_of_pthreads.fewest_cached_pages * host::page_bytes());
}

Status make_cached_memory(const MemoryPlan& plan, const MemoryKind& kind, MemoryKind::Parts parts,
                          std::unique_ptr<ProgramMemory>& out) {
  OffStackMemory::Stack stack;
  if (!stack) return Status::no_memory("no address space for a stack of the runtime");
  SavedVariables variables(plan.at.first(parts.attachment.self == 0 ? plan.filled : 0));
  if (!variables) return Status::no_memory("no address space for a copy of the variables");
  parts.address = plan.at.data();
  parts.closed = plan.closed;
  parts.words = plan.words;
  const Observer observer = parts.observer;
  std::unique_ptr<ProgramMemory> memory;
  // The program has no variables from here on until they are put back.
  TOMBOLO_TRY(kind.make(std::move(parts), memory));
  out = std::make_unique<OffStackMemory>(std::move(memory), std::move(stack), observer);
  variables.put_back();
  return {};
}

}  // namespace tombolo::dsm
