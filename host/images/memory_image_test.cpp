// SPDX-License-Identifier: Apache-2.0
// Purpose: pages there and back: contents, holes, changes that the program made meanwhile, and
// kernels that refuse.
#include "host/images/memory_image.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <ucontext.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "host/memory/page.h"
#include "host/memory/testing/memory.h"

// As UCX puts it in the place of the C library's: the fifth argument, the new address, gets lost.
extern "C" void* mremap(void* from, std::size_t bytes, std::size_t new_bytes, int flags,
                        ...) noexcept {
  constexpr std::uintptr_t nowhere = 1;
  return reinterpret_cast<void*>(syscall(SYS_mremap, from, bytes, new_bytes, flags, nowhere));
}

namespace tombolo::host {
namespace {

using testing::in_child;
using testing::is_private;
using testing::is_shared;
using testing::mapping_of;
using testing::Plain;
using testing::present_pages;

constexpr auto no_hold = MemoryImage::Hold::no;
const std::uint64_t page = page_bytes();

// Which call of mremap or pwrite64 the kernel refuses from now on, in this process. A refused
// mremap unmaps the pages in the way, as some kernels do that run out of memory in between.
bool refuse([[maybe_unused]] long call) {
#if defined(__x86_64__)
  struct sigaction action = {};
  action.sa_flags = SA_SIGINFO;
  action.sa_sigaction = [](int, siginfo_t* info, void* context) {
    auto& registers = static_cast<ucontext_t*>(context)->uc_mcontext.gregs;
    if (info->si_syscall == SYS_mremap)
      munmap(reinterpret_cast<void*>(registers[REG_R8]),
             static_cast<std::size_t>(registers[REG_RDX]));
    registers[REG_RAX] = -ENOMEM;
  };
  sigaction(SIGSYS, &action, nullptr);
  sock_filter filter[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, static_cast<unsigned>(call), 0, 1),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_TRAP),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  };
  const sock_fprog program{std::size(filter), filter};
  return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
         prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0;
#else
  return false;
#endif
}
constexpr int cannot_refuse = 100;

// The image's bytes, as a peer maps them.
class Peer {
 public:
  Peer(const ImageName& name, const AddressRange& range) : bytes_(range.bytes()) {
    void* const start = mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_SHARED, name.descriptor,
                             static_cast<off_t>(range.low));
    EXPECT_NE(start, MAP_FAILED);
    data_ = static_cast<char*>(start);
  }
  ~Peer() { munmap(data_, bytes_); }
  Peer(const Peer&) = delete;
  Peer& operator=(const Peer&) = delete;
  char& operator[](std::uint64_t i) const { return data_[i]; }

 private:
  std::uint64_t bytes_;
  char* data_;
};

std::uint64_t bytes_of_file(const MemoryImage& image) {
  struct stat shape = {};
  EXPECT_EQ(fstat(image.name().descriptor, &shape), 0);
  return static_cast<std::uint64_t>(shape.st_blocks) * 512;
}

class MemoryImageTest : public ::testing::Test {
 protected:
  void SetUp() override {
    std::vector<Page> pages;
    const Status status = read_pages(Plain(1).range(), page, pages);
    if (!status.ok()) GTEST_SKIP() << status.message();
    ASSERT_TRUE(image_.open().ok());
  }
  Status move_in(const AddressRange& pages) { return image_.move_in(pages, no_hold, false); }
  Status move_out(const AddressRange& pages) { return image_.move_out(pages, no_hold); }

  MemoryImage image_;
};

// MI6
TEST_F(MemoryImageTest, IsOfTheUserAlone) {
  struct stat shape = {};
  ASSERT_EQ(fstat(image_.name().descriptor, &shape), 0);
  EXPECT_EQ(shape.st_mode & 07777, 0600u);
}

TEST_F(MemoryImageTest, KeepsContentsThereAndBack) {
  Plain plain(4);
  const auto expected = [](std::uint64_t i) { return static_cast<char>(i % 251 + 1); };
  for (std::uint64_t i = 0; i < plain.bytes(); ++i) *plain.at(i) = expected(i);
  ASSERT_TRUE(move_in(plain.range()).ok());
  EXPECT_TRUE(is_shared(plain.at(0)));
  EXPECT_TRUE(image_.is_at_home(*mapping_of(plain.at(0))));
  const Peer peer(image_.name(), plain.range());
  for (std::uint64_t i = 0; i < plain.bytes(); ++i) {
    ASSERT_EQ(*plain.at(i), expected(i)) << i;
    ASSERT_EQ(peer[i], expected(i)) << i;
  }
  peer[page + 1] = 77;
  EXPECT_EQ(*plain.at(page + 1), 77);
  *plain.at(5) = 78;
  EXPECT_EQ(peer[5], 78);
  ASSERT_TRUE(move_out(plain.range()).ok());
  EXPECT_TRUE(is_private(plain.at(0)));
  EXPECT_EQ(*plain.at(page + 1), 77);
  EXPECT_EQ(*plain.at(5), 78);
  for (std::uint64_t i = 2 * page; i < 4 * page; ++i) ASSERT_EQ(*plain.at(i), expected(i)) << i;
  image_.forget(plain.range());
  EXPECT_EQ(bytes_of_file(image_), 0u) << "the file's memory is freed";
  peer[5] = 1;
  EXPECT_EQ(*plain.at(5), 78) << "private again";
}

TEST_F(MemoryImageTest, LeavesHolesAsHoles) {
  constexpr std::uint64_t pages = 12000;  // several chunks
  Plain plain(pages);
  *plain.page(3) = 1;
  plain.page(7000)[9] = 2;
  *plain.page(11'999) = 4;
  EXPECT_EQ(*plain.page(20), 0);  // read only: the kernel's page of zeros
  ASSERT_TRUE(move_in(plain.range()).ok());
  EXPECT_LE(bytes_of_file(image_), 3 * page);
  EXPECT_EQ(*plain.page(3), 1);
  *plain.page(11'998) = 3;
  ASSERT_TRUE(move_out(plain.range()).ok());
  EXPECT_LE(present_pages(plain.range()), 4u);
  EXPECT_EQ(*plain.page(3), 1);
  EXPECT_EQ(plain.page(7000)[9], 2);
  EXPECT_EQ(*plain.page(11'998), 3);
  EXPECT_EQ(*plain.page(11'999), 4);
  EXPECT_EQ(*plain.page(5), 0);
  EXPECT_TRUE(is_private(plain.page(8000)));
}

// After a fork the kernel does not tell pages that hold something from the page of zeros.
TEST_F(MemoryImageTest, KeepsPagesSharedWithAForkedProcess) {
  Plain plain(3);
  *plain.page(1) = 5;
  int ready[2];
  ASSERT_EQ(pipe(ready), 0);
  const pid_t child = fork();
  if (child == 0) {
    char ignored = 0;
    close(ready[1]);
    _exit(read(ready[0], &ignored, 1) == 0 ? 0 : 1);
  }
  ASSERT_TRUE(move_in(plain.range()).ok());
  EXPECT_EQ(*plain.page(1), 5);
  EXPECT_LE(bytes_of_file(image_), page);
  close(ready[1]);
  EXPECT_EQ(testing::status_of(child), 0);
  close(ready[0]);
}

TEST_F(MemoryImageTest, MovesPagesOfAFileWhole) {
  char path[] = "/tmp/memory_image_test_XXXXXX";
  const int file = mkstemp(path);
  ASSERT_GE(file, 0);
  unlink(path);
  ASSERT_EQ(pwrite(file, "ab", 2, static_cast<off_t>(page)), 2);
  ASSERT_EQ(pwrite(file, "d", 1, static_cast<off_t>(2 * page)), 1);
  ASSERT_EQ(ftruncate(file, static_cast<off_t>(3 * page)), 0);
  auto* const start =
      static_cast<char*>(mmap(nullptr, 3 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE, file, 0));
  ASSERT_NE(start, MAP_FAILED);
  start[page + 1] = 'c';
  ASSERT_EQ(madvise(start + 2 * page, page, MADV_DONTNEED), 0);  // the kernel may have read ahead
  const auto low = reinterpret_cast<std::uint64_t>(start);
  const AddressRange pages{low, low + 3 * page};
  ASSERT_TRUE(image_.move_in(pages, no_hold, true).ok());
  EXPECT_TRUE(is_shared(start));
  EXPECT_EQ(start[0], 0);
  EXPECT_EQ(start[page], 'a');
  EXPECT_EQ(start[page + 1], 'c');
  EXPECT_EQ(start[2 * page], 'd');
  ASSERT_TRUE(move_out(pages).ok());
  EXPECT_EQ(start[page], 'a');
  EXPECT_EQ(start[page + 1], 'c');
  EXPECT_EQ(start[2 * page], 'd');
  munmap(start, 3 * page);
  close(file);
}

TEST_F(MemoryImageTest, LeavesAloneWhatTheProgramUnmappedOrMappedAnew) {
  Plain plain(6);
  for (std::uint64_t i = 0; i < 6; ++i) *plain.page(i) = static_cast<char>(i + 1);
  ASSERT_TRUE(move_in(plain.range()).ok());
  munmap(plain.page(1), page);
  ASSERT_NE(mmap(plain.page(3), page, PROT_READ | PROT_WRITE,
                 MAP_SHARED | MAP_ANONYMOUS | MAP_FIXED, -1, 0),
            MAP_FAILED);
  *plain.page(3) = 99;
  ASSERT_TRUE(move_out(plain.range()).ok());
  EXPECT_FALSE(mapping_of(plain.page(1)));
  EXPECT_TRUE(is_shared(plain.page(3)));
  EXPECT_EQ(*plain.page(3), 99);
  for (const std::uint64_t i : {0, 2, 4, 5}) {
    EXPECT_TRUE(is_private(plain.page(i))) << i;
    EXPECT_EQ(*plain.page(i), static_cast<char>(i + 1));
  }
}

// As realloc() does with memory of mmap().
TEST_F(MemoryImageTest, LeavesAloneWhatTheProgramMovedElsewhere) {
  Plain plain(3);
  Plain other(1);
  *plain.page(1) = 7;
  ASSERT_TRUE(move_in(plain.range()).ok());
  ASSERT_EQ(
      syscall(SYS_mremap, plain.page(1), page, page, MREMAP_MAYMOVE | MREMAP_FIXED, other.page(0)),
      reinterpret_cast<long>(other.page(0)));
  ASSERT_TRUE(move_out(plain.range()).ok());
  EXPECT_FALSE(mapping_of(plain.page(1)));
  EXPECT_TRUE(image_.is_of_image(*mapping_of(other.page(0))));
  EXPECT_FALSE(image_.is_at_home(*mapping_of(other.page(0))));
  EXPECT_EQ(*other.page(0), 7);
}

TEST_F(MemoryImageTest, MovesOutThoughTheProgramClosedAllDescriptors) {
  Plain plain(3);
  *plain.page(0) = 1;
  *plain.page(2) = 3;
  EXPECT_EQ(in_child([&] {
              MemoryImage image;
              if (!image.open().ok() || !image.move_in(plain.range(), no_hold, false).ok())
                return 1;
              close_range(3, ~0u, 0);
              if (image.is_open()) return 2;
              (void)open("/dev/null", O_RDWR);  // perhaps under the image's number
              if (!image.move_out(plain.range(), no_hold).ok()) return 3;
              if (!is_private(plain.at(0)) || present_pages(plain.range()) > 2) return 4;
              if (*plain.page(0) != 1 || *plain.page(1) != 0 || *plain.page(2) != 3) return 5;
              return image.open().ok() ? 6 : 0;
            }),
            0);
}

TEST_F(MemoryImageTest, PagesStayWithTheirContentsWhereTheKernelRefusesToMoveThemOut) {
  Plain plain(3);
  *plain.page(0) = 1;
  const int result = in_child([&] {
    MemoryImage image;
    if (!image.open().ok() || !image.move_in(plain.range(), no_hold, false).ok()) return 1;
    *plain.page(2) = 3;
    if (!refuse(SYS_mremap)) return cannot_refuse;
    if (image.move_out(plain.range(), no_hold).code() != Code::io) return 2;
    if (!is_shared(plain.page(0)) || !is_shared(plain.page(2))) return 3;
    return *plain.page(0) == 1 && *plain.page(1) == 0 && *plain.page(2) == 3 ? 0 : 4;
  });
  if (result == cannot_refuse) GTEST_SKIP() << "system calls cannot be made to fail here";
  EXPECT_EQ(result, 0);
}

TEST_F(MemoryImageTest, PagesStayWithTheirContentsWhereTheKernelRefusesToMoveThemIn) {
  Plain plain(3);
  *plain.page(1) = 2;
  const int result = in_child([&] {
    MemoryImage image;
    if (!image.open().ok() || !refuse(SYS_pwrite64)) return cannot_refuse;
    if (image.move_in(plain.range(), no_hold, false).code() != Code::io) return 2;
    return is_private(plain.page(1)) && *plain.page(1) == 2 ? 0 : 3;
  });
  if (result == cannot_refuse) GTEST_SKIP() << "system calls cannot be made to fail here";
  EXPECT_EQ(result, 0);
}

TEST_F(MemoryImageTest, IsNotOpenedWhereFilesAreLimited) {
  EXPECT_EQ(in_child([] {
              rlimit small{1 << 20, RLIM_INFINITY};
              setrlimit(RLIMIT_FSIZE, &small);
              MemoryImage image;
              return image.open().code() == Code::unsupported && !image.is_open() ? 0 : 1;
            }),
            0);
#if !defined(__SANITIZE_ADDRESS__)  // the sanitizer opens files itself
  EXPECT_EQ(in_child([] {
              rlimit few{3, 3};
              setrlimit(RLIMIT_NOFILE, &few);
              MemoryImage image;
              return image.open().code() == Code::unsupported && !image.is_open() ? 0 : 1;
            }),
            0);
#endif
}

// A write past the limit would end the process.
TEST_F(MemoryImageTest, RefusesOnceFilesAreLimited) {
  Plain plain(2);
  *plain.page(0) = 1;
  EXPECT_EQ(in_child([&] {
              MemoryImage image;
              if (!image.open().ok()) return 1;
              rlimit small{1 << 20, RLIM_INFINITY};
              setrlimit(RLIMIT_FSIZE, &small);
              if (image.open().ok() && image.move_in(plain.range(), no_hold, false).ok()) return 2;
              return is_private(plain.page(0)) && *plain.page(0) == 1 ? 0 : 3;
            }),
            0);
}

TEST_F(MemoryImageTest, IsOpenedOnce) {
  const ImageName name = image_.name();
  EXPECT_EQ(name.pid, getpid());
  ASSERT_TRUE(image_.open().ok());
  EXPECT_EQ(image_.name(), name);
}

TEST_F(MemoryImageTest, GivesNewMemoryAndTakesItBack) {
  std::byte* const memory = image_.allocate(3 * page);
  ASSERT_NE(memory, nullptr);
  const auto low = reinterpret_cast<std::uint64_t>(memory);
  EXPECT_EQ(std::count(memory, memory + 3 * page, std::byte{0}),
            static_cast<std::ptrdiff_t>(3 * page));
  memory[page] = std::byte{9};
  {
    const Peer peer(image_.name(), {low, low + 3 * page});
    EXPECT_EQ(peer[page], 9);
  }
  image_.release({low, low + 3 * page});
  EXPECT_FALSE(mapping_of(memory));
  EXPECT_EQ(bytes_of_file(image_), 0u);
}

TEST_F(MemoryImageTest, ACopyForAForkedProcessIsItsOwn) {
  Plain plain(3);
  *plain.page(0) = 1;
  *plain.page(2) = 3;
  ASSERT_TRUE(move_in(plain.range()).ok());
  std::byte* const copy = image_.copied(plain.range(), plain.range().low);
  ASSERT_NE(copy, nullptr);
  EXPECT_EQ(in_child([&] {
              image_.leave_in_child(plain.range(), plain.range().low, copy);
              *plain.page(0) = 7;
              return is_private(plain.page(0)) && *plain.page(1) == 0 && *plain.page(2) == 3 ? 0
                                                                                             : 1;
            }),
            0);
  EXPECT_EQ(*plain.page(0), 1);
  munmap(copy, plain.bytes());
  EXPECT_EQ(in_child([&] {
              image_.leave_in_child(plain.range(), plain.range().low, nullptr);
              *plain.page(0) = 7;
              return is_private(plain.page(0)) && *plain.page(2) == 3 ? 0 : 1;
            }),
            0);
  EXPECT_EQ(*plain.page(0), 1);
}

TEST_F(MemoryImageTest, AnAbandonedOneLeavesAnotherFileAlone) {
  EXPECT_EQ(in_child([] {
              MemoryImage image;
              if (!image.open().ok()) return 1;
              const int number = image.name().descriptor;
              if (dup2(STDERR_FILENO, number) != number) return 2;
              image.abandon();
              if (fcntl(number, F_GETFD) < 0) return 3;
              return image.open().ok() && image.name().descriptor != number ? 0 : 4;
            }),
            0);
}

}  // namespace
}  // namespace tombolo::host
