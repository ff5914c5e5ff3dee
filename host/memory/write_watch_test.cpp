// SPDX-License-Identifier: Apache-2.0
// Purpose: which writes a watch tells of: each once, on every kind of memory, whatever happens to
// the pages; and that it says so where it cannot.
#include "host/memory/write_watch.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <linux/userfaultfd.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cstddef>
#include <cstring>
#include <functional>
#include <numeric>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "base/random.h"
#include "host/memory/page.h"

#ifndef MADV_COLLAPSE
#define MADV_COLLAPSE 25
#endif

namespace tombolo::host {
namespace {

using Pages = std::set<std::size_t>;
const std::size_t page = page_bytes();

enum class Kind { own, shared, memfd, file };

// Some pages of memory of one kind.
class Memory {
 public:
  explicit Memory(std::size_t pages, Kind kind = Kind::memfd) : bytes_(pages * page) {
    int flags = MAP_SHARED;
    if (kind == Kind::memfd) file_ = memfd_create("write_watch_test", MFD_CLOEXEC);
    if (kind == Kind::file) {
      std::string path = ::testing::TempDir() + "write_watch_XXXXXX";
      file_ = mkstemp(path.data());
      unlink(path.c_str());
    }
    if (file_ >= 0) {
      EXPECT_EQ(ftruncate(file_, static_cast<off_t>(bytes_)), 0);
    } else {
      flags = MAP_ANONYMOUS | (kind == Kind::own ? MAP_PRIVATE : MAP_SHARED);
    }
    at_ = map(flags);
    // All of a huge page counts as written (WW2). Fails where the kernel knows none.
    (void)madvise(at_, bytes_, MADV_NOHUGEPAGE);
  }
  ~Memory() {
    munmap(at_, bytes_);
    if (file_ >= 0) close(file_);
  }
  Memory(const Memory&) = delete;
  Memory& operator=(const Memory&) = delete;

  std::byte* at(std::size_t n = 0) const { return at_ + n * page; }
  std::size_t pages() const { return bytes_ / page; }
  std::size_t bytes() const { return bytes_; }
  void store(std::size_t n, std::size_t offset = 0) const {
    *static_cast<volatile std::byte*>(at(n) + offset) = std::byte{1};
  }
  std::byte* map(int flags, void* where = nullptr) const {
    void* memory = mmap(where, bytes_, PROT_READ | PROT_WRITE, flags, file_, 0);
    EXPECT_NE(memory, MAP_FAILED);
    return static_cast<std::byte*>(memory);
  }

 private:
  std::size_t bytes_;
  int file_ = -1;
  std::byte* at_;
};

Pages all_of(const Memory& memory) {
  std::vector<std::size_t> all(memory.pages());
  std::iota(all.begin(), all.end(), std::size_t{0});
  return {all.begin(), all.end()};
}

// The numbers of the visited pages; a page that is visited twice in one call fails.
Pages written(WriteWatch& watch, const Memory& memory) {
  Pages pages;
  const Status asked = watch.each_written([&](std::byte* at, std::size_t bytes) {
    for (std::size_t n = 0; n < bytes; n += page)
      EXPECT_TRUE(pages.insert(static_cast<std::size_t>(at - memory.at() + n) / page).second);
  });
  EXPECT_TRUE(asked.ok()) << asked.message();
  return pages;
}

std::unique_ptr<WriteWatch> watch_on(const Memory& memory) {
  std::unique_ptr<WriteWatch> watch;
  const Status opened = WriteWatch::open(memory.at(), memory.bytes(), watch);
  EXPECT_TRUE(opened.ok()) << opened.message();
  return watch;
}

// Asks until nothing is reported that was not written, as at the start.
void settle(WriteWatch& watch, const Memory& memory) {
  for (std::size_t n = 0; n < memory.pages(); ++n) memory.store(n);
  (void)written(watch, memory);
  EXPECT_EQ(written(watch, memory), Pages{});
}

int in_child(const std::function<int()>& body) {
  const pid_t pid = fork();
  if (pid == 0) _exit(body());
  int state = 0;
  waitpid(pid, &state, 0);
  return WIFEXITED(state) ? WEXITSTATUS(state) : 200 + WTERMSIG(state);
}

class WriteWatchTest : public ::testing::Test {
 protected:
  void SetUp() override {
    const Status available = WriteWatch::available();
    if (!available.ok()) GTEST_SKIP() << available.message();
  }
};
class WriteWatchOn : public WriteWatchTest, public ::testing::WithParamInterface<Kind> {};
std::string name_of(const ::testing::TestParamInfo<Kind>& kind) {
  constexpr std::array names{"Own", "Shared", "Memfd", "File"};
  return names[static_cast<std::size_t>(kind.param)];
}
INSTANTIATE_TEST_SUITE_P(Memory, WriteWatchOn,
                         ::testing::Values(Kind::own, Kind::shared, Kind::memfd, Kind::file),
                         name_of);

TEST_P(WriteWatchOn, SeesEachWriteOnce) {
  const Memory memory(20, GetParam());
  memory.store(3);  // before the watch
  const auto watch = watch_on(memory);
  EXPECT_TRUE(written(*watch, memory).count(3));
  settle(*watch, memory);
  memory.store(0);
  memory.store(5, 17);
  memory.store(5, 4000);
  memory.store(19, page - 1);
  EXPECT_EQ(written(*watch, memory), (Pages{0, 5, 19}));
  EXPECT_EQ(written(*watch, memory), Pages{});
  memory.store(5);
  EXPECT_EQ(written(*watch, memory), Pages{5});
  EXPECT_EQ(written(*watch, memory), Pages{});
}

TEST_P(WriteWatchOn, SeesWritesToPagesThatWereNeverTouched) {
  const Memory memory(20, GetParam());
  const auto watch = watch_on(memory);
  (void)written(*watch, memory);
  memory.store(7);
  EXPECT_TRUE(written(*watch, memory).count(7));
  memory.store(7);
  EXPECT_TRUE(written(*watch, memory).count(7));
}

// More runs than one question to the kernel answers.
TEST_P(WriteWatchOn, SeesManyRuns) {
  const Memory memory(1001, GetParam());
  const auto watch = watch_on(memory);
  settle(*watch, memory);
  Pages expected;
  for (std::size_t n = 0; n < memory.pages(); n += 2) {
    memory.store(n);
    expected.insert(n);
  }
  EXPECT_EQ(written(*watch, memory), expected);
  EXPECT_EQ(written(*watch, memory), Pages{});
}

// On a range that one page table reaches and on a larger one, whose writes are asked for otherwise.
TEST_P(WriteWatchOn, SeesRandomWrites) {
  for (const std::size_t pages : {40u, 1500u}) {
    const Memory memory(pages, GetParam());
    const auto watch = watch_on(memory);
    settle(*watch, memory);
    for (std::uint64_t seed = 1; seed <= 5; ++seed) {
      Random random(seed);
      for (int round = 0; round < 50; ++round) {
        Pages expected;
        for (std::size_t i = random.below(30); i > 0; --i) {
          const std::size_t n = random.below(pages);
          memory.store(n, random.below(page));
          expected.insert(n);
        }
        ASSERT_EQ(written(*watch, memory), expected) << "seed " << seed << ", round " << round;
      }
    }
  }
}

TEST_P(WriteWatchOn, SeesWhatTheKernelStoresForTheProcess) {
  const Memory memory(8, GetParam());
  const auto watch = watch_on(memory);
  settle(*watch, memory);
  int pipe_ends[2];
  ASSERT_EQ(pipe(pipe_ends), 0);
  ASSERT_EQ(write(pipe_ends[1], "abc", 3), 3);
  ASSERT_EQ(read(pipe_ends[0], memory.at(6), 3), 3);
  close(pipe_ends[0]);
  close(pipe_ends[1]);
  EXPECT_EQ(written(*watch, memory), Pages{6});
}

// A page that was written and has then left the page table is visited all the same, though it is no
// longer known whether it was written.
TEST_P(WriteWatchOn, ForgetsNoWriteWhenPagesLeaveThePageTable) {
  for (const std::size_t pages : {40u, 1500u}) {
    const Memory memory(pages, GetParam());
    const auto watch = watch_on(memory);
    settle(*watch, memory);
    memory.store(9);
    memory.store(11);
    if (GetParam() != Kind::own) {  // whose contents would be gone
      ASSERT_EQ(madvise(memory.at(9), page, MADV_DONTNEED), 0);
    }
    (void)madvise(memory.at(11), page, MADV_PAGEOUT);  // nothing happens without swap
    const Pages visited = written(*watch, memory);
    EXPECT_TRUE(visited.count(9) && visited.count(11));
    memory.store(9);
    EXPECT_TRUE(written(*watch, memory).count(9));
  }
}

TEST_P(WriteWatchOn, ForgetsNoWriteWhenAWholePageTableIsDropped) {
  if (GetParam() == Kind::own) GTEST_SKIP() << "its contents would be gone";
  const std::size_t reach = (std::size_t{2} << 20) / page;  // pages that one page table reaches
  const Memory memory(3 * reach, GetParam());
  const auto watch = watch_on(memory);
  settle(*watch, memory);
  for (std::size_t n = 0; n < memory.pages(); ++n) memory.store(n);
  ASSERT_EQ(madvise(memory.at(), memory.bytes(), MADV_DONTNEED), 0);
  EXPECT_EQ(written(*watch, memory), all_of(memory));
}

// Where the kernel gives them: to own memory often, to files if their file system was told so.
TEST_P(WriteWatchOn, SeesWritesToHugePages) {
  const std::size_t reach = (std::size_t{2} << 20) / page;
  const Memory memory(4 * reach, GetParam());
  if (madvise(memory.at(), memory.bytes(), MADV_HUGEPAGE) != 0) GTEST_SKIP() << "no huge pages";
  std::unique_ptr<WriteWatch> watch;
  // Neither end is one of a huge page.
  ASSERT_TRUE(WriteWatch::open(memory.at(3), memory.bytes() - 5 * page, watch).ok());
  Random random(5);
  for (std::size_t n = 0; n < memory.pages(); ++n) memory.store(n);
  EXPECT_EQ(written(*watch, memory).size(), memory.pages() - 5);
  for (int round = 0; round < 100; ++round) {
    const std::size_t n = 3 + random.below(memory.pages() - 5);
    memory.store(n);
    ASSERT_TRUE(written(*watch, memory).count(n));
    if (round % 20 == 7) {
      (void)madvise(memory.at(reach), reach * page, MADV_COLLAPSE);  // may be refused
    }
  }
}

TEST_F(WriteWatchTest, DoesNotReportReads) {
  const Memory memory(10);
  const auto watch = watch_on(memory);
  settle(*watch, memory);
  for (std::size_t n = 0; n < memory.pages(); ++n)
    (void)*static_cast<const volatile std::byte*>(memory.at(n));
  EXPECT_EQ(written(*watch, memory), Pages{});
}

TEST_F(WriteWatchTest, DoesNotReportWritesThroughAnotherMapping) {
  const Memory memory(10);
  const auto watch = watch_on(memory);
  settle(*watch, memory);
  std::byte* other = memory.map(MAP_SHARED);
  std::memset(other, 7, memory.bytes());
  EXPECT_EQ(*memory.at(4), std::byte{7});
  EXPECT_EQ(written(*watch, memory), Pages{});
  memory.store(4);
  EXPECT_EQ(written(*watch, memory), Pages{4});
  munmap(other, memory.bytes());
}

TEST_F(WriteWatchTest, WatchesNothingButItsRange) {
  const Memory memory(10);
  std::unique_ptr<WriteWatch> watch;
  ASSERT_TRUE(WriteWatch::open(memory.at(2), 3 * page, watch).ok());
  settle(*watch, memory);
  for (std::size_t n = 0; n < memory.pages(); ++n) memory.store(n);
  EXPECT_EQ(written(*watch, memory), (Pages{2, 3, 4}));
}

TEST_F(WriteWatchTest, RefusesPagesThatAreWatchedAlready) {
  const Memory memory(10);
  std::unique_ptr<WriteWatch> first;
  std::unique_ptr<WriteWatch> second;
  ASSERT_TRUE(WriteWatch::open(memory.at(2), 3 * page, first).ok());
  for (const std::size_t start : {0u, 1u, 2u, 3u, 4u}) {
    EXPECT_EQ(WriteWatch::open(memory.at(start), 3 * page, second).code(), Code::unsupported);
    EXPECT_EQ(second, nullptr);
  }
  ASSERT_TRUE(WriteWatch::open(memory.at(5), 3 * page, second).ok());
  settle(*first, memory);
  (void)written(*second, memory);
  memory.store(4);
  memory.store(5);
  EXPECT_EQ(written(*first, memory), Pages{4});
  EXPECT_EQ(written(*second, memory), Pages{5});
  first.reset();
  ASSERT_TRUE(WriteWatch::open(memory.at(2), 3 * page, first).ok());
  memory.store(2);
  EXPECT_TRUE(written(*first, memory).count(2));
}

TEST_F(WriteWatchTest, SaysThatItsMemoryWasReplaced) {
  const Memory memory(10);
  const auto watch = watch_on(memory);
  settle(*watch, memory);
  (void)memory.map(MAP_SHARED | MAP_FIXED, memory.at());
  memory.store(1);
  EXPECT_FALSE(watch->each_written([](std::byte*, std::size_t) {}).ok());
}

TEST_F(WriteWatchTest, ClosesWithoutTroubleAfterItsMemoryIsGone) {
  std::unique_ptr<WriteWatch> watch;
  {
    const Memory memory(10);
    watch = watch_on(memory);
  }
  watch.reset();
  // Nor does it keep others from watching the memory that comes there next.
  const Memory memory(10);
  settle(*watch_on(memory), memory);
}

// Threads store while another asks and takes the pages that it is told of to a copy. In the end
// nothing is missing there.
TEST_P(WriteWatchOn, LosesNothingThatIsStoredDuringScans) {
  constexpr std::size_t pages = 100;
  const Memory memory(pages, GetParam());
  const std::size_t words = memory.bytes() / 8;
  auto* stored = reinterpret_cast<std::uint64_t*>(memory.at());
  std::vector<std::uint64_t> copy(words);
  const auto watch = watch_on(memory);
  const auto take = [&] {
    const Status asked = watch->each_written([&](std::byte* at, std::size_t bytes) {
      const auto* from = reinterpret_cast<std::uint64_t*>(at);
      // relaxed (all in this test): the words are independent of each other.
      for (std::size_t i = 0; i < bytes / 8; ++i)
        copy[static_cast<std::size_t>(from - stored) + i] =
            std::atomic_ref(const_cast<std::uint64_t&>(from[i])).load(std::memory_order_relaxed);
    });
    ASSERT_TRUE(asked.ok()) << asked.message();
  };
  for (std::uint64_t seed = 1; seed <= 3; ++seed) {
    std::atomic<int> running = 2;
    std::vector<std::thread> writers;
    for (std::uint64_t writer = 0; writer < 2; ++writer)
      writers.emplace_back([&, writer] {
        Random random(seed * 10 + writer);
        for (int i = 0; i < 20000; ++i)
          std::atomic_ref(stored[random.below(words)])
              .store(random.next(), std::memory_order_relaxed);
        --running;
      });
    while (running > 0) take();
    for (auto& writer : writers) writer.join();
    take();
    ASSERT_EQ(std::memcmp(copy.data(), stored, memory.bytes()), 0) << "seed " << seed;
  }
}

TEST_F(WriteWatchTest, IsOfNoUseInAForkedChildAndKeepsTheParents) {
  const Memory memory(10);
  auto watch = watch_on(memory);
  settle(*watch, memory);
  memory.store(3);
  const auto child = [&] {
    if (watch->each_written([](std::byte*, std::size_t) {}).ok()) return 1;
    watch.reset();
    // A watch of the child's own.
    const Memory own(10);
    watch = watch_on(own);
    if (watch == nullptr) return 2;
    settle(*watch, own);
    own.store(7);
    return written(*watch, own) == Pages{7} ? 0 : 3;
  };
  EXPECT_EQ(in_child(child), 0);
  memory.store(4);
  EXPECT_EQ(written(*watch, memory), (Pages{3, 4}));
  EXPECT_EQ(written(*watch, memory), Pages{});
}

// Lets one system call fail; with `request`, an ioctl only if it is that one.
bool forbid(int number, int error, std::uint32_t request) {
  sock_filter rules[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, static_cast<std::uint32_t>(number), 0, 3),
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, args[1])),
      BPF_JUMP(BPF_JMP | (request != 0 ? BPF_JEQ : BPF_JGE) | BPF_K, request, 0, 1),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | static_cast<std::uint32_t>(error)),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  };
  const sock_fprog program{sizeof rules / sizeof rules[0], rules};
  return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
         prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0;
}

struct Lack {
  int number;
  int error;
  std::uint32_t request;
  const char* named;
};
class WriteWatchWithout : public ::testing::TestWithParam<Lack> {};
INSTANTIATE_TEST_SUITE_P(
    Kernel, WriteWatchWithout,
    ::testing::Values(Lack{SYS_userfaultfd, EPERM, 0, "userfaultfd: Operation not permitted"},
                      Lack{SYS_userfaultfd, ENOSYS, 0, "userfaultfd: Function not implemented"},
                      Lack{SYS_ioctl, EINVAL, UFFDIO_API, "Linux 6.7"},
                      Lack{SYS_ioctl, ENOTTY, 0xc0606610, "PAGEMAP_SCAN"},
                      Lack{SYS_ioctl, EINVAL, UFFDIO_REGISTER, "no write protection for"}),
    [](const auto& lack) { return "Lack" + std::to_string(lack.index); });

TEST_P(WriteWatchWithout, SaysWhatIsMissing) {
  // In a child, which asks the kernel for the first time or again.
  const int result = in_child([] {
    const Lack lack = GetParam();
    const Memory memory(4);
    if (!forbid(lack.number, lack.error, lack.request)) return 77;
    std::unique_ptr<WriteWatch> watch;
    const Status opened = WriteWatch::open(memory.at(), memory.bytes(), watch);
    if (opened.code() != Code::unsupported || watch != nullptr) return 1;
    if (opened.message().find(lack.named) != std::string::npos) return 0;
    return WriteWatch::available().ok() ? 2 : 78;  // 78: this kernel lacks something before that
  });
  if (result == 77) GTEST_SKIP() << "no system call filter here";
  if (result == 78) GTEST_SKIP() << WriteWatch::available().message();
  EXPECT_EQ(result, 0);
}

TEST(WriteWatchDeathTest, WantsWholePages) {
  const Memory memory(4);
  std::unique_ptr<WriteWatch> watch;
  EXPECT_DEATH((void)WriteWatch::open(memory.at() + 8, page, watch).ok(), "whole pages");
  EXPECT_DEATH((void)WriteWatch::open(memory.at(), page + 8, watch).ok(), "whole pages");
}

}  // namespace
}  // namespace tombolo::host
