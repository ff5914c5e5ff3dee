// SPDX-License-Identifier: Apache-2.0
#include "host/faults/guarded_memory.h"

#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "base/check.h"
#include "host/descriptor.h"
#include "host/faults/protected_memory.h"
#include "host/faults/userfault_memory.h"
#include "host/memory/page.h"
#include "host/memory/raw_calls.h"

#ifndef MAP_FIXED_NOREPLACE
#define MAP_FIXED_NOREPLACE 0x100000
#endif

namespace tombolo::host {
namespace {

constexpr const char* what = "memory for pages that are caught";

Status refused(const char* call, std::uint64_t bytes) {
  const std::string why =
      fmt::format("{}: {} of {} bytes: {}", what, call, bytes, std::strerror(errno));
  if (errno == ENOMEM) return Status::no_memory(why + "; see ulimit -v and vm.overcommit_memory");
  return Status::io(why);
}

Status make_file(std::uint64_t bytes, Descriptor& out) {
  Descriptor file(memfd_create("tombolo:pages", MFD_CLOEXEC));
  if (!file.valid()) return refused("memfd_create", bytes);
  if (fchmod(file.get(), 0600) != 0) return refused("fchmod of a memfd", bytes);  // HGM3
  rlimit limit{};
  if (getrlimit(RLIMIT_FSIZE, &limit) == 0 && bytes > limit.rlim_cur)  // else SIGXFSZ ends us
    return Status::no_memory(fmt::format("{}: {} bytes; files may have {} here (ulimit -f)", what,
                                         bytes, limit.rlim_cur));
  if (ftruncate(file.get(), static_cast<off_t>(bytes)) != 0) return refused("ftruncate", bytes);
  out = std::move(file);
  return {};
}

}  // namespace

Status GuardedMemory::create(FaultMechanism mechanism, std::uint64_t bytes, const Place& place,
                             std::unique_ptr<GuardedMemory>& out) {
  const auto at = reinterpret_cast<std::uint64_t>(place.address);
  TOMBOLO_CHECK(bytes > 0 && bytes % page_bytes() == 0 && at % page_bytes() == 0,
                "{}: {} bytes at {:#x} are not whole pages", what, bytes, at);
  return chosen(mechanism) == FaultMechanism::userfault
             ? UserfaultMemory::create(bytes, place, out)
             : ProtectedMemory::create(bytes, place, out);
}

GuardedMemory::~GuardedMemory() {
  // HGM2: in a child the addresses may be those of anything else.
  if (process_ != getpid()) return;
  if (!view_.empty()) raw::unmap(reinterpret_cast<void*>(view_.low), view_.bytes());
  if (own_alias_) raw::unmap(alias_, view_.bytes());
}

AddressRange GuardedMemory::aliases() const {
  const auto low = reinterpret_cast<std::uint64_t>(alias_);
  return {low, low + view_.bytes()};
}

Status GuardedMemory::map(std::uint64_t bytes, const Place& place, int access) {
  process_ = getpid();
  TOMBOLO_TRY(place.frames == nullptr ? map_new(bytes, place, access)
                                      : map_again(bytes, place, access));
  TOMBOLO_TRY(keep_from_children());
  // A huge page would be memory of pages that were never stored to.
  (void)madvise(alias_, bytes, MADV_NOHUGEPAGE);
  return {};
}

Status GuardedMemory::map_new(std::uint64_t bytes, const Place& place, int access) {
  Descriptor file;
  TOMBOLO_TRY(make_file(bytes, file));
  TOMBOLO_TRY(map_view(file.get(), bytes, place, access));
  void* const alias = raw::map(0, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file.get(), 0);
  if (alias == MAP_FAILED) return refused("mmap", bytes);
  alias_ = static_cast<std::byte*>(alias);
  own_alias_ = true;
  return {};
}

// A second mapping of memory that is there, over one that holds its place.
Status GuardedMemory::map_again(std::uint64_t bytes, const Place& place, int access) {
  TOMBOLO_TRY(map_view(-1, bytes, place, PROT_NONE));
  if (!raw::map_again(place.frames, bytes, view_.low)) return refused("mremap", bytes);
  if (access != (PROT_READ | PROT_WRITE) && !raw::protect(view_, access))
    return refused("mprotect", bytes);
  alias_ = place.frames;
  return {};
}

Status GuardedMemory::keep_from_children() const {
  auto* const view = reinterpret_cast<void*>(view_.low);
  if (madvise(view, view_.bytes(), MADV_DONTFORK) != 0 ||
      (own_alias_ && madvise(alias_, view_.bytes(), MADV_DONTFORK) != 0))
    return refused("madvise", view_.bytes());  // HGM2
  return {};
}

Status GuardedMemory::map_view(int file, std::uint64_t bytes, const Place& place, int access) {
  const auto wanted = reinterpret_cast<std::uint64_t>(place.address);
  const int fixed = place.replace ? MAP_FIXED : MAP_FIXED_NOREPLACE;
  const int kind = file < 0 ? MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE : MAP_SHARED;
  void* const at = raw::map(wanted, bytes, access, kind | (wanted != 0 ? fixed : 0), file, 0);
  const bool taken = at == MAP_FAILED && errno == EEXIST;
  if (at == MAP_FAILED && !taken) return refused("mmap", bytes);
  const auto low = reinterpret_cast<std::uint64_t>(at);
  // Kernels before 4.17 take the address for a hint.
  const bool elsewhere = !taken && wanted != 0 && low != wanted;
  if (elsewhere) raw::unmap(at, bytes);
  if (taken || elsewhere)
    return Status::bad_configuration(
        fmt::format("{}: other memory of this process lies in the {} bytes from {:#x} on", what,
                    bytes, wanted));
  view_ = {low, low + bytes};
  return {};
}

Status GuardedMemory::fill(const AddressRange& pages, std::span<const std::byte> bytes,
                           Access& access) {
  std::memcpy(alias(pages.low), bytes.data(), bytes.size());
  access = Access::closed;
  return {};
}

Status GuardedMemory::give_back(const AddressRange& pages) {
  if (syscall(SYS_madvise, alias(pages.low), pages.bytes(), MADV_REMOVE) == 0) return {};
  return refused("madvise(MADV_REMOVE)", pages.bytes());
}

}  // namespace tombolo::host
