// SPDX-License-Identifier: Apache-2.0
#include "host/faults/protected_memory.h"

#include <fmt/format.h>
#include <sys/mman.h>

#include <cerrno>
#include <cstring>

#include "host/memory/raw_calls.h"

namespace tombolo::host {

Status ProtectedMemory::create(std::uint64_t bytes, const Place& place,
                               std::unique_ptr<GuardedMemory>& out) {
  auto memory = std::make_unique<ProtectedMemory>();
  TOMBOLO_TRY(memory->map(bytes, place, PROT_NONE));
  out = std::move(memory);
  return {};
}

Status ProtectedMemory::change(const AddressRange& pages, Access, Access to) {
  return protect(pages, to == Access::writable ? PROT_READ | PROT_WRITE : PROT_READ);
}

Status ProtectedMemory::close(std::span<const AddressRange> ranges) {
  for (const AddressRange& pages : ranges) TOMBOLO_TRY(protect(pages, PROT_NONE));
  return {};
}

Status ProtectedMemory::discard(const AddressRange& pages) {
  TOMBOLO_TRY(protect(pages, PROT_NONE));
  return give_back(pages);
}

Status ProtectedMemory::protect(const AddressRange& pages, int access) {
  if (raw::protect(pages, access)) return {};
  const bool closed = errno == ENOMEM && raw::protect(view(), PROT_NONE);  // HPM1
  if (closed && raw::protect(pages, access)) return {};
  const auto why = fmt::format("mprotect of {} bytes of {}: {}", pages.bytes(), view().bytes(),
                               std::strerror(errno));
  if (errno != ENOMEM) return Status::io(why);
  return Status::no_memory(why + "; this process has too many mappings: raise vm.max_map_count");
}

}  // namespace tombolo::host
