// SPDX-License-Identifier: Apache-2.0
// Purpose: from a page's copy to its replacement, and while it is held, nothing is called in whose
// place a library may put its own, and nothing is allocated: either could store to the page. This
// program puts its own functions in the place of the C library's, as UCX and profilers do.
#include "host/memory/raw_calls.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdarg>
#include <cstdint>
#include <cstdlib>
#include <functional>
#include <string>
#include <thread>
#include <type_traits>

#include "host/images/memory_image.h"
#include "host/images/own_memory.h"
#include "host/images/testing/own_memories.h"
#include "host/memory/page.h"
#include "host/memory/testing/memory.h"
#include "host/memory/testing/system_calls.h"

namespace tombolo::host {
namespace {

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr bool functions_are_ours = false;  // but the sanitizer's
#else
constexpr bool functions_are_ours = true;
#endif

// Nothing but raw system calls may be made on this thread.
thread_local constinit bool only_raw = false;
constinit std::atomic<const char*> called{nullptr};  // the first function that was, all the same

}  // namespace
}  // namespace tombolo::host

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)

namespace {

void note(const char* function) {
  const char* none = nullptr;
  if (tombolo::host::only_raw) tombolo::host::called.compare_exchange_strong(none, function);
}
template <class Argument>
long word(Argument argument) {
  if constexpr (std::is_pointer_v<Argument>)
    return reinterpret_cast<long>(argument);
  else
    return static_cast<long>(argument);
}
template <class... Arguments>
long noted(const char* function, long number, Arguments... arguments) {
  note(function);
  return tombolo::host::testing::pass({number, {word(arguments)...}});
}
}  // namespace

extern "C" {

void* mmap(void* at, std::size_t bytes, int access, int flags, int file, off_t offset) noexcept {
  return reinterpret_cast<void*>(noted("mmap", SYS_mmap, at, bytes, access, flags, file, offset));
}
int munmap(void* at, std::size_t bytes) noexcept {
  return static_cast<int>(noted("munmap", SYS_munmap, at, bytes));
}
void* mremap(void* from, std::size_t bytes, std::size_t new_bytes, int flags, ...) noexcept {
  va_list arguments;
  va_start(arguments, flags);
  void* const to = (flags & MREMAP_FIXED) != 0 ? va_arg(arguments, void*) : nullptr;
  va_end(arguments);
  return reinterpret_cast<void*>(noted("mremap", SYS_mremap, from, bytes, new_bytes, flags, to));
}
int mprotect(void* at, std::size_t bytes, int access) noexcept {
  return static_cast<int>(noted("mprotect", SYS_mprotect, at, bytes, access));
}
int madvise(void* at, std::size_t bytes, int advice) noexcept {
  return static_cast<int>(noted("madvise", SYS_madvise, at, bytes, advice));
}
int mincore(void* at, std::size_t bytes, unsigned char* residency) noexcept {
  return static_cast<int>(noted("mincore", SYS_mincore, at, bytes, residency));
}
int open(const char* path, int flags, ...) {
  va_list arguments;
  va_start(arguments, flags);
  const auto mode = va_arg(arguments, unsigned);
  va_end(arguments);
  return static_cast<int>(noted("open", SYS_openat, AT_FDCWD, path, flags, mode));
}
int close(int file) { return static_cast<int>(noted("close", SYS_close, file)); }
int fstat(int file, struct stat* shape) noexcept {
  return static_cast<int>(noted("fstat", SYS_fstat, file, shape));
}
ssize_t pread(int file, void* to, std::size_t bytes, off_t offset) {
  return noted("pread", SYS_pread64, file, to, bytes, offset);
}
ssize_t pwrite(int file, const void* from, std::size_t bytes, off_t offset) {
  return noted("pwrite", SYS_pwrite64, file, from, bytes, offset);
}
off_t lseek(int file, off_t offset, int to) noexcept {
  return noted("lseek", SYS_lseek, file, offset, to);
}
int fallocate(int file, int mode, off_t offset, off_t bytes) {
  return static_cast<int>(noted("fallocate", SYS_fallocate, file, mode, offset, bytes));
}

void* __libc_malloc(std::size_t bytes);
void __libc_free(void* memory);
void* malloc(std::size_t bytes) noexcept {
  note("malloc");
  return __libc_malloc(bytes);
}
void free(void* memory) noexcept {
  note("free");
  __libc_free(memory);
}

}  // extern "C"

#endif

namespace tombolo::host {
namespace {

using testing::Answering;
using testing::Call;
using testing::fresh;
using testing::is_private;
using testing::is_shared;
using testing::pass;
using testing::Plain;
using testing::refuse;

const std::uint64_t page = page_bytes();

bool is_with(const Call& call, long number, int flags) {
  return call.number == number && (call.int_at(3) & flags) == flags;
}

// How often pages were held, and how often they were copied and then replaced.
struct Seen {
  int holds = 0;
  int replacements = 0;
};

// Runs `f`, in which only raw calls may be made while pages are held, and from the first call for a
// copy to that which replaces the pages. `refused`: the kernel refuses calls of that number.
Seen watch(const std::function<void()>& f, long refused = -1) {
  Seen seen;
  bool copying = false;
  bool holding = false;
  called = nullptr;
  const Answering answering([&](const Call& call) {
    const bool replaces =
        is_with(call, SYS_mmap, MAP_SHARED | MAP_FIXED) || is_with(call, SYS_mremap, MREMAP_FIXED);
    if (call.number == SYS_pwrite64 || call.number == SYS_lseek) copying = true;
    if (call.number == SYS_mprotect) {
      holding = call.int_at(2) == PROT_READ;
      seen.holds += holding ? 1 : 0;
      copying = false;  // after a refusal the copy is not put in place
    }
    if (replaces) {
      seen.replacements += copying ? 1 : 0;
      copying = false;
    }
    only_raw = copying || holding;
    return call.number == refused ? refuse(ENOSPC) : pass(call);
  });
  f();
  only_raw = false;
  return seen;
}

std::string first_called() {
  const char* const function = called;
  return function == nullptr ? "none" : function;
}

class RawCallsTest : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!functions_are_ours) GTEST_SKIP() << "the C library's functions are the sanitizer's";
    std::vector<Page> pages;
    const Status status = read_pages(plain_.range(), page, pages);
    if (!status.ok()) GTEST_SKIP() << status.message();
    ASSERT_TRUE(image_.open().ok());
    *plain_.page(0) = 1;
    *plain_.page(2) = 3;
  }
  Plain plain_{4};
  MemoryImage image_;
};

// A thread that only waits, so that pages are held.
class Waiting {
 public:
  Waiting() {
    while (!runs_) std::this_thread::yield();  // a thread that starts blocks signals
  }
  ~Waiting() {
    ends_ = true;
    thread_.join();
  }

 private:
  std::atomic<bool> runs_{false};
  std::atomic<bool> ends_{false};
  std::thread thread_{[this] {
    runs_ = true;
    while (!ends_) usleep(100);
  }};
};

TEST(RawCalls, TellWhetherAPageCanBeWrittenToWithoutChangingIt) {
  const Plain plain(2);
  for (std::uint64_t i = 0; i < 8; ++i) *plain.at(i) = static_cast<char>(i + 100);
  const auto at = reinterpret_cast<std::uint64_t>(plain.at(0));
  for (const std::uint64_t byte : {std::uint64_t{0}, std::uint64_t{3}, page - 1, page})
    EXPECT_TRUE(raw::is_writable(at + byte)) << byte;
  for (std::uint64_t i = 0; i < 8; ++i) EXPECT_EQ(*plain.at(i), static_cast<char>(i + 100));
  ASSERT_TRUE(raw::protect(plain.pages(0, 1), PROT_READ));
  EXPECT_FALSE(raw::is_writable(at));
  EXPECT_FALSE(raw::is_writable(at + page - 1));
  EXPECT_TRUE(raw::is_writable(at + page));
  raw::unmap(plain.at(page), page);
  EXPECT_FALSE(raw::is_writable(at + page));
}

TEST_F(RawCallsTest, OnlyTheyMovePages) {
  const Seen in = watch(
      [&] { ASSERT_TRUE(image_.move_in(plain_.range(), MemoryImage::Hold::no, false).ok()); });
  EXPECT_EQ(in.replacements, 1);
  EXPECT_EQ(first_called(), "none");
  const Seen out =
      watch([&] { ASSERT_TRUE(image_.move_out(plain_.range(), MemoryImage::Hold::no).ok()); });
  EXPECT_EQ(out.replacements, 1);
  EXPECT_EQ(first_called(), "none");
  EXPECT_EQ(in.holds + out.holds, 0);
}

TEST_F(RawCallsTest, OnlyTheyMovePagesThatAreHeld) {
  const Waiting other;
  const Seen in = watch(
      [&] { ASSERT_TRUE(image_.move_in(plain_.range(), MemoryImage::Hold::yes, false).ok()); });
  EXPECT_EQ(in.replacements, 1);
  EXPECT_EQ(in.holds, 1);
  EXPECT_EQ(first_called(), "none");
  const Seen out =
      watch([&] { ASSERT_TRUE(image_.move_out(plain_.range(), MemoryImage::Hold::yes).ok()); });
  EXPECT_EQ(out.replacements, 1);
  EXPECT_EQ(out.holds, 1);
  EXPECT_EQ(first_called(), "none");
}

// The message for it is made after the hold.
TEST_F(RawCallsTest, OnlyTheyAreMadeWhereTheKernelRefuses) {
  const Waiting other;
  for (const long refused : {SYS_pwrite64, SYS_mmap}) {
    const Seen in = watch(
        [&] {
          EXPECT_EQ(image_.move_in(plain_.range(), MemoryImage::Hold::yes, false).code(), Code::io);
        },
        refused);
    EXPECT_EQ(in.holds, 1);
    EXPECT_EQ(first_called(), "none");
    EXPECT_TRUE(is_private(plain_.at(0)));
  }
  ASSERT_TRUE(image_.move_in(plain_.range(), MemoryImage::Hold::yes, false).ok());
  for (const long refused : {SYS_mmap, SYS_lseek, SYS_pread64, SYS_mremap}) {
    const Seen out = watch(
        [&] {
          EXPECT_EQ(image_.move_out(plain_.range(), MemoryImage::Hold::yes).code(), Code::io);
        },
        refused);
    EXPECT_EQ(out.holds, 1);
    EXPECT_EQ(first_called(), "none");
    EXPECT_TRUE(is_shared(plain_.at(0)));
  }
  EXPECT_EQ(*plain_.page(0), 1);
  EXPECT_EQ(*plain_.page(2), 3);
}

// The child's heap would be of two moments.
TEST_F(RawCallsTest, OnlyTheyAreMadeFromTheFirstCopyToTheFork) {
  OwnMemory& own = fresh();
  auto use = own.enter(plain_.at(0), plain_.bytes());
  ASSERT_FALSE(own.share(use).empty());
  bool copied = false;
  called = nullptr;
  {
    const Answering answering([&](const Call& call) {
      if (call.number == SYS_lseek) copied = only_raw = true;
      return pass(call);
    });
    own.before_fork();
    only_raw = false;
  }
  own.after_fork(false);
  EXPECT_TRUE(copied);
  EXPECT_EQ(first_called(), "none");
}

}  // namespace
}  // namespace tombolo::host
