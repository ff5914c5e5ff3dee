// SPDX-License-Identifier: Apache-2.0
#include "host/faults/userfault_memory.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <linux/userfaultfd.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>

// The kernel's interface as of Linux 6.13; older headers do not have it.
#ifndef UFFD_USER_MODE_ONLY
#define UFFD_USER_MODE_ONLY 1  // 5.11
#endif
#ifndef UFFD_FEATURE_WP_HUGETLBFS_SHMEM
#define UFFD_FEATURE_WP_HUGETLBFS_SHMEM (1 << 12)  // 5.19
#endif
#ifndef UFFDIO_CONTINUE_MODE_WP
#define UFFDIO_CONTINUE_MODE_WP (static_cast<std::uint64_t>(1) << 1)  // 6.4
#endif
#ifndef SYS_pidfd_open
#define SYS_pidfd_open 434  // 5.3
#endif
#ifndef SYS_process_madvise
#define SYS_process_madvise 440  // 5.10; every advice to this process itself: 6.13
#endif

namespace tombolo::host {
namespace {

constexpr std::uint64_t features = UFFD_FEATURE_SIGBUS | UFFD_FEATURE_MISSING_SHMEM |
                                   UFFD_FEATURE_MINOR_SHMEM | UFFD_FEATURE_WP_HUGETLBFS_SHMEM;

// By syscall(): see raw_calls.h.
template <class Argument>
int control(const Descriptor& descriptor, unsigned long request, Argument& argument) {
  return static_cast<int>(syscall(SYS_ioctl, descriptor.get(), request, &argument));
}

Status refused(const char* call, const AddressRange& pages) {
  const auto why = fmt::format("{} of {} bytes at {:#x}: {}", call, pages.bytes(), pages.low,
                               std::strerror(errno));
  return errno == ENOMEM ? Status::no_memory(why) : Status::io(why);
}

Status lack(const char* of_what, const char* hint) {
  return Status::unsupported(fmt::format("{}: {}{}", of_what, std::strerror(errno), hint));
}

uffdio_range range_of(const AddressRange& pages) {
  return {.start = pages.low, .len = pages.bytes()};
}

}  // namespace

Status UserfaultMemory::create(std::uint64_t bytes, const Place& place,
                               std::unique_ptr<GuardedMemory>& out) {
  auto memory = std::make_unique<UserfaultMemory>();
  TOMBOLO_TRY(memory->open_userfault());
  TOMBOLO_TRY(memory->map(bytes, place, PROT_READ | PROT_WRITE));
  TOMBOLO_TRY(memory->watch_view());
  memory->this_process_.reset(static_cast<int>(syscall(SYS_pidfd_open, getpid(), 0)));
  out = std::move(memory);
  return {};
}

Status UserfaultMemory::open_userfault() {
  userfault_.reset(static_cast<int>(syscall(SYS_userfaultfd, O_CLOEXEC | UFFD_USER_MODE_ONLY)));
  if (!userfault_.valid())
    return lack("userfaultfd", errno == EPERM ? "; the sandbox of a container may forbid it" : "");
  uffdio_api api{};
  api.api = UFFD_API;
  api.features = features;
  if (control(userfault_, UFFDIO_API, api) != 0)
    return lack("userfaultfd for shared memory with write protection", "; it came with Linux 5.19");
  return {};
}

Status UserfaultMemory::watch_view() {
  uffdio_register view{};
  view.range = range_of(this->view());
  view.mode = UFFDIO_REGISTER_MODE_MISSING | UFFDIO_REGISTER_MODE_MINOR | UFFDIO_REGISTER_MODE_WP;
  if (control(userfault_, UFFDIO_REGISTER, view) == 0) return {};
  return lack("userfaultfd for a memfd", "");
}

Status UserfaultMemory::fill(const AddressRange& pages, std::span<const std::byte> bytes,
                             Access& access) {
  uffdio_copy call{};
  for (std::uint64_t done = 0; done < bytes.size();) {
    call.dst = pages.low + done;
    call.src = reinterpret_cast<std::uint64_t>(bytes.data()) + done;
    call.len = bytes.size() - done;
    call.mode = access == Access::readable ? UFFDIO_COPY_MODE_WP : 0;
    call.copy = 0;
    const int error = control(userfault_, UFFDIO_COPY, call) == 0 ? 0 : errno;
    done += static_cast<std::uint64_t>(std::max<std::int64_t>(call.copy, 0));
    // Some have memory already.
    if (error == EEXIST) return GuardedMemory::fill(pages, bytes, access);
    if (error != 0 && error != EAGAIN) return refused("UFFDIO_COPY", pages);
  }
  return {};
}

Status UserfaultMemory::change(const AddressRange& pages, Access from, Access to) {
  return from == Access::closed ? map_pages(pages, to) : protect(pages, to == Access::readable);
}

Status UserfaultMemory::map_pages(AddressRange pages, Access access) {
  while (!pages.empty()) {
    std::uint64_t mapped = 0;
    const int error = map_at_once(pages, access, mapped);
    pages.low += mapped;
    if (error == 0 || error == EAGAIN) continue;
    if (error != EEXIST) return refused("UFFDIO_CONTINUE", pages);
    // Some are in the page table, one cannot tell which: all of them are, or will fault again.
    return protect(pages, access == Access::readable);
  }
  return {};
}

// The error, if not all are mapped.
int UserfaultMemory::map_at_once(const AddressRange& pages, Access access, std::uint64_t& mapped) {
  const bool readable = access == Access::readable;
  uffdio_continue call{};
  call.range = range_of(pages);
  if (readable && maps_protected_) call.mode = UFFDIO_CONTINUE_MODE_WP;
  const int error = control(userfault_, UFFDIO_CONTINUE, call) == 0 ? 0 : errno;
  mapped = static_cast<std::uint64_t>(std::max<std::int64_t>(call.mapped, 0));
  if (error == EINVAL && readable && maps_protected_) {
    maps_protected_ = false;
    return EAGAIN;
  }
  // The program's thread is not at work between the two calls.
  const AddressRange done{pages.low, pages.low + mapped};
  if (readable && !maps_protected_ && !done.empty() && !protect(done, true).ok()) return errno;
  return error;
}

Status UserfaultMemory::protect(const AddressRange& pages, bool from_writes) {
  uffdio_writeprotect call{};
  call.range = range_of(pages);
  call.mode = from_writes ? UFFDIO_WRITEPROTECT_MODE_WP : 0;
  while (control(userfault_, UFFDIO_WRITEPROTECT, call) != 0)
    if (errno != EAGAIN) return refused("UFFDIO_WRITEPROTECT", pages);
  return {};
}

Status UserfaultMemory::close(std::span<const AddressRange> ranges) {
  if (ranges.size() > 1 && close_many(ranges)) return {};
  for (const AddressRange& pages : ranges) TOMBOLO_TRY(close_one(pages));
  return {};
}

Status UserfaultMemory::close_one(const AddressRange& pages) {
  if (syscall(SYS_madvise, pages.low, pages.bytes(), MADV_DONTNEED) == 0) return {};
  return refused("madvise(MADV_DONTNEED)", pages);
}

// False if the kernel cannot, and some or all of them are not closed.
bool UserfaultMemory::close_many(std::span<const AddressRange> ranges) {
  std::array<iovec, 512> vectors;
  while (!ranges.empty() && this_process_.valid()) {
    const auto part = ranges.first(std::min(ranges.size(), vectors.size()));
    std::ranges::transform(part, vectors.begin(), [](const AddressRange& pages) {
      return iovec{.iov_base = reinterpret_cast<void*>(pages.low), .iov_len = pages.bytes()};
    });
    std::uint64_t bytes = 0;
    for (const AddressRange& pages : part) bytes += pages.bytes();
    const long closed = syscall(SYS_process_madvise, this_process_.get(), vectors.data(),
                                part.size(), MADV_DONTNEED, 0);
    if (closed < 0) this_process_.reset(-1);
    if (closed < 0 || static_cast<std::uint64_t>(closed) != bytes) return false;
    ranges = ranges.subspan(part.size());
  }
  return ranges.empty();
}

}  // namespace tombolo::host
