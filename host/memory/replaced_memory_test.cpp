// SPDX-License-Identifier: Apache-2.0
// Purpose: memory replaced in place and given back: contents, holes, odd neighbours, forks, and the
// rules of overlapping uses.
#include "host/memory/replaced_memory.h"

#include <gtest/gtest.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <ucontext.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <optional>

#include "host/memory/own_memory.h"
#include "host/memory/page.h"

// As UCX puts it in the place of the C library's: the fifth argument, the new address, gets lost.
extern "C" void* mremap(void* from, std::size_t bytes, std::size_t new_bytes, int flags,
                        ...) noexcept {
  constexpr std::uintptr_t nowhere = 1;
  return reinterpret_cast<void*>(syscall(SYS_mremap, from, bytes, new_bytes, flags, nowhere));
}

namespace tombolo::host {
namespace {

const std::uint64_t page = page_bytes();

// Private memory of the test's own, between two pages that cannot be accessed.
class Plain {
 public:
  explicit Plain(std::uint64_t pages) : bytes_(pages * page) {
    void* start = mmap(nullptr, bytes_ + 2 * page, PROT_NONE,
                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    EXPECT_NE(start, MAP_FAILED);
    start_ = static_cast<char*>(start) + page;
    EXPECT_EQ(mprotect(start_, bytes_, PROT_READ | PROT_WRITE), 0);
    madvise(start_, bytes_, MADV_NOHUGEPAGE);
  }
  ~Plain() { munmap(start_ - page, bytes_ + 2 * page); }
  char* at(std::uint64_t offset) { return start_ + offset; }
  AddressRange range() const {
    const auto low = reinterpret_cast<std::uint64_t>(start_);
    return {low, low + bytes_};
  }

 private:
  std::uint64_t bytes_;
  char* start_;
};

std::optional<Mapping> mapping_of(const void* address) {
  std::vector<Mapping> mappings;
  EXPECT_TRUE(read_mappings(mappings).ok());
  const auto at = reinterpret_cast<std::uint64_t>(address);
  for (const Mapping& mapping : mappings)
    if (mapping.range.low <= at && at < mapping.range.high) return mapping;
  return {};
}
bool is_shared(const void* address) {
  const auto mapping = mapping_of(address);
  return mapping && mapping->access == "rw-s";
}
bool is_plain(const void* address) {
  const auto mapping = mapping_of(address);
  return mapping && is_plain_memory(*mapping);
}
std::size_t present_pages(const AddressRange& range) {
  std::vector<Page> pages;
  EXPECT_TRUE(read_pages(range, page, pages).ok());
  return static_cast<std::size_t>(std::count(pages.begin(), pages.end(), Page::present));
}

int in_child(const std::function<int()>& body) {
  const pid_t pid = fork();
  if (pid == 0) _exit(body());
  int state = 0;
  waitpid(pid, &state, 0);
  return WIFEXITED(state) ? WEXITSTATUS(state) : 200 + WTERMSIG(state);
}

#if defined(__x86_64__)
// From now on the kernel refuses to move memory of this process, and unmaps the pages in the way,
// as some kernels do that run out of memory in between.
bool refuse_moves() {
  struct sigaction action = {};
  action.sa_flags = SA_SIGINFO;
  action.sa_sigaction = [](int, siginfo_t*, void* context) {
    auto& registers = static_cast<ucontext_t*>(context)->uc_mcontext.gregs;
    munmap(reinterpret_cast<void*>(registers[REG_R8]),
           static_cast<std::size_t>(registers[REG_RDX]));
    registers[REG_RAX] = -ENOMEM;
  };
  sigaction(SIGSYS, &action, nullptr);
  sock_filter filter[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_mremap, 0, 3),
      // A length of 0 asks for a second mapping, which moves nothing.
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, args[1])),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, 0, 1, 0),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_TRAP),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  };
  const sock_fprog program{std::size(filter), filter};
  return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
         prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0;
}
#else
bool refuse_moves() { return false; }
#endif

class ReplacedMemoryTest : public testing::Test {
 protected:
  void SetUp() override {
    std::vector<Page> pages;
    const Status status = read_pages(Plain(1).range(), page, pages);
    if (!status.ok()) GTEST_SKIP() << status.message();
  }
};
using OwnMemoryTest = ReplacedMemoryTest;

TEST_F(ReplacedMemoryTest, KeepsItsContentsThereAndBack) {
  Plain plain(4);
  for (std::uint64_t i = 0; i < 4 * page; ++i) *plain.at(i) = static_cast<char>(i % 251);
  {
    ReplacedMemory memory;
    ASSERT_TRUE(ReplacedMemory::take(plain.range(), 2, memory).ok());
    EXPECT_TRUE(is_shared(plain.at(0)));
    Segment peer;
    ASSERT_TRUE(Segment::attach(memory.name(), peer).ok());
    memory.seal();
    for (std::uint64_t i = 0; i < 4 * page; ++i) {
      ASSERT_EQ(*plain.at(i), static_cast<char>(i % 251)) << i;
      ASSERT_EQ(peer.data()[i], static_cast<std::byte>(i % 251)) << i;
    }
    peer.data()[page + 1] = std::byte{77};
    EXPECT_EQ(*plain.at(page + 1), 77);
    *plain.at(5) = 78;
    EXPECT_EQ(peer.data()[5], std::byte{78});
  }
  EXPECT_TRUE(is_plain(plain.at(0)));
  EXPECT_EQ(*plain.at(page + 1), 77);
  EXPECT_EQ(*plain.at(5), 78);
  for (std::uint64_t i = 2 * page; i < 4 * page; ++i)
    ASSERT_EQ(*plain.at(i), static_cast<char>(i % 251)) << i;
}

TEST_F(ReplacedMemoryTest, LeavesHolesAsHoles) {
  constexpr std::uint64_t pages = 12000;  // several chunks
  Plain plain(pages);
  *plain.at(3 * page) = 1;
  *plain.at(7000 * page + 9) = 2;
  {
    ReplacedMemory memory;
    ASSERT_TRUE(ReplacedMemory::take(plain.range(), 2, memory).ok());
    EXPECT_EQ(*plain.at(3 * page), 1);
    *plain.at(11999 * page) = 3;
  }
  EXPECT_LE(present_pages(plain.range()), 3u);
  EXPECT_EQ(*plain.at(3 * page), 1);
  EXPECT_EQ(*plain.at(7000 * page + 9), 2);
  EXPECT_EQ(*plain.at(11999 * page), 3);
  EXPECT_EQ(*plain.at(5 * page), 0);
}

TEST_F(ReplacedMemoryTest, RefusesASparseRegionThatMayNeedMoreThanItsShare) {
  constexpr std::uint64_t pages = std::uint64_t{8} << 18;  // 8 GiB of pages of 4 KiB
  Plain plain(pages);
  *plain.at(4 * page) = 1;
  ReplacedMemory memory;
  EXPECT_FALSE(ReplacedMemory::take(plain.range(), 1'000'000, memory).ok());
  EXPECT_TRUE(is_plain(plain.at(4 * page)));
  EXPECT_EQ(*plain.at(4 * page), 1);
  EXPECT_EQ(present_pages(plain.range()), 1u);
}

TEST_F(ReplacedMemoryTest, IsPrivateToForkedProcessesAfterwards) {
  Plain plain(2);
  *plain.at(0) = 1;
  {
    ReplacedMemory memory;
    ASSERT_TRUE(ReplacedMemory::take(plain.range(), 2, memory).ok());
    memory.seal();
  }
  EXPECT_EQ(in_child([&] {
              *plain.at(0) = 9;
              return 0;
            }),
            0);
  EXPECT_EQ(*plain.at(0), 1);
  EXPECT_EQ(madvise(plain.at(0), page, MADV_DONTNEED), 0);
  EXPECT_EQ(*plain.at(0), 0) << "as allocators expect";
}

TEST_F(ReplacedMemoryTest, AForkedProcessGivesNothingBack) {
  Plain plain(2);
  *plain.at(0) = 1;
  ReplacedMemory memory;
  ASSERT_TRUE(ReplacedMemory::take(plain.range(), 2, memory).ok());
  memory.seal();
  EXPECT_EQ(in_child([&] {
              (void)memory.give_back();
              return is_shared(plain.at(0)) && *plain.at(0) == 1 ? 0 : 1;
            }),
            0);
  EXPECT_TRUE(is_shared(plain.at(0)));
  EXPECT_EQ(*plain.at(0), 1);
}

TEST_F(ReplacedMemoryTest, LeavesAloneWhatTheProgramUnmappedOrMappedAnew) {
  Plain plain(6);
  for (std::uint64_t i = 0; i < 6; ++i) *plain.at(i * page) = static_cast<char>(i + 1);
  {
    ReplacedMemory memory;
    ASSERT_TRUE(ReplacedMemory::take(plain.range(), 2, memory).ok());
    memory.seal();
    munmap(plain.at(page), page);
    void* fresh = mmap(plain.at(3 * page), page, PROT_READ | PROT_WRITE,
                       MAP_SHARED | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
    ASSERT_NE(fresh, MAP_FAILED);
    *plain.at(3 * page) = 99;
  }
  EXPECT_FALSE(mapping_of(plain.at(page)));
  EXPECT_TRUE(is_shared(plain.at(3 * page)));
  EXPECT_EQ(*plain.at(3 * page), 99);
  for (const std::uint64_t i : {0, 2, 4, 5}) {
    EXPECT_TRUE(is_plain(plain.at(i * page))) << i;
    EXPECT_EQ(*plain.at(i * page), static_cast<char>(i + 1));
  }
}

TEST_F(ReplacedMemoryTest, IsGivenBackThoughTheProgramClosedAllDescriptors) {
  Plain plain(3);
  *plain.at(0) = 1;
  *plain.at(2 * page) = 3;
  EXPECT_EQ(in_child([&] {
              ReplacedMemory memory;
              if (!ReplacedMemory::take(plain.range(), 2, memory).ok()) return 1;
              memory.seal();
              for (int descriptor = 3; descriptor < 100; ++descriptor) close(descriptor);
              (void)memory.give_back();
              if (!is_plain(plain.at(0))) return 2;
              return *plain.at(0) == 1 && *plain.at(page) == 0 && *plain.at(2 * page) == 3 ? 0 : 3;
            }),
            0);
}

TEST_F(ReplacedMemoryTest, StaysSharedWithItsContentsWhereTheKernelRefuses) {
  for (const bool closed : {false, true}) {
    Plain plain(3);
    *plain.at(0) = 1;
    const int result = in_child([&] {
      OwnMemory own;
      auto use = own.enter(plain.at(0), 3 * page);
      if (own.replace(use, 2) == nullptr) return 1;
      *plain.at(2 * page) = 3;
      for (int descriptor = 3; closed && descriptor < 100; ++descriptor) close(descriptor);
      if (!refuse_moves()) return 100;
      use.end();
      if (own.take_error().code() != Code::io) return 2;
      if (!own.take_error().ok()) return 3;
      if (!is_shared(plain.at(0)) || !is_shared(plain.at(2 * page))) return 4;
      return *plain.at(0) == 1 && *plain.at(page) == 0 && *plain.at(2 * page) == 3 ? 0 : 5;
    });
    if (result == 100) GTEST_SKIP() << "system calls cannot be made to fail here";
    EXPECT_EQ(result, 0) << closed;
  }
}

TEST_F(ReplacedMemoryTest, KeepsToItsShareOfTheDescriptors) {
  Plain plain(2);
  *plain.at(0) = 1;
  EXPECT_EQ(in_child([&] {
              rlimit few{8, 8};
              setrlimit(RLIMIT_NOFILE, &few);
              ReplacedMemory memory;
              if (ReplacedMemory::take(plain.range(), 2, memory).ok()) return 1;
              return is_plain(plain.at(0)) && *plain.at(0) == 1 ? 0 : 2;
            }),
            0);
}

TEST_F(ReplacedMemoryTest, FindsTheWholePagesOfARegion) {
  Plain plain(4);
  const AddressRange all = plain.range();
  EXPECT_EQ(replaceable_part(all), all);
  EXPECT_EQ(replaceable_part({all.low + 8, all.high - 8}),
            (AddressRange{all.low + page, all.high - page}));
  EXPECT_TRUE(replaceable_part({all.low + 8, all.low + page}).empty());
  EXPECT_TRUE(replaceable_part({all.low + 8, all.low + 8}).empty());
  mprotect(plain.at(page), page, PROT_READ);
  EXPECT_EQ(replaceable_part(all), (AddressRange{all.low + 2 * page, all.high}));
  char on_the_stack[65536];
  const auto low = reinterpret_cast<std::uint64_t>(on_the_stack);
  EXPECT_TRUE(replaceable_part({low, low + sizeof on_the_stack}).empty());
}

TEST_F(ReplacedMemoryTest, IsNotFoundWhereMemoryIsLocked) {
#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
  GTEST_SKIP() << "sanitizers leave out mlock";
#endif
  Plain plain(2);
  if (mlock(plain.at(0), page) != 0) GTEST_SKIP() << "nothing can be locked";
  EXPECT_TRUE(replaceable_part(plain.range()).empty());
}

TEST_F(OwnMemoryTest, IsGivenBackWithItsUse) {
  Plain plain(4);
  *plain.at(0) = 1;
  OwnMemory own;
  auto use = own.enter(plain.at(8), 4 * page - 8);
  const ReplacedMemory* memory = own.replace(use, 2);
  ASSERT_NE(memory, nullptr);
  EXPECT_EQ(memory->range(), (AddressRange{plain.range().low + page, plain.range().high}));
  EXPECT_FALSE(is_shared(plain.at(0)));
  EXPECT_TRUE(is_shared(plain.at(page)));
  use.end();
  EXPECT_TRUE(is_plain(plain.at(page)));
}

TEST_F(OwnMemoryTest, IsGivenBackWithTheLastUseOfOverlappingOnes) {
  Plain plain(4);
  OwnMemory own;
  auto first = own.enter(plain.at(0), 2 * page);
  ASSERT_NE(own.replace(first, 2), nullptr);
  auto second = own.enter(plain.at(page), 3 * page);
  EXPECT_EQ(own.replace(second, 2), nullptr);
  EXPECT_FALSE(is_shared(plain.at(3 * page))) << "peers may be writing to the overlap";
  first.end();
  EXPECT_TRUE(is_shared(plain.at(0))) << "the second use may bring writes at any time";
  second.end();
  EXPECT_TRUE(is_plain(plain.at(0)));
  auto third = own.enter(plain.at(0), 4 * page);
  EXPECT_NE(own.replace(third, 2), nullptr);
}

TEST_F(OwnMemoryTest, ManyUsesEndInAnyOrder) {
  Plain plain(2);
  OwnMemory own;
  std::vector<OwnMemory::Use> uses;
  const auto start = std::chrono::steady_clock::now();
  for (int i = 0; i < 200'000; ++i)
    uses.push_back(own.enter(reinterpret_cast<const void*>(std::uintptr_t{4096} * (i + 1)), 64));
  auto use = own.enter(plain.at(0), 2 * page);
  EXPECT_NE(own.replace(use, 2), nullptr);
  while (!uses.empty()) uses.pop_back();
  const auto took = std::chrono::steady_clock::now() - start;
  EXPECT_LT(took, std::chrono::seconds(5)) << "each end looked through all";
  EXPECT_TRUE(is_shared(plain.at(0)));
  use.end();
  EXPECT_TRUE(is_plain(plain.at(0)));
}

TEST_F(OwnMemoryTest, OfNoBytesIsNothing) {
  OwnMemory own;
  const auto use = own.enter(nullptr, 0);
  EXPECT_EQ(own.replace(use, 2), nullptr);
}

}  // namespace
}  // namespace tombolo::host
