// SPDX-License-Identifier: Apache-2.0
#include "host/memory/foreign_memory.h"

#include <fmt/format.h>
#include <sys/prctl.h>
#include <sys/uio.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <cstring>

namespace tombolo::host {
namespace {

Status failure(const char* call, std::int32_t pid, std::uint64_t address, std::size_t bytes) {
  const int error = errno;
  const auto what = fmt::format("{} of {} bytes at {:#x} of process {}: {}", call, bytes, address,
                                pid, std::strerror(error));
  if (error == EFAULT) return Status::out_of_range(what);
  if (error == ESRCH) return Status::process_failed(-1, what);
  if (error == EPERM)
    return Status::io(what + "; the kernel forbids it: see kernel.yama.ptrace_scope");
  return Status::io(what);
}

// The kernel may copy less than asked, but only at a page that it cannot reach.
template <class Call>
Status copy(const char* name, Call call, std::int32_t pid, std::uint64_t remote, void* local,
            std::size_t bytes) {
  while (bytes > 0) {
    iovec here{local, bytes};
    iovec there{reinterpret_cast<void*>(remote), bytes};
    const ssize_t done = call(pid, &here, 1, &there, 1, 0);
    if (done <= 0) return failure(name, pid, remote, bytes);
    remote += static_cast<std::uint64_t>(done);
    local = static_cast<std::byte*>(local) + done;
    bytes -= static_cast<std::size_t>(done);
  }
  return {};
}

// A call for so many pieces at a time. The kernel stops at the first piece that it cannot copy
// whole: that one is copied by itself, which finds the error.
template <class Call>
Status copy_pieces(const char* name, Call call, std::int32_t pid, std::uint64_t base,
                   std::span<const machine::DataPiece> pieces) {
  constexpr std::size_t most = 64;
  std::array<iovec, most> here;
  std::array<iovec, most> there;
  while (!pieces.empty()) {
    const std::size_t count = std::min(most, pieces.size());
    for (std::size_t i = 0; i < count; ++i) {
      here[i] = {pieces[i].local, pieces[i].bytes};
      there[i] = {reinterpret_cast<void*>(base + pieces[i].at), pieces[i].bytes};
    }
    const ssize_t copied = call(pid, here.data(), count, there.data(), count, 0);
    auto left = static_cast<std::size_t>(std::max<ssize_t>(copied, 0));
    std::size_t whole = 0;
    while (whole < count && pieces[whole].bytes <= left) left -= pieces[whole++].bytes;
    if (whole < count) {
      const auto& [at, local, bytes] = pieces[whole++];
      TOMBOLO_TRY(copy(name, call, pid, base + at, local, bytes));
    }
    pieces = pieces.subspan(whole);
  }
  return {};
}

}  // namespace

// A kernel without that rule says so; it gets none while it runs.
void allow_foreign_copies() {
  static std::atomic<bool> no_such_rule{false};
  // Relaxed: a thread that sees the old value asks once more.
  if (no_such_rule.load(std::memory_order_relaxed)) return;
  const int before = errno;
  if (prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY, 0, 0, 0) != 0 && errno == EINVAL)
    no_such_rule.store(true, std::memory_order_relaxed);
  errno = before;
}

Status read_foreign(std::int32_t pid, std::uint64_t from, void* to, std::size_t bytes) {
  return copy("process_vm_readv", process_vm_readv, pid, from, to, bytes);
}

Status write_foreign(std::int32_t pid, std::uint64_t to, const void* from, std::size_t bytes) {
  return copy("process_vm_writev", process_vm_writev, pid, to, const_cast<void*>(from), bytes);
}

Status read_foreign(std::int32_t pid, std::uint64_t base,
                    std::span<const machine::DataPiece> pieces) {
  return copy_pieces("process_vm_readv", process_vm_readv, pid, base, pieces);
}

Status write_foreign(std::int32_t pid, std::uint64_t base,
                     std::span<const machine::DataPiece> pieces) {
  return copy_pieces("process_vm_writev", process_vm_writev, pid, base, pieces);
}

}  // namespace tombolo::host
