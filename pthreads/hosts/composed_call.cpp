// SPDX-License-Identifier: Apache-2.0
#include "pthreads/hosts/composed_call.h"

#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/time.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <climits>
#include <cstring>
#include <ctime>

namespace tombolo::dsm {

#if defined(__x86_64__)

namespace {

// A call with several buffers.
struct Vector {
  long number;
  long single;
  bool stores;
  bool placed;  // at an offset
  bool message;
};
constexpr Vector vectors[] = {
    {SYS_readv, SYS_read, true, false, false},      {SYS_writev, SYS_write, false, false, false},
    {SYS_preadv, SYS_pread64, true, true, false},   {SYS_pwritev, SYS_pwrite64, false, true, false},
    {SYS_recvmsg, SYS_recvfrom, true, false, true}, {SYS_sendmsg, SYS_sendto, false, false, true}};

const Vector* vector_of(long number) {
  const auto* const found = std::ranges::find(vectors, number, &Vector::number);
  return found == std::end(vectors) ? nullptr : found;
}

template <class T>
T* at(std::uint64_t address) {
  return reinterpret_cast<T*>(address);
}
std::uint64_t bits(const void* address) { return reinterpret_cast<std::uint64_t>(address); }

std::span<const iovec> parts_of(const host::SystemCall& call, const Vector& vector) {
  if (!vector.message)
    return {at<const iovec>(call.arguments[1]), std::min<std::size_t>(call.arguments[2], IOV_MAX)};
  const auto& message = *at<const msghdr>(call.arguments[1]);
  return {message.msg_iov, std::min<std::size_t>(message.msg_iovlen, IOV_MAX)};
}

std::size_t bytes_of(std::span<const iovec> parts) {
  std::size_t bytes = 0;
  for (const iovec& part : parts)
    bytes += std::min(part.iov_len, ForwardedCall::most_bytes - bytes);
  return bytes;
}

// Milliseconds, rounded up; -1: for ever.
std::uint64_t ms_of(std::int64_t seconds, std::int64_t ns) {
  constexpr std::int64_t longest = 1'000'000;  // seconds
  return static_cast<std::uint64_t>(std::min(seconds, longest) * 1000 + (ns + 999'999) / 1'000'000);
}
std::uint64_t ms_of(const timespec* time) {
  return time == nullptr ? ~std::uint64_t{0} : ms_of(time->tv_sec, time->tv_nsec);
}
std::uint64_t ms_of(const timeval* time) {
  return time == nullptr ? ~std::uint64_t{0} : ms_of(time->tv_sec, time->tv_usec * 1000);
}

constexpr std::array<short, 3> wanted_events{POLLIN, POLLOUT, POLLPRI};
constexpr std::array<short, 3> found_events{POLLIN | POLLHUP | POLLERR, POLLOUT | POLLERR, POLLPRI};

fd_set* set_of(const host::SystemCall& call, std::size_t which) {
  return at<fd_set>(call.arguments[1 + which]);
}

// Signals that the mask lets come would not end the call.
bool has_mask(const host::SystemCall& call) {
  switch (call.number) {
    case SYS_ppoll:
      return call.arguments[3] != 0;
    case SYS_epoll_pwait:
      return call.arguments[4] != 0;
    case SYS_pselect6:  // a pointer to the mask's address and size
      return call.arguments[5] != 0 && *at<const std::uint64_t>(call.arguments[5]) != 0;
    default:
      return false;
  }
}

}  // namespace

std::optional<CallKind> ComposedCall::kind_of(const host::SystemCall& call) {
  switch (call.number) {
    case SYS_recvmsg:
    case SYS_sendmsg: {
      const auto& message = *at<const msghdr>(call.arguments[1]);
      const bool plain = message.msg_name == nullptr && message.msg_control == nullptr;
      return plain ? CallKind::forwarded : CallKind::refused;
    }
    case SYS_select:
    case SYS_pselect6:  // a sleep, if there is no descriptor
      if (call.arguments[0] > FD_SETSIZE) return CallKind::refused;
      if (call.arguments[0] == 0) return CallKind::local;
      return has_mask(call) ? CallKind::refused : CallKind::forwarded;
    case SYS_poll:
      if (call.arguments[1] != 0) return {};
      return CallKind::local;
    case SYS_ppoll:
      if (call.arguments[1] == 0) return CallKind::local;
      return has_mask(call) ? CallKind::refused : CallKind::forwarded;
    case SYS_epoll_pwait:
      return has_mask(call) ? CallKind::refused : CallKind::forwarded;
    default:
      if (vector_of(call.number) != nullptr) return CallKind::forwarded;
      return {};
  }
}

ComposedCall::ComposedCall(const host::SystemCall& call) {
  const auto& arguments = call.arguments;
  switch (call.number) {
    case SYS_epoll_pwait:
      simple_ = {.number = SYS_epoll_wait,
                 .arguments = {arguments[0], arguments[1], arguments[2], arguments[3]}};
      return;
    case SYS_ppoll:
      simple_ = {.number = SYS_poll,
                 .arguments = {arguments[0], arguments[1], ms_of(at<timespec>(arguments[2]))}};
      return;
    case SYS_select:
    case SYS_pselect6:
      compose_sets(call);
      return;
    default:
      compose_buffers(call);
  }
}

void ComposedCall::compose_buffers(const host::SystemCall& call) {
  const Vector& vector = *vector_of(call.number);
  parts_ = parts_of(call, vector);
  buffer_.resize(bytes_of(parts_));
  std::size_t done = 0;
  for (const iovec& part : parts_) {
    if (vector.stores) break;
    const std::size_t now = std::min(part.iov_len, buffer_.size() - done);
    if (now != 0) std::memcpy(buffer_.data() + done, part.iov_base, now);
    done += now;
  }
  const std::uint64_t last = vector.message  ? call.arguments[2]  // flags
                             : vector.placed ? call.arguments[3]
                                             : 0;
  simple_ = {.number = vector.single,
             .arguments = {call.arguments[0], bits(buffer_.data()), buffer_.size(), last}};
}

void ComposedCall::compose_sets(const host::SystemCall& call) {
  for (int file = 0; file < static_cast<int>(call.arguments[0]); ++file) {
    short events = 0;
    for (std::size_t i = 0; i < wanted_events.size(); ++i)
      if (const fd_set* const set = set_of(call, i); set != nullptr && FD_ISSET(file, set))
        events = static_cast<short>(events | wanted_events[i]);
    if (events != 0) files_.push_back({.fd = file, .events = events, .revents = 0});
  }
  const std::uint64_t time = call.number == SYS_select ? ms_of(at<timeval>(call.arguments[4]))
                                                       : ms_of(at<timespec>(call.arguments[4]));
  simple_ = {.number = SYS_poll, .arguments = {bits(files_.data()), files_.size(), time}};
}

void ComposedCall::finish(host::SystemCall& call) {
  call.result = simple_.result;
  if (call.result < 0) return;
  if (call.number == SYS_select || call.number == SYS_pselect6) return fill_sets(call);
  const Vector* const vector = vector_of(call.number);
  if (vector == nullptr || !vector->stores) return;
  scatter(static_cast<std::size_t>(call.result));
  if (!vector->message) return;
  auto& message = *at<msghdr>(call.arguments[1]);
  message.msg_namelen = 0;
  message.msg_controllen = 0;
  message.msg_flags = 0;
}

void ComposedCall::scatter(std::size_t bytes) const {
  std::span<const std::byte> from(buffer_.data(), std::min(bytes, buffer_.size()));
  for (const iovec& part : parts_) {
    const std::size_t now = std::min(part.iov_len, from.size());
    if (now != 0) std::memcpy(part.iov_base, from.data(), now);
    from = from.subspan(now);
  }
}

void ComposedCall::fill_sets(host::SystemCall& call) const {
  const auto bad = [](const pollfd& file) { return (file.revents & POLLNVAL) != 0; };
  if (std::ranges::any_of(files_, bad)) {
    call.result = -EBADF;
    return;
  }
  call.result = 0;
  for (std::size_t i = 0; i < wanted_events.size(); ++i) {
    fd_set* const set = set_of(call, i);
    if (set == nullptr) continue;
    for (const pollfd& file : files_) {
      if (!FD_ISSET(file.fd, set)) continue;
      if ((file.revents & found_events[i]) != 0)
        ++call.result;
      else
        FD_CLR(file.fd, set);
    }
  }
}

#else

std::optional<CallKind> ComposedCall::kind_of(const host::SystemCall&) { return {}; }
ComposedCall::ComposedCall(const host::SystemCall& call) : simple_(call) {}
void ComposedCall::finish(host::SystemCall& call) { call.result = simple_.result; }

#endif

}  // namespace tombolo::dsm
