// SPDX-License-Identifier: Apache-2.0
// Purpose: tests that calls about descriptors and paths are made by another process as the caller
// would have made them: here both are this one.
// Thread safety: -
#include "pthreads/hosts/forwarded_call.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/select.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <climits>
#include <string>
#include <vector>

#include "pthreads/hosts/composed_call.h"

#if defined(__x86_64__)

namespace tombolo::dsm {
namespace {

std::uint64_t bits(const volatile void* at) { return reinterpret_cast<std::uint64_t>(at); }
std::uint64_t bits(long value) { return static_cast<std::uint64_t>(value); }

bool make(host::SystemCall& call) {
  ForwardedCall::Bytes request;
  if (!ForwardedCall::request_of(call, request)) return true;
  return ForwardedCall::finish(call, ForwardedCall::execute(request));
}

// The result; not_made where the caller is to send it again.
constexpr long not_made = -100'000;
long made(long number, std::array<std::uint64_t, 6> arguments) {
  host::SystemCall call{.number = number, .arguments = arguments};
  const auto composed = ComposedCall::kind_of(call);
  EXPECT_EQ(composed.value_or(ForwardedCall::kind_of(call)), CallKind::forwarded) << number;
  if (!composed) return make(call) ? call.result : not_made;
  ComposedCall parts(call);
  if (!make(parts.simple())) return not_made;
  parts.finish(call);
  return call.result;
}

CallKind kind_of(long number, std::array<std::uint64_t, 6> arguments = {}) {
  return ForwardedCall::kind_of({.number = number, .arguments = arguments});
}

class ForwardedCalls : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string name = testing::TempDir() + "/forwarded_call_XXXXXX";
    file_ = mkstemp(name.data());
    ASSERT_GE(file_, 0);
    path_ = name;
  }
  void TearDown() override {
    close(file_);
    unlink(path_.c_str());
  }
  int file_ = -1;
  std::string path_;
};

TEST_F(ForwardedCalls, ReadAndWrite) {
  const std::string text = "some bytes";
  EXPECT_EQ(made(SYS_write, {bits(file_), bits(text.data()), text.size()}), 10);
  std::array<char, 32> back{};
  back[10] = 'x';
  EXPECT_EQ(made(SYS_pread64, {bits(file_), bits(back.data()), back.size(), 0}), 10);
  EXPECT_EQ(std::string(back.data(), 11), "some bytesx") << "no byte more than the result says";
  EXPECT_EQ(made(SYS_pwrite64, {bits(file_), bits("B"), 1, 5}), 1);
  EXPECT_EQ(made(SYS_lseek, {bits(file_), 5, SEEK_SET}), 5);
  EXPECT_EQ(made(SYS_read, {bits(file_), bits(back.data()), 2}), 2);
  EXPECT_EQ(std::string(back.data(), 2), "By");
  EXPECT_EQ(made(SYS_read, {bits(-1L), bits(back.data()), 2}), -EBADF);
  EXPECT_EQ(made(SYS_write, {bits(file_), bits(text.data()), 0}), 0);
  EXPECT_EQ(made(SYS_write, {bits(file_), 0, 3}), -EFAULT);
}

TEST_F(ForwardedCalls, LongTransfersAreShorter) {
  std::vector<char> bytes(ForwardedCall::most_bytes + 1000, 'a');
  const auto most = static_cast<long>(ForwardedCall::most_bytes);
  EXPECT_EQ(made(SYS_write, {bits(file_), bits(bytes.data()), bytes.size()}), most);
  EXPECT_EQ(made(SYS_write, {bits(file_), bits(bytes.data()), 1000}), 1000);
  bytes.assign(bytes.size(), 'b');
  EXPECT_EQ(made(SYS_pread64, {bits(file_), bits(bytes.data()), bytes.size(), 0}), most);
  EXPECT_EQ(bytes[ForwardedCall::most_bytes - 1], 'a');
  EXPECT_EQ(bytes[ForwardedCall::most_bytes], 'b');
}

TEST_F(ForwardedCalls, SeveralBuffers) {
  std::array<char, 4> first{'a', 'b', 'c', 'd'};
  std::array<char, 3> second{'e', 'f', 'g'};
  std::array parts{iovec{first.data(), 4}, iovec{nullptr, 0}, iovec{second.data(), 3}};
  EXPECT_EQ(made(SYS_writev, {bits(file_), bits(parts.data()), 3}), 7);
  EXPECT_EQ(made(SYS_pwritev, {bits(file_), bits(parts.data()), 1, 7}), 4);
  first.fill('-');
  second.fill('-');
  EXPECT_EQ(made(SYS_preadv, {bits(file_), bits(parts.data()), 3, 5}), 6);
  EXPECT_EQ(std::string(first.data(), 4) + std::string(second.data(), 3), "fgabcd-");
}

TEST_F(ForwardedCalls, Paths) {
  struct stat shape {};
  EXPECT_EQ(made(SYS_write, {bits(file_), bits("abc"), 3}), 3);
  EXPECT_EQ(made(SYS_newfstatat, {bits(AT_FDCWD), bits(path_.c_str()), bits(&shape), 0}), 0);
  EXPECT_EQ(shape.st_size, 3);
  EXPECT_EQ(made(SYS_stat, {bits("/no/such/file"), bits(&shape)}), -ENOENT);
  const std::string other = path_ + "_other";
  EXPECT_EQ(made(SYS_rename, {bits(path_.c_str()), bits(other.c_str())}), 0);
  path_ = other;
  const long opened = made(SYS_openat, {bits(AT_FDCWD), bits(other.c_str()), O_RDONLY, 0});
  ASSERT_GE(opened, 0);
  EXPECT_EQ(made(SYS_close, {bits(opened)}), 0);
  const std::string much(PATH_MAX, 'p');
  EXPECT_EQ(made(SYS_open, {bits(much.c_str()), O_RDONLY}), -ENAMETOOLONG);
  EXPECT_EQ(made(SYS_open, {0, O_RDONLY}), -EFAULT) << "the kernel's answer";
  EXPECT_EQ(made(SYS_open, {16, O_RDONLY}), -EFAULT);
  std::array<char, PATH_MAX> here{};
  std::array<char, PATH_MAX> told{};
  ASSERT_NE(getcwd(here.data(), here.size()), nullptr);
  EXPECT_GT(made(SYS_getcwd, {bits(told.data()), told.size()}), 0);
  EXPECT_STREQ(told.data(), here.data());
}

// FWC2
TEST_F(ForwardedCalls, ThatWouldWaitAreSentAgain) {
  std::array<int, 2> ends{};
  ASSERT_EQ(made(SYS_pipe2, {bits(ends.data()), 0}), 0);
  std::array<char, 4> back{};
  EXPECT_EQ(made(SYS_read, {bits(ends[0]), bits(back.data()), 4}), not_made);
  pollfd wanted{.fd = ends[0], .events = POLLIN, .revents = 0};
  EXPECT_EQ(made(SYS_poll, {bits(&wanted), 1, bits(-1L)}), not_made);
  EXPECT_EQ(made(SYS_poll, {bits(&wanted), 1, 51}), not_made);
  EXPECT_EQ(made(SYS_poll, {bits(&wanted), 1, 1}), 0) << "its time is over";
  EXPECT_EQ(made(SYS_fcntl, {bits(ends[0]), F_SETFL, O_NONBLOCK}), 0);
  EXPECT_EQ(made(SYS_read, {bits(ends[0]), bits(back.data()), 4}), -EAGAIN);
  EXPECT_EQ(made(SYS_write, {bits(ends[1]), bits("abc"), 3}), 3);
  EXPECT_EQ(made(SYS_poll, {bits(&wanted), 1, bits(-1L)}), 1);
  EXPECT_EQ(wanted.revents, POLLIN);
  EXPECT_EQ(made(SYS_read, {bits(ends[0]), bits(back.data()), 4}), 3);
  EXPECT_EQ(made(SYS_close, {bits(ends[0])}), 0);
  EXPECT_EQ(made(SYS_close, {bits(ends[1])}), 0);
}

TEST_F(ForwardedCalls, WaitAsLongAsTheyAreToldInAll) {
  std::array<int, 2> ends{};
  ASSERT_EQ(pipe(ends.data()), 0);
  pollfd wanted{.fd = ends[0], .events = POLLIN, .revents = 0};
  host::SystemCall call{.number = SYS_poll, .arguments = {bits(&wanted), 1, 120}};
  EXPECT_FALSE(make(call));
  EXPECT_EQ(call.arguments[2], 70u);
  EXPECT_FALSE(make(call));
  EXPECT_EQ(call.arguments[2], 20u);
  EXPECT_TRUE(make(call));
  EXPECT_EQ(call.result, 0);
  call.arguments[2] = bits(-1L);
  EXPECT_FALSE(make(call));
  EXPECT_EQ(call.arguments[2], bits(-1L)) << "for ever";
  for (const int end : ends) close(end);
}

TEST_F(ForwardedCalls, OfTooMuchMemoryAreRefused) {
  std::vector<pollfd> many(ForwardedCall::most_bytes / sizeof(pollfd) + 1,
                           {.fd = -1, .events = 0, .revents = 0});
  EXPECT_EQ(made(SYS_poll, {bits(many.data()), many.size(), 0}), -EMSGSIZE);
  EXPECT_NE(made(SYS_poll, {bits(many.data()), many.size() - 1, 0}), -EMSGSIZE);
}

// The result may be more than was stored.
TEST_F(ForwardedCalls, StoreNoMoreThanTheBufferTakes) {
  std::array<int, 2> ends{};
  ASSERT_EQ(socketpair(AF_UNIX, SOCK_DGRAM, 0, ends.data()), 0);
  ASSERT_EQ(write(ends[1], "0123456789", 10), 10);
  std::array<char, 11> back{"----------"};
  EXPECT_EQ(made(SYS_recvfrom, {bits(long{ends[0]}), bits(back.data()), 4, MSG_TRUNC}), 10);
  EXPECT_STREQ(back.data(), "0123------");
  for (const int end : ends) close(end);
}

TEST_F(ForwardedCalls, SetsOfDescriptors) {
  std::array<int, 2> ends{};
  ASSERT_EQ(pipe(ends.data()), 0);
  fd_set reads;
  fd_set writes;
  const auto all = static_cast<std::uint64_t>(std::max(ends[0], ends[1])) + 1;
  const auto fill = [&] {
    FD_ZERO(&reads);
    FD_ZERO(&writes);
    FD_SET(ends[0], &reads);
    FD_SET(ends[1], &writes);
  };
  timeval soon{.tv_sec = 0, .tv_usec = 1000};
  fill();
  EXPECT_EQ(made(SYS_select, {all, bits(&reads), bits(&writes), 0, bits(&soon)}), 1);
  EXPECT_FALSE(FD_ISSET(ends[0], &reads));
  EXPECT_TRUE(FD_ISSET(ends[1], &writes));
  fill();
  EXPECT_EQ(made(SYS_select, {all, bits(&reads), 0, 0, bits(&soon)}), 0);
  fill();
  EXPECT_EQ(made(SYS_pselect6, {all, bits(&reads), 0, 0, 0, 0}), not_made) << "for ever";
  ASSERT_EQ(write(ends[1], "a", 1), 1);
  fill();
  EXPECT_EQ(made(SYS_pselect6, {all, bits(&reads), bits(&writes), 0, 0, 0}), 2);
  pollfd wanted{.fd = ends[0], .events = POLLIN, .revents = 0};
  EXPECT_EQ(made(SYS_ppoll, {bits(&wanted), 1, 0, 0, 0}), 1);
  const timespec none{};
  wanted.events = POLLPRI;
  EXPECT_EQ(made(SYS_ppoll, {bits(&wanted), 1, bits(&none), 0, 0}), 0);
  close(ends[1]);
  close(ends[0]);
  fill();
  EXPECT_EQ(made(SYS_select, {all, bits(&reads), 0, 0, 0}), -EBADF);
}

TEST_F(ForwardedCalls, MessagesAndEvents) {
  std::array<int, 2> ends{};
  ASSERT_EQ(made(SYS_socketpair, {AF_UNIX, SOCK_STREAM, 0, bits(ends.data())}), 0);
  const long queue = made(SYS_epoll_create1, {0});
  epoll_event event{.events = EPOLLIN, .data = {.u64 = 77}};
  EXPECT_EQ(made(SYS_epoll_ctl, {bits(queue), EPOLL_CTL_ADD, bits(long{ends[0]}), bits(&event)}),
            0);
  std::array<epoll_event, 3> found{};
  EXPECT_EQ(made(SYS_epoll_wait, {bits(queue), bits(found.data()), 3, 60}), not_made);
  EXPECT_EQ(made(SYS_epoll_wait, {bits(queue), bits(found.data()), 3, 1}), 0);
  std::array<char, 4> first{'a', 'b', 'c', 'd'};
  std::array<char, 2> second{'e', 'f'};
  std::array parts{iovec{first.data(), 4}, iovec{second.data(), 2}};
  msghdr message{};
  message.msg_iov = parts.data();
  message.msg_iovlen = 2;
  EXPECT_EQ(made(SYS_sendmsg, {bits(long{ends[1]}), bits(&message), 0}), 6);
  EXPECT_EQ(made(SYS_epoll_pwait, {bits(queue), bits(found.data()), 3, bits(-1L), 0, 8}), 1);
  const std::uint64_t told = found[0].data.u64;  // events are packed
  EXPECT_EQ(told, 77u);
  first.fill('-');
  second.fill('-');
  message.msg_flags = 5;
  EXPECT_EQ(made(SYS_recvmsg, {bits(long{ends[0]}), bits(&message), MSG_PEEK}), 6);
  EXPECT_EQ(std::string(first.data(), 4) + std::string(second.data(), 2), "abcdef");
  EXPECT_EQ(message.msg_flags, 0);
  message.msg_control = second.data();
  EXPECT_EQ(ComposedCall::kind_of({.number = SYS_recvmsg, .arguments = {0, bits(&message)}}),
            CallKind::refused);
  for (const int end : ends) close(end);
  close(static_cast<int>(queue));
}

// FWC1
TEST_F(ForwardedCalls, OthersStayOrAreRefused) {
  for (const long number : {SYS_futex, SYS_mprotect, SYS_gettid, SYS_uname, SYS_rt_sigaction})
    EXPECT_EQ(kind_of(number), CallKind::local) << number;
  for (const long number :
       {SYS_select, SYS_readv, SYS_sendmmsg, SYS_execve, SYS_clone, SYS_ioctl, SYS_getsockname,
        SYS_memfd_create, SYS_inotify_add_watch, SYS_mq_open, SYS_semget, SYS_unshare})
    EXPECT_EQ(kind_of(number), CallKind::refused) << number;
  constexpr long futex_wait = 455;
  constexpr long pidfd_getfd = 438;
  constexpr long first_of_later = 424;
  EXPECT_EQ(kind_of(futex_wait), CallKind::local);
  for (const long number : {pidfd_getfd, first_of_later, 441L, 100'000L})
    EXPECT_EQ(kind_of(number), CallKind::refused) << number;
  EXPECT_EQ(kind_of(SYS_rseq), CallKind::local) << "of the earlier ones";
  EXPECT_EQ(kind_of(SYS_fcntl, {0, F_NOTIFY}), CallKind::refused);
  EXPECT_EQ(kind_of(SYS_recvfrom, {0, 0, 0, 0, 1}), CallKind::refused);
  EXPECT_EQ(kind_of(SYS_recvfrom), CallKind::forwarded);
}

TEST_F(ForwardedCalls, WaitsWithAMaskOfSignalsAreRefused) {
  sigset_t mask;
  sigemptyset(&mask);
  const std::array<std::uint64_t, 2> mask_and_size{bits(&mask), 8};
  const std::array<std::uint64_t, 2> no_mask{0, 8};
  const auto composed = [](long number, std::array<std::uint64_t, 6> arguments) {
    return ComposedCall::kind_of({.number = number, .arguments = arguments});
  };
  EXPECT_EQ(composed(SYS_ppoll, {bits(&mask), 1, 0, bits(&mask), 8}), CallKind::refused);
  EXPECT_EQ(composed(SYS_ppoll, {0, 0, 0, bits(&mask), 8}), CallKind::local) << "a sleep";
  EXPECT_EQ(composed(SYS_epoll_pwait, {0, 0, 1, 0, bits(&mask), 8}), CallKind::refused);
  EXPECT_EQ(composed(SYS_pselect6, {1, 0, 0, 0, 0, bits(&mask_and_size)}), CallKind::refused);
  EXPECT_EQ(composed(SYS_pselect6, {1, 0, 0, 0, 0, bits(&no_mask)}), CallKind::forwarded);
  EXPECT_EQ(composed(SYS_pselect6, {0, 0, 0, 0, 0, bits(&mask_and_size)}), CallKind::local);
}

TEST_F(ForwardedCalls, AMessageThatEndsEarlyIsNoCall) {
  const ForwardedCall::Bytes none;
  host::SystemCall call{.number = SYS_close, .arguments = {bits(-1L)}};
  EXPECT_TRUE(ForwardedCall::finish(call, ForwardedCall::execute(none)));
  EXPECT_LT(call.result, 0);
}

}  // namespace
}  // namespace tombolo::dsm

#endif
