// SPDX-License-Identifier: Apache-2.0
#include "pthreads/hosts/forwarded_call.h"

#include <asm/termbits.h>
#include <fcntl.h>
#include <linux/stat.h>
#include <poll.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <climits>
#include <cstring>

namespace tombolo::dsm {
namespace {

using Arguments = std::array<std::uint64_t, 6>;

enum class Use : std::uint8_t {
  value,
  path,    // a text
  reads,   // the kernel reads these bytes
  stores,  // it stores them
  both,
};

struct Parameter {
  Use use = Use::value;
  std::uint8_t size = none;  // the argument that has their number; `none`: `unit` of them
  std::uint16_t unit = 1;    // bytes
  static constexpr std::uint8_t none = 255;
};

constexpr Parameter plain{};
constexpr Parameter text{.use = Use::path};
constexpr Parameter reads(std::uint8_t size) { return {.use = Use::reads, .size = size}; }
constexpr Parameter stores(std::uint8_t size) { return {.use = Use::stores, .size = size}; }
constexpr Parameter stores_bytes(std::uint16_t bytes) {
  return {.use = Use::stores, .unit = bytes};
}

constexpr Parameter reads_bytes(std::uint16_t bytes) { return {.use = Use::reads, .unit = bytes}; }

struct Form {
  long number;
  std::array<Parameter, 6> parameters{};
  bool shorter = false;   // it may transfer less than it is asked for
  bool counted = false;   // its result is the number of bytes that were stored
  short waits = 0;        // for this event of its first argument
  std::uint8_t time = 0;  // the argument that says how long it waits, in milliseconds; 0: none
};

constexpr std::uint16_t stat_bytes = 144;
constexpr std::uint16_t statfs_bytes = 120;
constexpr std::uint16_t flock_bytes = 32;

constexpr Parameter events{.use = Use::stores, .size = 2, .unit = sizeof(epoll_event)};
constexpr Parameter polled{.use = Use::both, .size = 1, .unit = sizeof(pollfd)};

// On x86-64; elsewhere calls are not caught.
#if defined(__x86_64__)
constexpr Form forms[] = {
    {SYS_read, {plain, stores(2), plain}, true, true, POLLIN},
    {SYS_write, {plain, reads(2), plain}, true, false, POLLOUT},
    {SYS_pread64, {plain, stores(2), plain, plain}, true, true},
    {SYS_pwrite64, {plain, reads(2), plain, plain}, true},
    {SYS_open, {text, plain, plain}},
    {SYS_openat, {plain, text, plain, plain}},
    {SYS_creat, {text, plain}},
    {SYS_close, {plain}},
    {SYS_stat, {text, stores_bytes(stat_bytes)}},
    {SYS_lstat, {text, stores_bytes(stat_bytes)}},
    {SYS_fstat, {plain, stores_bytes(stat_bytes)}},
    {SYS_newfstatat, {plain, text, stores_bytes(stat_bytes), plain}},
    {SYS_statx, {plain, text, plain, plain, stores_bytes(sizeof(struct statx))}},
    {SYS_statfs, {text, stores_bytes(statfs_bytes)}},
    {SYS_fstatfs, {plain, stores_bytes(statfs_bytes)}},
    {SYS_lseek, {plain, plain, plain}},
    {SYS_truncate, {text, plain}},
    {SYS_ftruncate, {plain, plain}},
    {SYS_fallocate, {plain, plain, plain, plain}},
    {SYS_fadvise64, {plain, plain, plain, plain}},
    {SYS_fsync, {plain}},
    {SYS_fdatasync, {plain}},
    {SYS_sync, {}},
    {SYS_flock, {plain, plain}},
    {SYS_dup, {plain}},
    {SYS_dup2, {plain, plain}},
    {SYS_dup3, {plain, plain, plain}},
    {SYS_pipe, {stores_bytes(8)}},
    {SYS_pipe2, {stores_bytes(8), plain}},
    {SYS_eventfd2, {plain, plain}},
    {SYS_access, {text, plain}},
    {SYS_faccessat, {plain, text, plain}},
    {SYS_faccessat2, {plain, text, plain, plain}},
    {SYS_chmod, {text, plain}},
    {SYS_fchmod, {plain, plain}},
    {SYS_fchmodat, {plain, text, plain}},
    {SYS_chown, {text, plain, plain}},
    {SYS_lchown, {text, plain, plain}},
    {SYS_fchown, {plain, plain, plain}},
    {SYS_fchownat, {plain, text, plain, plain, plain}},
    {SYS_utimensat, {plain, text, {.use = Use::reads, .unit = 32}, plain}},
    {SYS_unlink, {text}},
    {SYS_unlinkat, {plain, text, plain}},
    {SYS_mkdir, {text, plain}},
    {SYS_mkdirat, {plain, text, plain}},
    {SYS_rmdir, {text}},
    {SYS_rename, {text, text}},
    {SYS_renameat, {plain, text, plain, text}},
    {SYS_renameat2, {plain, text, plain, text, plain}},
    {SYS_link, {text, text}},
    {SYS_linkat, {plain, text, plain, text, plain}},
    {SYS_symlink, {text, text}},
    {SYS_symlinkat, {text, plain, text}},
    {SYS_readlink, {text, stores(2), plain}, false, true},
    {SYS_readlinkat, {plain, text, stores(3), plain}, false, true},
    {SYS_getdents64, {plain, stores(2), plain}, true, true},
    {SYS_chdir, {text}},
    {SYS_fchdir, {plain}},
    {SYS_getcwd, {stores(1), plain}, false, true},
    {SYS_umask, {plain}},
    {SYS_socket, {plain, plain, plain}},
    {SYS_socketpair, {plain, plain, plain, stores_bytes(8)}},
    {SYS_bind, {plain, reads(2), plain}},
    {SYS_listen, {plain, plain}},
    {SYS_connect, {plain, reads(2), plain}},
    {SYS_shutdown, {plain, plain}},
    {SYS_setsockopt, {plain, plain, plain, reads(4), plain}},
    {SYS_sendto, {plain, reads(2), plain, plain, reads(5), plain}, true, false, POLLOUT},
    {SYS_kill, {plain, plain}},
    {SYS_epoll_create, {plain}},
    {SYS_epoll_create1, {plain}},
    {SYS_epoll_ctl, {plain, plain, plain, reads_bytes(sizeof(epoll_event))}},
    {.number = SYS_epoll_wait, .parameters = {plain, events, plain, plain}, .time = 3},
};

// Of these the parameters depend on an argument.
constexpr Form recvfrom_without_address{
    SYS_recvfrom, {plain, stores(2), plain, plain, plain, plain}, true, true, POLLIN};
constexpr Form accept_without_address{SYS_accept, {plain, plain, plain}, false, false, POLLIN};
constexpr Form accept4_without_address{
    SYS_accept4, {plain, plain, plain, plain}, false, false, POLLIN};
constexpr Form fcntl_of_values{SYS_fcntl, {plain, plain, plain}};
constexpr Form fcntl_of_locks{SYS_fcntl, {plain, plain, {.use = Use::both, .unit = flock_bytes}}};
constexpr Form ioctl_of_terminals{SYS_ioctl, {plain, plain, stores_bytes(sizeof(termios))}};
constexpr Form ioctl_of_windows{SYS_ioctl, {plain, plain, stores_bytes(sizeof(winsize))}};
constexpr Form ioctl_of_counts{SYS_ioctl, {plain, plain, stores_bytes(sizeof(int))}};

constexpr Form poll_of_files{.number = SYS_poll, .parameters = {polled, plain, plain}, .time = 2};

// FWC1
constexpr long about_files[] = {SYS_sendmsg,
                                SYS_recvmsg,
                                SYS_sendmmsg,
                                SYS_recvmmsg,
                                SYS_recvfrom,
                                SYS_accept,
                                SYS_accept4,
                                SYS_getsockname,
                                SYS_getpeername,
                                SYS_getsockopt,
                                SYS_ioctl,
                                SYS_fcntl,
                                SYS_sendfile,
                                SYS_readv,
                                SYS_writev,
                                SYS_preadv,
                                SYS_pwritev,
                                SYS_preadv2,
                                SYS_pwritev2,
                                SYS_ppoll,
                                SYS_select,
                                SYS_pselect6,
                                SYS_epoll_pwait,
                                SYS_splice,
                                SYS_tee,
                                SYS_vmsplice,
                                SYS_copy_file_range,
                                SYS_getdents,
                                SYS_mknod,
                                SYS_mknodat,
                                SYS_utime,
                                SYS_utimes,
                                SYS_futimesat,
                                SYS_setxattr,
                                SYS_lsetxattr,
                                SYS_fsetxattr,
                                SYS_getxattr,
                                SYS_lgetxattr,
                                SYS_fgetxattr,
                                SYS_listxattr,
                                SYS_llistxattr,
                                SYS_flistxattr,
                                SYS_removexattr,
                                SYS_lremovexattr,
                                SYS_fremovexattr,
                                SYS_inotify_init,
                                SYS_inotify_init1,
                                SYS_signalfd,
                                SYS_signalfd4,
                                SYS_timerfd_create,
                                SYS_timerfd_settime,
                                SYS_timerfd_gettime,
                                SYS_eventfd,
                                SYS_memfd_create,
                                SYS_chroot,
                                SYS_syncfs,
                                SYS_sync_file_range,
                                SYS_readahead,
                                SYS_openat2,
                                SYS_close_range,
                                SYS_execve,
                                SYS_execveat,
                                SYS_fork,
                                SYS_vfork,
                                SYS_clone,
                                SYS_clone3,
                                SYS_io_uring_setup,
                                SYS_pidfd_open,
                                SYS_mount,
                                SYS_wait4,
                                SYS_waitid,
                                SYS_ptrace,
                                SYS_inotify_add_watch,
                                SYS_inotify_rm_watch,
                                SYS_fanotify_init,
                                SYS_fanotify_mark,
                                SYS_mq_open,
                                SYS_mq_unlink,
                                SYS_mq_timedsend,
                                SYS_mq_timedreceive,
                                SYS_mq_notify,
                                SYS_mq_getsetattr,
                                SYS_shmget,
                                SYS_shmctl,
                                SYS_semget,
                                SYS_semop,
                                SYS_semtimedop,
                                SYS_semctl,
                                SYS_msgget,
                                SYS_msgsnd,
                                SYS_msgrcv,
                                SYS_msgctl,
                                SYS_name_to_handle_at,
                                SYS_open_by_handle_at,
                                SYS_process_vm_readv,
                                SYS_process_vm_writev,
                                SYS_kcmp,
                                SYS_perf_event_open,
                                SYS_bpf,
                                SYS_userfaultfd,
                                SYS_io_setup,
                                SYS_umount2,
                                SYS_pivot_root,
                                SYS_quotactl,
                                SYS_acct,
                                SYS_swapon,
                                SYS_swapoff,
                                SYS_setns,
                                SYS_unshare,
                                SYS_tkill,
                                SYS_rt_sigqueueinfo};

// Of the calls that the kernel has had since, in the order of their numbers, those of this process
// alone; the others are about descriptors or paths.
constexpr long first_of_later = 424;
constexpr long later_and_local[] = {
    440,            // process_madvise
    444, 445, 446,  // landlock
    447,            // memfd_secret
    449,            // futex_waitv
    450,            // set_mempolicy_home_node
    453,            // map_shadow_stack
    454, 455, 456,  // futex_wake, futex_wait, futex_requeue
    462,            // mseal
};
#else
constexpr long first_of_later = LONG_MAX;
constexpr std::array<long, 0> later_and_local{};
constexpr std::array<Form, 0> forms{};
constexpr std::array<long, 0> about_files{};
#endif

const Form* form_of(long number, const Arguments& arguments) {
#if defined(__x86_64__)
  switch (number) {
    case SYS_recvfrom:
      return arguments[4] == 0 ? &recvfrom_without_address : nullptr;
    case SYS_accept:
      return arguments[1] == 0 ? &accept_without_address : nullptr;
    case SYS_accept4:
      return arguments[1] == 0 ? &accept4_without_address : nullptr;
    case SYS_poll:
      return &poll_of_files;
    case SYS_fcntl:
      switch (arguments[1]) {
        case F_GETLK:
        case F_SETLK:
        case F_SETLKW:
        case F_OFD_GETLK:
        case F_OFD_SETLK:
        case F_OFD_SETLKW:
          return &fcntl_of_locks;
        case F_DUPFD:
        case F_DUPFD_CLOEXEC:
        case F_GETFD:
        case F_SETFD:
        case F_GETFL:
        case F_SETFL:
        case F_GETPIPE_SZ:
        case F_SETPIPE_SZ:
          return &fcntl_of_values;
        default:
          return nullptr;
      }
    case SYS_ioctl:
      switch (arguments[1]) {
        case TCGETS:
          return &ioctl_of_terminals;
        case TIOCGWINSZ:
          return &ioctl_of_windows;
        case FIONREAD:
          return &ioctl_of_counts;
        default:
          return nullptr;
      }
    default:
      break;
  }
#endif
  const auto* const found = std::ranges::find(forms, number, &Form::number);
  return found == std::end(forms) ? nullptr : found;
}

// ---- Messages -----------------------------------------------------------------------------------

struct Head {
  std::int64_t number = -1;
  Arguments arguments{};
};

constexpr int longest_ms = 50;                                // of a wait in the first process
constexpr std::int64_t not_ready = -(std::int64_t{1} << 40);  // a result that the kernel has not

class Writer {
 public:
  explicit Writer(ForwardedCall::Bytes& to) : to_(to) {}
  void add(const void* from, std::size_t bytes) {
    const auto* const at = static_cast<const std::byte*>(from);
    to_.insert(to_.end(), at, at + bytes);
  }
  template <class T>
  void add(const T& value) {
    add(&value, sizeof value);
  }

 private:
  ForwardedCall::Bytes& to_;
};

class Reader {
 public:
  explicit Reader(std::span<const std::byte> from) : from_(from) {}
  // Fewer than wanted where the message ends.
  std::span<const std::byte> take(std::size_t bytes) {
    const auto part = from_.first(std::min(bytes, from_.size()));
    from_ = from_.subspan(part.size());
    return part;
  }
  template <class T>
  T take() {
    T value{};
    const auto part = take(sizeof value);
    if (!part.empty()) std::memcpy(&value, part.data(), part.size());
    return value;
  }

 private:
  std::span<const std::byte> from_;
};

std::size_t size_of(const Parameter& parameter, const Arguments& arguments) {
  const std::uint64_t units = parameter.size == Parameter::none ? 1 : arguments[parameter.size];
  return units > ForwardedCall::most_bytes ? ForwardedCall::most_bytes + 1 : units * parameter.unit;
}

// FWC3. Buffers that the kernel need not fill are shorter, too.
Arguments bounded(const Form& form, Arguments arguments) {
  if (!form.shorter && !form.counted) return arguments;
  for (const Parameter& parameter : form.parameters)
    if (parameter.size != Parameter::none)
      arguments[parameter.size] =
          std::min<std::uint64_t>(arguments[parameter.size], ForwardedCall::most_bytes);
  return arguments;
}

// No address of a program, where one is expected.
bool is_wrong(std::uint64_t address) { return address != 0 && address < 4096; }

// The rest of a wait's time.
void take_time(host::SystemCall& call, const Form& form) {
  std::uint64_t& time = call.arguments[form.time];
  if (form.time != 0 && static_cast<int>(time) > longest_ms) time -= longest_ms;
}

}  // namespace

CallKind ForwardedCall::kind_of(const host::SystemCall& call) {
  if (form_of(call.number, call.arguments) != nullptr) return CallKind::forwarded;
  const auto is_among = [&](const auto& calls) {
    return std::ranges::find(calls, call.number) != std::end(calls);
  };
  const bool is_later = call.number >= first_of_later && !is_among(later_and_local);
  return is_later || is_among(about_files) ? CallKind::refused : CallKind::local;
}

bool ForwardedCall::request_of(host::SystemCall& call, Bytes& out) {
  out.clear();
  const Form& form = *form_of(call.number, call.arguments);
  const Arguments arguments = bounded(form, call.arguments);
  Writer to(out);
  to.add(Head{call.number, arguments});
  for (std::size_t i = 0; i < form.parameters.size(); ++i) {
    const Parameter& parameter = form.parameters[i];
    const std::uint64_t address = arguments[i];
    if (parameter.use == Use::value) continue;
    std::size_t bytes = parameter.use == Use::path ? 0 : size_of(parameter, arguments);
    const auto* const at = reinterpret_cast<const char*>(address);
    if (is_wrong(address)) {
      call.result = -EFAULT;
      return false;
    }
    if (bytes > most_bytes) {
      call.result = -EMSGSIZE;
      return false;
    }
    if (parameter.use == Use::stores || address == 0) continue;
    // One that is too long lacks its end: the kernel says so.
    if (parameter.use == Use::path) bytes = strnlen(at, PATH_MAX - 1) + 1;
    to.add(static_cast<std::uint64_t>(bytes));
    to.add(at, bytes);
  }
  return true;
}

bool ForwardedCall::finish(host::SystemCall& call, std::span<const std::byte> answer) {
  Reader from(answer);
  const auto result = from.take<std::int64_t>();
  const Form& form = *form_of(call.number, call.arguments);
  if (result == not_ready) {
    take_time(call, form);
    return false;
  }
  call.result = result;
  if (result < 0) return true;
  for (std::size_t i = 0; i < form.parameters.size(); ++i) {
    const Parameter& parameter = form.parameters[i];
    if (parameter.use != Use::stores && parameter.use != Use::both) continue;
    if (call.arguments[i] == 0) continue;
    const std::size_t bytes =
        form.counted ? static_cast<std::size_t>(result) : size_of(parameter, call.arguments);
    const auto part = from.take(bytes);
    if (!part.empty())
      std::memcpy(reinterpret_cast<void*>(call.arguments[i]), part.data(), part.size());
  }
  return true;
}

// ---- The first process --------------------------------------------------------------------------

namespace {

// FWC2
bool is_ready(const Form& form, const Arguments& arguments) {
  if (form.waits == 0) return true;
  const auto file = static_cast<int>(arguments[0]);
  const long flags = syscall(SYS_fcntl, file, F_GETFL);
  const bool at_once = flags < 0 || (flags & O_NONBLOCK) != 0;
  if (at_once || form.number == SYS_sendto || form.number == SYS_recvfrom) {
    constexpr std::uint64_t do_not_wait = 0x40;  // MSG_DONTWAIT
    if (at_once || (arguments[3] & do_not_wait) != 0) return true;
  }
  pollfd wanted{.fd = file, .events = form.waits, .revents = 0};
  return syscall(SYS_poll, &wanted, 1, longest_ms) != 0;
}

}  // namespace

ForwardedCall::Bytes ForwardedCall::execute(std::span<const std::byte> request) {
  Bytes answer;
  Writer to(answer);
  Reader from(request);
  auto [number, arguments] = from.take<Head>();
  const Form* const form = form_of(static_cast<long>(number), arguments);
  if (form == nullptr) {
    to.add(std::int64_t{-ENOSYS});
    return answer;
  }
  if (!is_ready(*form, arguments)) {
    to.add(not_ready);
    return answer;
  }
  std::array<Bytes, 6> memory;
  for (std::size_t i = 0; i < memory.size(); ++i) {
    const Parameter& parameter = form->parameters[i];
    if (parameter.use == Use::value || arguments[i] == 0) continue;
    if (parameter.use == Use::stores) {
      memory[i].resize(size_of(parameter, arguments));
    } else {
      const auto part = from.take(from.take<std::uint64_t>());
      memory[i].assign(part.begin(), part.end());
    }
    memory[i].resize(std::max<std::size_t>(memory[i].size(), 1));
    arguments[i] = reinterpret_cast<std::uint64_t>(memory[i].data());
  }
  // A wait that is to last for longer, or for ever.
  const int wanted = form->time == 0 ? 0 : static_cast<int>(arguments[form->time]);
  const bool goes_on = wanted < 0 || wanted > longest_ms;
  if (goes_on) arguments[form->time] = longest_ms;
  const long made = syscall(static_cast<long>(number), arguments[0], arguments[1], arguments[2],
                            arguments[3], arguments[4], arguments[5]);
  std::int64_t result = made < 0 ? -errno : made;
  if (goes_on) result = result == 0 ? not_ready : result;
  to.add(result);
  if (result < 0) return answer;
  for (std::size_t i = 0; i < memory.size(); ++i) {
    const Use use = form->parameters[i].use;
    if ((use != Use::stores && use != Use::both) || arguments[i] == 0) continue;
    const std::size_t bytes = form->counted ? static_cast<std::size_t>(result) : memory[i].size();
    to.add(memory[i].data(), std::min(bytes, memory[i].size()));
  }
  return answer;
}

}  // namespace tombolo::dsm
