// SPDX-License-Identifier: Apache-2.0
#include "pthreads/hosts/launched_calls.h"

#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <optional>

#include "base/rounding.h"
#include "host/memory/page.h"
#include "pthreads/hosts/composed_call.h"

namespace tombolo::dsm {

bool LaunchedCalls::before(host::SystemCall& call) {
  if (call.number == SYS_exit_group) {
    facts_.ends(static_cast<int>(call.arguments[0]));
    return true;
  }
  if (call.number == SYS_kill && static_cast<pid_t>(call.arguments[0]) == facts_.program) {
    if (facts_.first) return true;
    call.result = 0;
    const auto signal = static_cast<int>(call.arguments[1]);
    if (signal != 0) call.result = -team_.signal(0, signal);
    return false;
  }
  if (facts_.first) return true;
  if (call.number == SYS_mmap && (call.arguments[3] & MAP_ANONYMOUS) == 0) {
    map_file(call);
    return false;
  }
  const std::optional<CallKind> composed = ComposedCall::kind_of(call);
  switch (composed.value_or(ForwardedCall::kind_of(call))) {
    case CallKind::local:
      return true;
    case CallKind::forwarded:
      forward(call, composed.has_value());
      return false;
    default:
      refuse(call);
      return false;
  }
}

void LaunchedCalls::forward(host::SystemCall& call, bool composed) {
  if (!composed) return team_.forward(call, facts_.looks);
  ComposedCall parts(call);
  team_.forward(parts.simple(), facts_.looks);
  parts.finish(call);
}

// Of a library's, as for the messages of a language: the program's own are in its heap
// (pthreads/calls/mapping_calls.cpp). The bytes are copied.
void LaunchedCalls::map_file(host::SystemCall& call) {
  const auto& [at, bytes, access, flags, file, offset] = call.arguments;
  if ((flags & MAP_TYPE) != MAP_PRIVATE && (access & PROT_WRITE) != 0) return refuse(call);
  const std::size_t whole = round_up(bytes, host::page_bytes());
  void* const memory =
      mmap(reinterpret_cast<void*>(at), whole, PROT_READ | PROT_WRITE,
           MAP_PRIVATE | MAP_ANONYMOUS | static_cast<int>(flags & MAP_FIXED), -1, 0);
  if (memory == MAP_FAILED) {
    call.result = -errno;
    return;
  }
  const auto start = reinterpret_cast<std::uint64_t>(memory);
  for (std::uint64_t done = 0; done < bytes;) {
    host::SystemCall read{.number = SYS_pread64,
                          .arguments = {file, start + done, bytes - done, offset + done}};
    team_.forward(read, facts_.looks);
    if (read.result == -EINTR) continue;
    if (read.result < 0) {
      munmap(memory, whole);
      call.result = read.result;
      return;
    }
    if (read.result == 0) break;
    done += static_cast<std::uint64_t>(read.result);
  }
  mprotect(memory, whole, static_cast<int>(access));
  call.result = static_cast<long>(start);
}

void LaunchedCalls::refuse(host::SystemCall& call) const {
  const std::string line = fmt::format(
      "tombolo: system call {} is refused in a thread on another host than the program's files: it "
      "is not forwarded there\n",
      call.number);
  [[maybe_unused]] const ssize_t written = ::write(STDERR_FILENO, line.data(), line.size());
  call.result = -ENOSYS;
}

}  // namespace tombolo::dsm
