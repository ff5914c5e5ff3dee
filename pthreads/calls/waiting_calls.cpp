// SPDX-License-Identifier: Apache-2.0
// Purpose: the calls that sleep in the kernel, and at which a thread may be cancelled. The C
// library's own look for that, too, but a thread that another process has cancelled is not known
// there.
//
// Invariants: WTC1 a thread that is cancelled before or while it sleeps ends, unless it has
//                  forbidden that. Bytes that a call has transferred are not lost: one that
//                  succeeds returns.
// Limits: calls that the C library makes in its functions, as those on streams, are not left.
#include <poll.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/select.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <ctime>

#include "host/interrupts/wake_up.h"
#include "pthreads/calls/calls.h"
#include "pthreads/program/carried_signals.h"

// Those of programs that are compiled with _FORTIFY_SOURCE.
extern "C" {
ssize_t __read_chk(int file, void* to, std::size_t bytes, std::size_t room);
ssize_t __recv_chk(int file, void* to, std::size_t bytes, std::size_t room, int flags);
ssize_t __recvfrom_chk(int file, void* to, std::size_t bytes, std::size_t room, int flags,
                       sockaddr* from, socklen_t* length);
int __poll_chk(pollfd* files, nfds_t count, int milliseconds, std::size_t room);
int __ppoll_chk(pollfd* files, nfds_t count, const timespec* time, const sigset_t* mask,
                std::size_t room);
}

namespace tombolo::dsm {
namespace {

// A thread that can be cancelled: none of the runtime's own, of which machines have one.
bool is_cancellable() { return host::wake_ups_are_served() && pthreads() != nullptr; }

// `woken(result)`: whether the call may have ended because of a wake-up.
template <class Call, class Woken>
auto cancellable(Call&& call, Woken&& woken) {
  if (!is_cancellable()) return call();
  for (;;) {
    end_if_cancelled();
    const Carriers before = carriers();
    const auto result = call();
    if (!woken(result)) return result;
    if (!host::has_been_woken()) {
      if (carriers_alone(before)) continue;
      return result;
    }
    const int error = errno;
    end_if_cancelled();
    errno = error;
    // It was meant for the thread before this one, or has to wait until it is allowed.
    if (pthreads()->cancel_enabled) host::forget_wake_ups();
  }
}

// Of a call that returns -1 and sets errno.
template <class Call>
auto cancellable(Call&& call) {
  return cancellable(call, [](auto result) { return result < 0 && errno == EINTR; });
}

// Of a call that waits for signals.
int taken(int number) {
  if (number > 0) have_taken(number);
  return number;
}

}  // namespace
}  // namespace tombolo::dsm

using tombolo::dsm::cancellable;
using tombolo::dsm::taken;

// ---- Time ---------------------------------------------------------------------------------------

TOMBOLO_PTHREAD_CALL unsigned sleep(unsigned seconds) {
  return cancellable([=] { return TOMBOLO_HOST(sleep)(seconds); },
                     [](unsigned left) { return left != 0; });
}
TOMBOLO_PTHREAD_CALL int usleep(useconds_t time) {
  return cancellable([=] { return TOMBOLO_HOST(usleep)(time); });
}
TOMBOLO_PTHREAD_CALL int nanosleep(const timespec* time, timespec* left) {
  return cancellable([=] { return TOMBOLO_HOST(nanosleep)(time, left); });
}
TOMBOLO_PTHREAD_CALL int clock_nanosleep(clockid_t clock, int flags, const timespec* time,
                                         timespec* left) {
  return cancellable([=] { return TOMBOLO_HOST(clock_nanosleep)(clock, flags, time, left); },
                     [](int error) { return error == EINTR; });
}

// ---- Signals and children -----------------------------------------------------------------------

TOMBOLO_PTHREAD_CALL int pause() {
  return cancellable([] { return TOMBOLO_HOST(pause)(); });
}
TOMBOLO_PTHREAD_CALL int sigsuspend(const sigset_t* mask) {
  return cancellable([=] { return TOMBOLO_HOST(sigsuspend)(mask); });
}
TOMBOLO_PTHREAD_CALL int sigwait(const sigset_t* set, int* signal) {
  // The C library begins again where a handler has run.
  return cancellable(
      [=] {
        int got = -1;
        do {
          got = taken(TOMBOLO_HOST(sigwaitinfo)(set, nullptr));
        } while (got < 0 && errno == EINTR && !tombolo::host::has_been_woken());
        if (got > 0) *signal = got;
        return got > 0 ? 0 : errno;
      },
      [](int error) { return error == EINTR; });
}
TOMBOLO_PTHREAD_CALL int sigwaitinfo(const sigset_t* set, siginfo_t* info) {
  return cancellable([=] { return taken(TOMBOLO_HOST(sigwaitinfo)(set, info)); });
}
TOMBOLO_PTHREAD_CALL int sigtimedwait(const sigset_t* set, siginfo_t* info, const timespec* time) {
  return cancellable([=] { return taken(TOMBOLO_HOST(sigtimedwait)(set, info, time)); });
}
TOMBOLO_PTHREAD_CALL pid_t wait(int* status) {
  return cancellable([=] { return TOMBOLO_HOST(wait)(status); });
}
TOMBOLO_PTHREAD_CALL pid_t waitpid(pid_t child, int* status, int options) {
  return cancellable([=] { return TOMBOLO_HOST(waitpid)(child, status, options); });
}

// ---- Several descriptors ------------------------------------------------------------------------

TOMBOLO_PTHREAD_CALL int poll(pollfd* files, nfds_t count, int milliseconds) {
  return cancellable([=] { return TOMBOLO_HOST(poll)(files, count, milliseconds); });
}
TOMBOLO_PTHREAD_CALL int __poll_chk(pollfd* files, nfds_t count, int milliseconds,
                                    std::size_t room) {
  return cancellable([=] { return TOMBOLO_HOST(__poll_chk)(files, count, milliseconds, room); });
}
TOMBOLO_PTHREAD_CALL int ppoll(pollfd* files, nfds_t count, const timespec* time,
                               const sigset_t* mask) {
  return cancellable([=] { return TOMBOLO_HOST(ppoll)(files, count, time, mask); });
}
TOMBOLO_PTHREAD_CALL int __ppoll_chk(pollfd* files, nfds_t count, const timespec* time,
                                     const sigset_t* mask, std::size_t room) {
  return cancellable([=] { return TOMBOLO_HOST(__ppoll_chk)(files, count, time, mask, room); });
}
TOMBOLO_PTHREAD_CALL int select(int count, fd_set* reads, fd_set* writes, fd_set* others,
                                timeval* time) {
  return cancellable([=] { return TOMBOLO_HOST(select)(count, reads, writes, others, time); });
}
TOMBOLO_PTHREAD_CALL int pselect(int count, fd_set* reads, fd_set* writes, fd_set* others,
                                 const timespec* time, const sigset_t* mask) {
  return cancellable(
      [=] { return TOMBOLO_HOST(pselect)(count, reads, writes, others, time, mask); });
}
TOMBOLO_PTHREAD_CALL int epoll_wait(int file, epoll_event* events, int count, int milliseconds) {
  return cancellable([=] { return TOMBOLO_HOST(epoll_wait)(file, events, count, milliseconds); });
}
TOMBOLO_PTHREAD_CALL int epoll_pwait(int file, epoll_event* events, int count, int milliseconds,
                                     const sigset_t* mask) {
  return cancellable(
      [=] { return TOMBOLO_HOST(epoll_pwait)(file, events, count, milliseconds, mask); });
}

// ---- One descriptor -----------------------------------------------------------------------------

TOMBOLO_PTHREAD_CALL ssize_t read(int file, void* to, std::size_t bytes) {
  return cancellable([=] { return TOMBOLO_HOST(read)(file, to, bytes); });
}
TOMBOLO_PTHREAD_CALL ssize_t __read_chk(int file, void* to, std::size_t bytes, std::size_t room) {
  return cancellable([=] { return TOMBOLO_HOST(__read_chk)(file, to, bytes, room); });
}
TOMBOLO_PTHREAD_CALL ssize_t readv(int file, const iovec* parts, int count) {
  return cancellable([=] { return TOMBOLO_HOST(readv)(file, parts, count); });
}
TOMBOLO_PTHREAD_CALL ssize_t write(int file, const void* from, std::size_t bytes) {
  return cancellable([=] { return TOMBOLO_HOST(write)(file, from, bytes); });
}
TOMBOLO_PTHREAD_CALL ssize_t writev(int file, const iovec* parts, int count) {
  return cancellable([=] { return TOMBOLO_HOST(writev)(file, parts, count); });
}
TOMBOLO_PTHREAD_CALL ssize_t recv(int file, void* to, std::size_t bytes, int flags) {
  return cancellable([=] { return TOMBOLO_HOST(recv)(file, to, bytes, flags); });
}
TOMBOLO_PTHREAD_CALL ssize_t __recv_chk(int file, void* to, std::size_t bytes, std::size_t room,
                                        int flags) {
  return cancellable([=] { return TOMBOLO_HOST(__recv_chk)(file, to, bytes, room, flags); });
}
TOMBOLO_PTHREAD_CALL ssize_t recvfrom(int file, void* to, std::size_t bytes, int flags,
                                      sockaddr* from, socklen_t* length) {
  return cancellable([=] { return TOMBOLO_HOST(recvfrom)(file, to, bytes, flags, from, length); });
}
TOMBOLO_PTHREAD_CALL ssize_t __recvfrom_chk(int file, void* to, std::size_t bytes, std::size_t room,
                                            int flags, sockaddr* from, socklen_t* length) {
  return cancellable(
      [=] { return TOMBOLO_HOST(__recvfrom_chk)(file, to, bytes, room, flags, from, length); });
}
TOMBOLO_PTHREAD_CALL ssize_t recvmsg(int file, msghdr* message, int flags) {
  return cancellable([=] { return TOMBOLO_HOST(recvmsg)(file, message, flags); });
}
TOMBOLO_PTHREAD_CALL ssize_t send(int file, const void* from, std::size_t bytes, int flags) {
  return cancellable([=] { return TOMBOLO_HOST(send)(file, from, bytes, flags); });
}
TOMBOLO_PTHREAD_CALL int connect(int file, const sockaddr* to, socklen_t length) {
  return cancellable([=] { return TOMBOLO_HOST(connect)(file, to, length); });
}
TOMBOLO_PTHREAD_CALL int accept(int file, sockaddr* from, socklen_t* length) {
  return cancellable([=] { return TOMBOLO_HOST(accept)(file, from, length); });
}
TOMBOLO_PTHREAD_CALL int accept4(int file, sockaddr* from, socklen_t* length, int flags) {
  return cancellable([=] { return TOMBOLO_HOST(accept4)(file, from, length, flags); });
}
