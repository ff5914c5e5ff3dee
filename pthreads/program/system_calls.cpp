// SPDX-License-Identifier: Apache-2.0
#include "pthreads/program/system_calls.h"

#include <fmt/format.h>
#include <linux/futex.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <type_traits>

#include "dsm/memory/off_stack_memory.h"
#include "dsm/threads/runtime_hooks.h"
#include "host/faults/fault_router.h"
#include "host/interrupts/reserved_signal.h"

namespace tombolo::dsm {
namespace {

constexpr std::uint64_t reads = 0;
constexpr std::uint64_t writes = 1;

std::uint64_t bits(const void* at) { return reinterpret_cast<std::uint64_t>(at); }

// Without stdio: the program may be in it.
void say(const std::string& text) {
  const std::string line = "tombolo: " + text + "\n";
  [[maybe_unused]] const ssize_t written = ::write(STDERR_FILENO, line.data(), line.size());
}

// A call whose buffer's size is an argument.
struct Sized {
  long number;
  unsigned address;  // which argument
  unsigned size;     // likewise
  std::uint64_t unit;
  bool write;    // the kernel stores
  bool shorter;  // it may transfer less than it was asked for
};
constexpr Sized sized_calls[] = {
    {SYS_read, 1, 2, 1, true, true},
    {SYS_write, 1, 2, 1, false, true},
    {SYS_pread64, 1, 2, 1, true, true},
    {SYS_pwrite64, 1, 2, 1, false, true},
    {SYS_recvfrom, 1, 2, 1, true, true},
    {SYS_sendto, 1, 2, 1, false, false},
    {SYS_getrandom, 0, 1, 1, true, true},
    {SYS_getdents64, 1, 2, 1, true, false},
    {SYS_readlinkat, 2, 3, 1, true, false},
    {SYS_getxattr, 2, 3, 1, true, false},
    {SYS_setxattr, 2, 3, 1, false, false},
    {SYS_ppoll, 0, 1, sizeof(pollfd), true, false},
    {SYS_getgroups, 1, 0, sizeof(gid_t), true, false},
    {SYS_epoll_pwait, 1, 2, sizeof(epoll_event), true, false},
#if defined(__x86_64__)
    {SYS_getdents, 1, 2, 1, true, false},
    {SYS_readlink, 1, 2, 1, true, false},
    {SYS_poll, 0, 1, sizeof(pollfd), true, false},
    {SYS_epoll_wait, 1, 2, sizeof(epoll_event), true, false},
#endif
};

// Of a set of signals, as the kernel has it. A fault, or a call that is caught, ends a process that
// holds its signal back.
std::uint64_t without_ours(std::uint64_t signals) {
  for (const int ours : {SIGSEGV, SIGBUS, SIGSYS}) signals &= ~(std::uint64_t{1} << (ours - 1));
  return signals;
}

// SYC3. Threads that the program starts without Pthreads are among them.
const char* refused(const host::SystemCall& call) {
  switch (call.number) {
    case SYS_io_setup:
    case SYS_io_submit:
      return "asynchronous input and output (io_setup)";
    case SYS_io_uring_setup:
      return "io_uring_setup";
    case SYS_vmsplice:
      return "vmsplice";
    case SYS_sendmmsg:
    case SYS_recvmmsg:
      return "sendmmsg and recvmmsg";
    case SYS_process_vm_readv:
    case SYS_process_vm_writev:
      return "process_vm_readv and process_vm_writev";
    case SYS_shmat:
      return "shmat";
    case SYS_clone:
      return (call.arguments[0] & CLONE_THREAD) != 0 ? "clone of a thread" : nullptr;
    default:
      return nullptr;
  }
}

}  // namespace

bool SystemCalls::owns(std::uint64_t address) const {
  const std::span<std::byte> all = memory_.memory();
  return address >= bits(all.data()) && address < bits(all.data() + all.size());
}

// How many of the bytes the kernel can reach then.
std::uint64_t SystemCalls::open(std::uint64_t address, std::uint64_t bytes, bool write) {
  std::size_t touched = bytes;
  // It begins outside of the memory: so do the arrays of libraries, which none of it follows.
  if (!owns(address) || bytes == 0) return bytes;
  must(memory_.touch(reinterpret_cast<const void*>(address), std::min(bytes, most_bytes_), write,
                     touched));
  return touched;
}

// Page faults of this thread open the pages that it reads.
void read_text(const char* text) {
  for (const volatile char* at = text; at != nullptr && *at != 0;) ++at;
}

void read_texts(char* const* texts) {
  for (char* const* at = texts; at != nullptr && *at != nullptr; ++at) read_text(*at);
}

bool SystemCalls::before(host::SystemCall& call) {
  if (first_ != nullptr && !first_->before(call)) return false;
  if (const char* const name = refused(call); name != nullptr) {
    say(fmt::format(
        "{} is refused in a program of Pthreads with transport window: the kernel would "
        "reach memory whose pages may be closed",
        name));
    call.result = -ENOSYS;
    return false;
  }
  return about_memory(call) && about_signals(call) && start(call) && transfer(call);
}

// Two pages: a structure may lie across their border.
void SystemCalls::open_structures(const host::SystemCall& call) {
  const std::size_t page = memory_.page_bytes();
  for (const std::uint64_t argument : call.arguments)
    if (owns(argument)) open(argument, 2 * page - argument % page, writes);
}

namespace {

constexpr std::size_t most_buffers = 64;

// In the call's room.
iovec* list_of(host::SystemCall& call) { return reinterpret_cast<iovec*>(call.room.data()); }
template <class Call>
auto& message_of(Call& call) {
  using Message = std::conditional_t<std::is_const_v<Call>, const msghdr, msghdr>;
  static_assert(most_buffers * sizeof(iovec) + sizeof(msghdr) <= host::SystemCall::room_bytes);
  return *reinterpret_cast<Message*>(call.room.data() + most_buffers * sizeof(iovec));
}

}  // namespace

// A copy of the array takes its place: of so many buffers, the last one perhaps shorter.
void SystemCalls::open_buffers(host::SystemCall& call, std::uint64_t& buffers, std::uint64_t& count,
                               bool write) {
  const auto* const given = reinterpret_cast<const iovec*>(buffers);
  iovec* const list = list_of(call);
  std::uint64_t room = most_bytes_;
  std::size_t used = 0;
  for (; used < std::min<std::uint64_t>(count, most_buffers) && room > 0; ++used) {
    list[used] = given[used];
    const std::uint64_t wanted = std::min<std::uint64_t>(given[used].iov_len, room);
    const std::uint64_t opened = open(bits(given[used].iov_base), wanted, write);
    list[used].iov_len = opened;
    room = opened < given[used].iov_len ? 0 : room - opened;
  }
  buffers = bits(list);
  count = used;
}

// A copy takes the place of the header, too, which the program may use again, with other buffers.
void SystemCalls::open_message(host::SystemCall& call, bool write) {
  call.given = call.arguments[1];
  msghdr& message = message_of(call);
  message = *reinterpret_cast<const msghdr*>(call.given);
  std::uint64_t buffers = bits(message.msg_iov);
  std::uint64_t count = message.msg_iovlen;
  open_buffers(call, buffers, count, write);
  message.msg_iov = reinterpret_cast<iovec*>(buffers);
  message.msg_iovlen = count;
  open(bits(message.msg_name), message.msg_namelen, writes);
  open(bits(message.msg_control), message.msg_controllen, writes);
  call.arguments[1] = bits(&message);
}

// The kernel has told the lengths in the copy.
void SystemCalls::after(const host::SystemCall& call) {
  if (call.number != SYS_recvmsg || call.given == 0 || call.result < 0) return;
  const msghdr& message = message_of(call);
  auto& given = *reinterpret_cast<msghdr*>(call.given);
  given.msg_namelen = message.msg_namelen;
  given.msg_controllen = message.msg_controllen;
  given.msg_flags = message.msg_flags;
}

bool SystemCalls::transfer(host::SystemCall& call) {
  auto& arguments = call.arguments;
  switch (call.number) {
    case SYS_readv:
    case SYS_preadv:
    case SYS_preadv2:
      open_buffers(call, arguments[1], arguments[2], writes);
      return true;
    case SYS_writev:
    case SYS_pwritev:
    case SYS_pwritev2:
      open_buffers(call, arguments[1], arguments[2], reads);
      return true;
    case SYS_recvmsg:
      open_message(call, writes);
      return true;
    case SYS_sendmsg:
      open_message(call, reads);
      return true;
    default:
      break;
  }
  open_structures(call);
  for (const Sized& sized : sized_calls) {
    if (sized.number != call.number) continue;
    const std::uint64_t bytes = arguments[sized.size] * sized.unit;
    const std::uint64_t opened = open(arguments[sized.address], bytes, sized.write);
    if (sized.shorter && opened < bytes) arguments[sized.size] = opened;
  }
  return true;
}

// The accesses of its pages are the runtime's; a word of it is not the same memory in two
// processes, as the kernel's lock takes it for.
bool SystemCalls::about_memory(host::SystemCall& call) {
  if (!owns(call.arguments[0])) return true;
  switch (call.number) {
    case SYS_mprotect:
    case SYS_madvise:
    case SYS_mlock:
    case SYS_munlock:
    case SYS_msync:
    case SYS_munmap:
      call.result = 0;
      return false;
    case SYS_mmap:
      // By an instruction of its own: mmap() serves it (pthreads/calls/mapping_calls.cpp).
      if ((call.arguments[3] & MAP_FIXED) == 0) return true;
      say("mmap at a fixed address is refused but by the function of that name: the program's "
          "memory would be replaced in one process only");
      call.result = -EOPNOTSUPP;
      return false;
    case SYS_futex: {
      call.result = 0;
      const auto operation = static_cast<int>(call.arguments[1]) & FUTEX_CMD_MASK;
      if (operation == FUTEX_WAKE || operation == FUTEX_WAKE_BITSET) return false;
      say(
          fmt::format("the program waits for a variable at {:#x} by a call of its own (futex), not "
                      "by Pthreads: with transport window each process has its own copy of it",
                      call.arguments[0]));
      _exit(1);
    }
    default:
      return true;
  }
}

bool SystemCalls::about_signals(host::SystemCall& call) {
  constexpr std::size_t flags = 1;  // of the kernel's struct sigaction
  constexpr std::size_t mask = 3;
  const auto* const action = reinterpret_cast<const std::uint64_t*>(call.arguments[1]);
  if (call.number == SYS_sigaltstack) {
    // A stack in the memory cannot serve: the runtime's own stays, which is larger than most.
    call.result = 0;
    return call.arguments[0] == 0 ||
           !owns(bits(reinterpret_cast<const stack_t*>(call.arguments[0])->ss_sp));
  }
  if (call.number == SYS_rt_sigprocmask && action != nullptr) {
    mask_ = without_ours(*action);
    call.arguments[1] = bits(&mask_);
  }
  if (call.number != SYS_rt_sigaction || action == nullptr) return true;
  const auto signal = static_cast<int>(call.arguments[0]);
  if (signal == SIGSYS || signal == SIGSEGV || signal == SIGBUS) {
    call.result = 0;
    struct sigaction earlier {};
    earlier.sa_handler = reinterpret_cast<void (*)(int)>(action[0]);
    earlier.sa_flags = static_cast<int>(action[flags]);
    std::memcpy(&earlier.sa_mask, &action[mask], sizeof action[mask]);
    if (signal != SIGSYS) host::set_earlier_action(signal, &earlier, nullptr);
    return false;
  }
  std::copy_n(action, action_.size(), action_.begin());
  // The runtime has handlers of the reserved ones, which leave the program's memory alone.
  const bool reserved = signal == host::first_reserved || signal == host::second_reserved;
  if (!reserved && action_[0] != bits(reinterpret_cast<void*>(SIG_IGN)) && action_[0] != 0)
    runtime_hooks.has_signal_handlers = true;
  action_[flags] |= SA_ONSTACK;  // SYC2
  action_[mask] = without_ours(action_[mask]);
  call.arguments[1] = bits(action_.data());
  return true;
}

// Of another program.
bool SystemCalls::start(host::SystemCall& call) {
  const unsigned first = call.number == SYS_execveat ? 1 : 0;
  if (call.number != SYS_execve && call.number != SYS_execveat) return true;
  read_text(reinterpret_cast<const char*>(call.arguments[first]));
  read_texts(reinterpret_cast<char* const*>(call.arguments[first + 1]));
  read_texts(reinterpret_cast<char* const*>(call.arguments[first + 2]));
  return true;
}

}  // namespace tombolo::dsm
