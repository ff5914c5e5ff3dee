// SPDX-License-Identifier: Apache-2.0
// Purpose: memory that is not moved to the image, or not back: for its other uses, for threads that
// could store to it, for devices, for hosts without memory, and where the kernel refuses.
#include <gtest/gtest.h>
#include <pthread.h>
#include <signal.h>
#include <sys/mman.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <functional>
#include <string>
#include <thread>

#include "host/images/own_memory.h"
#include "host/images/testing/own_memories.h"
#include "host/memory/page.h"
#include "host/memory/testing/fake_host.h"
#include "host/memory/testing/memory.h"
#include "host/memory/testing/system_calls.h"

namespace tombolo::host {
namespace {

using testing::Answering;
using testing::Call;
using testing::FakeHost;
using testing::fresh;
using testing::is_private;
using testing::is_shared;
using testing::NeedsSharing;
using testing::pass;
using testing::Plain;
using testing::refuse;

using Moving = OwnMemory::Moving;
const std::uint64_t page = page_bytes();

// A thread that waits for its end; with faults blocked it could not be kept from storing.
class Waiting {
 public:
  explicit Waiting(bool blocks_faults)
      : thread_([this, blocks_faults] {
          sigset_t fault;
          sigemptyset(&fault);
          sigaddset(&fault, SIGSEGV);
          if (blocks_faults) pthread_sigmask(SIG_BLOCK, &fault, nullptr);
          runs_ = true;
          while (!ends_) std::this_thread::yield();
        }) {
    while (!runs_) std::this_thread::yield();
  }
  ~Waiting() {
    ends_ = true;
    thread_.join();
  }
  Waiting(const Waiting&) = delete;
  Waiting& operator=(const Waiting&) = delete;

 private:
  std::atomic<bool> runs_{false};
  std::atomic<bool> ends_{false};
  std::thread thread_;
};

#if defined(__SANITIZE_THREAD__)
constexpr bool threads_can_be_held = false;  // the sanitizer's own block faults
#else
constexpr bool threads_can_be_held = true;
#endif

class OwnMemoryRefusalsTest : public NeedsSharing {
 protected:
  Plain plain_{4};
};

// --- Other uses ---------------------------------------------------------------------------------

TEST_F(OwnMemoryRefusalsTest, DoesNotMoveInWhatHasAnotherUseOfTheSameRange) {
  OwnMemory& own = fresh();
  auto first = own.enter(plain_.at(0), page);
  auto second = own.enter(plain_.at(0), page);
  EXPECT_TRUE(own.share(second).empty()) << "peers may be writing through the first use";
  EXPECT_TRUE(is_private(plain_.at(0)));
  first.end();
  EXPECT_EQ(own.share(second), second.range());
}

TEST_F(OwnMemoryRefusalsTest, DoesNotMoveInAPageWithAnotherUseInIt) {
  OwnMemory& own = fresh();
  auto first = own.enter(plain_.at(16), 100);
  auto second = own.enter(plain_.at(500), 100);
  EXPECT_TRUE(own.share(second).empty()) << "peers may be writing to the page";
  EXPECT_TRUE(is_private(plain_.at(0)));
}

// --- Threads ------------------------------------------------------------------------------------

TEST_F(OwnMemoryRefusalsTest, MovesNothingWhereNoneMayMove) {
  OwnMemory& own = fresh();
  auto use = own.enter(plain_.at(0), 2 * page);
  EXPECT_TRUE(own.share(use, Moving::no).empty());
  EXPECT_TRUE(is_private(plain_.at(0)));
  EXPECT_EQ(own.share(use, Moving::held), use.range());
  auto second = own.enter(plain_.at(page), 100);
  EXPECT_EQ(own.share(second, Moving::no), second.range()) << "it is there";
}

TEST_F(OwnMemoryRefusalsTest, MovesOnlyWholePagesWhereThreadsCannotBeHeld) {
  const Waiting other(true);
  OwnMemory& own = fresh();
  auto use = own.enter(plain_.at(8), 2 * page);
  EXPECT_TRUE(own.share(use, Moving::held).empty());
  EXPECT_TRUE(is_private(plain_.page(1)));
  EXPECT_EQ(own.share(use), plain_.pages(1, 1));
  EXPECT_TRUE(is_private(plain_.page(0)));
  EXPECT_TRUE(is_private(plain_.page(2)));
  use.end();
  EXPECT_TRUE(is_private(plain_.page(1)));
  EXPECT_TRUE(own.take_error().ok());
}

TEST_F(OwnMemoryRefusalsTest, PagesWithOtherVariablesStayWhereThreadsCannotBeHeldAnyMore) {
  if (!threads_can_be_held) GTEST_SKIP() << "not with the thread sanitizer";
  *plain_.at(1) = 5;
  OwnMemory& own = fresh();
  auto use = own.enter(plain_.at(8), page);
  ASSERT_EQ(own.share(use), use.range());
  {
    const Waiting other(true);
    use.end();
    EXPECT_TRUE(is_shared(plain_.page(0))) << "a store to it could be lost";
    EXPECT_EQ(own.take_error().code(), Code::unsupported);
  }
  EXPECT_TRUE(own.take_error().ok()) << "it is told once";
  EXPECT_TRUE(own.has_image());
  EXPECT_EQ(*plain_.at(1), 5);
  own.enter(plain_.at(8), page).end();
  EXPECT_TRUE(is_private(plain_.page(0))) << "with the next use";
  EXPECT_TRUE(own.take_error().ok());
  EXPECT_FALSE(own.has_image());
}

TEST_F(OwnMemoryRefusalsTest, PagesThatHaveNoOtherVariablesNowMoveBackWhereThreadsCannotBeHeld) {
  if (!threads_can_be_held) GTEST_SKIP() << "not with the thread sanitizer";
  OwnMemory& own = fresh();
  auto some = own.enter(plain_.at(8), 100);
  ASSERT_FALSE(own.share(some).empty());
  some.end();
  auto all = own.enter(plain_.at(0), page);
  ASSERT_FALSE(own.share(all).empty());
  const Waiting other(true);
  all.end();
  EXPECT_TRUE(is_private(plain_.at(0)));
  EXPECT_TRUE(own.take_error().ok());
}

// As memory of the heap that was in a window and has been freed since.
TEST_F(OwnMemoryRefusalsTest, PagesThatHaveOtherVariablesNowStayWhereThreadsCannotBeHeld) {
  if (!threads_can_be_held) GTEST_SKIP() << "not with the thread sanitizer";
  OwnMemory& own = fresh();
  auto all = own.enter(plain_.at(0), page);
  ASSERT_FALSE(own.share(all).empty());
  auto some = own.enter(plain_.at(8), 100);
  ASSERT_FALSE(own.share(some).empty());
  all.end();
  {
    const Waiting other(true);
    some.end();
    EXPECT_TRUE(is_shared(plain_.at(0))) << "a store to the rest of the page could be lost";
    EXPECT_EQ(own.take_error().code(), Code::unsupported);
  }
  own.enter(plain_.at(8), 100).end();
  EXPECT_TRUE(is_private(plain_.at(0)));
}

int holds_of(const std::function<void()>& f) {
  int holds = 0;
  const Answering answering([&](const Call& call) {
    holds += call.number == SYS_mprotect && call.int_at(2) == PROT_READ ? 1 : 0;
    return pass(call);
  });
  f();
  return holds;
}

TEST_F(OwnMemoryRefusalsTest, ThreadsAreHeldWhereTheyCanBe) {
  if (!threads_can_be_held) GTEST_SKIP() << "not with the thread sanitizer";
  const Waiting other(false);
  OwnMemory& own = fresh();
  auto use = own.enter(plain_.at(0), page);
  EXPECT_EQ(holds_of([&] { ASSERT_FALSE(own.share(use).empty()); }), 1);
  EXPECT_EQ(holds_of([&] { use.end(); }), 1);
  EXPECT_TRUE(is_private(plain_.at(0)));
}

// --- Devices ------------------------------------------------------------------------------------

TEST_F(OwnMemoryRefusalsTest, MovesNothingWhilePagesAreLocked) {
  const Plain locked(1);
  // Not by mlock(), which a sanitizer answers itself.
  const Call lock{SYS_mlock, {reinterpret_cast<long>(locked.at(0)), static_cast<long>(page)}};
  if (pass(lock) != 0) GTEST_SKIP() << "no page may be locked here";
  OwnMemory& own = fresh();
  auto use = own.enter(plain_.at(0), page);
  EXPECT_TRUE(own.share(use).empty());
  pass({SYS_munlock, lock.arguments});
  EXPECT_FALSE(own.share(use).empty());
}

// Memory of a window may be registered while the window is there.
TEST_F(OwnMemoryRefusalsTest, MovesNothingBackWhilePagesAreLocked) {
  const Plain locked(1);
  const Call lock{SYS_mlock, {reinterpret_cast<long>(locked.at(0)), static_cast<long>(page)}};
  OwnMemory& own = fresh();
  auto use = own.enter(plain_.at(0), page);
  ASSERT_FALSE(own.share(use).empty());
  if (pass(lock) != 0) GTEST_SKIP() << "no page may be locked here";
  use.end();
  EXPECT_TRUE(is_shared(plain_.at(0)));
  EXPECT_EQ(own.take_error().code(), Code::unsupported);
  pass({SYS_munlock, lock.arguments});
  own.enter(plain_.at(0), page).end();
  EXPECT_TRUE(is_private(plain_.at(0)));
  EXPECT_TRUE(own.take_error().ok());
}

TEST_F(OwnMemoryRefusalsTest, MovesNothingOnceAnotherLibraryHasMemoryOfTheProgram) {
  OwnMemory& own = fresh();
  auto shared = own.enter(plain_.at(0), page);
  ASSERT_FALSE(own.share(shared).empty());
  own.settle();
  auto later = own.enter(plain_.page(1), page);
  EXPECT_TRUE(own.share(later).empty());
  EXPECT_TRUE(is_private(plain_.page(1)));
  auto again = own.enter(plain_.at(0), page);
  EXPECT_EQ(own.share(again), again.range()) << "it is there";
  again.end();
  shared.end();
  EXPECT_TRUE(is_shared(plain_.at(0)));
  EXPECT_EQ(own.take_error().code(), Code::unsupported);
}

// --- Hosts without memory -----------------------------------------------------------------------

TEST_F(OwnMemoryRefusalsTest, UntouchedMemoryStaysPromisedWhereTheKernelPromisesNoMoreThanItHas) {
  constexpr std::uint64_t most = OwnMemory::most_untouched_bytes;
  FakeHost host;
  host.file("proc/sys/vm/overcommit_memory", "2\n");
  OwnMemory& own = fresh(host.root());
  const Plain large(most / page + 3);
  *large.page(1) = 1;
  {
    auto use = own.enter(large.at(0), most + page);
    EXPECT_EQ(own.share(use), use.range()) << "one page is touched";
  }
  {
    auto use = own.enter(large.at(0), most + 2 * page);
    EXPECT_TRUE(own.share(use).empty()) << "a page too many";
    EXPECT_TRUE(is_private(large.at(0)));
  }
  {
    auto middle = own.enter(large.page(2), page);
    ASSERT_FALSE(own.share(middle).empty());
    auto around = own.enter(large.at(0), most + 3 * page);
    EXPECT_TRUE(own.share(around).empty()) << "a page too many in two parts";
  }
  host.file("proc/sys/vm/overcommit_memory", "0\n");
  auto use = own.enter(large.at(0), large.bytes());
  EXPECT_EQ(own.share(use), use.range());
}

void has_free(FakeHost& host, std::uint64_t mebibytes) {
  host.file("proc/meminfo", "MemAvailable: " + std::to_string(mebibytes << 10) +
                                " kB\nSwapFree: 0 kB\nShmem: 0 kB\n");
}

TEST_F(OwnMemoryRefusalsTest, GivesNoMoreMemoryThanTheHostHas) {
  constexpr std::uint64_t mebibyte = 1 << 20;
  FakeHost host;
  has_free(host, 100);
  OwnMemory& own = fresh(host.root());
  EXPECT_EQ(own.allocate(100 * mebibyte + 1), nullptr);
  EXPECT_EQ(own.allocate(std::uint64_t{1} << 46), nullptr);
  void* const most = own.allocate(60 * mebibyte);
  ASSERT_NE(most, nullptr);
  EXPECT_EQ(own.allocate(60 * mebibyte), nullptr) << "promised already, if not touched";
  EXPECT_TRUE(own.free(most));
  void* const again = own.allocate(60 * mebibyte);
  EXPECT_NE(again, nullptr);
  EXPECT_TRUE(own.free(again));
}

TEST_F(OwnMemoryRefusalsTest, GivesLittleMemoryWhereTheKernelPromisesNoMoreThanItHas) {
  FakeHost host;
  host.file("proc/sys/vm/overcommit_memory", "2\n");
  OwnMemory& own = fresh(host.root());
  void* const most = own.allocate(OwnMemory::most_untouched_bytes);
  EXPECT_NE(most, nullptr);
  EXPECT_TRUE(own.free(most));
  EXPECT_EQ(own.allocate(OwnMemory::most_untouched_bytes + 1), nullptr);
}

// --- Refusals of the kernel ---------------------------------------------------------------------

// The kernel refuses that call, of those of this number.
template <class F>
void refusing(long number, int nth, F&& f) {
  const Answering answering([&](const Call& call) {
    return call.number == number && nth-- == 0 ? refuse(ENOMEM) : pass(call);
  });
  f();
}

// Pages 0 and 2 are private, page 1 is in the image.
TEST_F(OwnMemoryRefusalsTest, AllIsAsItWasWhereTheKernelRefusesAPart) {
  for (std::uint64_t i = 0; i < 3; ++i) *plain_.page(i) = static_cast<char>(i + 1);
  OwnMemory& own = fresh();
  auto middle = own.enter(plain_.page(1), page);
  ASSERT_FALSE(own.share(middle).empty());
  for (const int part : {0, 1}) {
    auto use = own.enter(plain_.page(0), 3 * page);
    refusing(SYS_pwrite64, part, [&] { EXPECT_TRUE(own.share(use).empty()); });
    use.end();
    EXPECT_TRUE(is_private(plain_.page(0)));
    EXPECT_TRUE(is_shared(plain_.page(1)));
    EXPECT_TRUE(is_private(plain_.page(2)));
    for (std::uint64_t i = 0; i < 3; ++i) EXPECT_EQ(*plain_.page(i), static_cast<char>(i + 1));
    EXPECT_TRUE(own.take_error().ok());
  }
}

TEST_F(OwnMemoryRefusalsTest, TheFirstErrorIsTold) {
  OwnMemory& own = fresh();
  std::array<OwnMemory::Use, 3> uses;
  for (std::uint64_t i = 0; i < 3; ++i) {
    uses[i] = own.enter(plain_.page(i), page);
    ASSERT_FALSE(own.share(uses[i]).empty());
  }
  refusing(SYS_mremap, 0, [&] { uses[0].end(); });
  refusing(SYS_lseek, 0, [&] { uses[1].end(); });
  uses[2].end();
  const Status error = own.take_error();
  EXPECT_NE(std::string(error.message()).find("mremap"), std::string::npos) << error.message();
  EXPECT_TRUE(own.take_error().ok());
  EXPECT_TRUE(is_shared(plain_.page(0)));
  EXPECT_TRUE(is_shared(plain_.page(1)));
  EXPECT_TRUE(is_private(plain_.page(2)));
}

// --- The state of the image ----------------------------------------------------------------------

TEST_F(OwnMemoryRefusalsTest, HasAnImageWhilePagesAreInIt) {
  OwnMemory& own = fresh();
  EXPECT_FALSE(own.has_image());
  auto use = own.enter(plain_.at(0), page);
  EXPECT_FALSE(own.has_image());
  ASSERT_FALSE(own.share(use).empty());
  EXPECT_TRUE(own.has_image());
  use.end();
  EXPECT_FALSE(own.has_image());
  void* const memory = own.allocate(1);
  ASSERT_NE(memory, nullptr);
  EXPECT_TRUE(own.has_image());
  EXPECT_TRUE(own.free(memory));
  EXPECT_FALSE(own.has_image());
}

TEST_F(OwnMemoryRefusalsTest, MemoryInThePlaceOfFreedMemoryMovesBack) {
  OwnMemory& own = fresh();
  void* const memory = own.allocate(page);
  ASSERT_NE(memory, nullptr);
  ASSERT_TRUE(own.free(memory));
  ASSERT_EQ(mmap(memory, page, PROT_READ | PROT_WRITE,
                 MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0),
            memory);
  auto use = own.enter(memory, page);
  ASSERT_FALSE(own.share(use).empty());
  use.end();
  EXPECT_TRUE(is_private(memory));
  munmap(memory, page);
}

// Read from a file when they are first touched.
constexpr std::uint64_t largest_page = 65536;
alignas(largest_page) std::array<char, 2 * largest_page> initialized = {1};

TEST_F(OwnMemoryRefusalsTest, VariablesThatWereNotTouchedYetComeAlong) {
  ASSERT_EQ(madvise(initialized.data(), initialized.size(), MADV_DONTNEED), 0);
  OwnMemory& own = own_memory();
  auto use = own.enter(initialized.data(), initialized.size());
  ASSERT_FALSE(own.share(use).empty());
  EXPECT_EQ(initialized[0], 1);
}

}  // namespace
}  // namespace tombolo::host
