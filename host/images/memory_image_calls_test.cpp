// SPDX-License-Identifier: Apache-2.0
// Purpose: moves to the image and back whose system calls are interrupted, do a part, or fail, one
// after the other; and the calls that they make.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <functional>
#include <vector>

#include "host/images/memory_image.h"
#include "host/images/write_hold.h"
#include "host/memory/page.h"
#include "host/memory/testing/memory.h"
#include "host/memory/testing/system_calls.h"

namespace tombolo::host {
namespace {

using testing::Answering;
using testing::Call;
using testing::is_private;
using testing::is_shared;
using testing::pass;
using testing::Plain;
using testing::present_pages;
using testing::refuse;

constexpr auto no_hold = MemoryImage::Hold::no;
constexpr std::uint64_t mebibyte = 1 << 20;
const std::uint64_t page = page_bytes();

bool puts_in_place(const Call& call) {
  return (call.number == SYS_mmap && (call.int_at(3) & MAP_FIXED) != 0) ||
         call.number == SYS_mremap;
}

// The pages that such a call replaces.
AddressRange place_of(const Call& call) {
  const auto low = static_cast<std::uint64_t>(call.arguments[call.number == SYS_mmap ? 0 : 4]);
  return {low, low + static_cast<std::uint64_t>(call.arguments[1])};
}

// Pages 1 and 3 of 5 hold something.
class MemoryImageCallsTest : public ::testing::Test {
 protected:
  void SetUp() override {
    std::vector<Page> pages;
    const Status status = read_pages(plain_.range(), page, pages);
    if (!status.ok()) GTEST_SKIP() << status.message();
    ASSERT_TRUE(image_.open().ok());
    for (const std::uint64_t i : {1, 3})
      for (std::uint64_t at = 0; at < page; ++at) plain_.page(i)[at] = contents(i, at);
  }
  Status move_in() { return image_.move_in(plain_.range(), no_hold, false); }
  Status move_out() { return image_.move_out(plain_.range(), no_hold); }
  bool is_unchanged() const {
    for (std::uint64_t i = 0; i < 5; ++i)
      for (std::uint64_t at = 0; at < page; ++at)
        if (plain_.page(i)[at] != contents(i, at)) return false;
    return true;
  }
  std::uint64_t bytes_of_file() const {
    struct stat shape = {};
    EXPECT_EQ(fstat(image_.name().descriptor, &shape), 0);
    return static_cast<std::uint64_t>(shape.st_blocks) * 512;
  }

  Plain plain_{5};
  MemoryImage image_;

 private:
  static char contents(std::uint64_t page_index, std::uint64_t at) {
    return static_cast<char>(page_index % 2 == 0 ? 0 : (page_index * 31 + at) % 251 + 1);
  }
};

// --- A signal -----------------------------------------------------------------------------------

enum class Stage { before, moving, after };
volatile sig_atomic_t stage;
volatile sig_atomic_t stage_of_signal;

// Moves pages, and raises a signal at the first call of that number.
void interrupt(long number, const std::function<void()>& move) {
  struct sigaction action = {};
  action.sa_handler = [](int) { stage_of_signal = stage; };
  struct sigaction former = {};
  ASSERT_EQ(sigaction(SIGUSR1, &action, &former), 0);
  stage = static_cast<int>(Stage::before);
  stage_of_signal = static_cast<int>(Stage::before);
  {
    const Answering answering([&](const Call& call) {
      if (call.number == number && stage == static_cast<int>(Stage::before)) {
        stage = static_cast<int>(Stage::moving);
        raise(SIGUSR1);
      }
      const long result = pass(call);
      if (puts_in_place(call)) stage = static_cast<int>(Stage::after);
      return result;
    });
    move();
  }
  sigaction(SIGUSR1, &former, nullptr);
}

// Its handler could store to the pages.
TEST_F(MemoryImageCallsTest, ASignalInTheMiddleComesAfterTheMove) {
  interrupt(SYS_pwrite64, [&] { ASSERT_TRUE(move_in().ok()); });
  EXPECT_EQ(stage_of_signal, static_cast<int>(Stage::after));
  interrupt(SYS_lseek, [&] { ASSERT_TRUE(move_out().ok()); });
  EXPECT_EQ(stage_of_signal, static_cast<int>(Stage::after));
}

// --- Another process -----------------------------------------------------------------------------

long copy_from_outside(const char& from, char* to) {
  const iovec source{const_cast<char*>(&from), 1};
  const iovec target{to, 1};
  return pass({SYS_process_vm_writev,
               {getpid(), reinterpret_cast<long>(&source), 1, reinterpret_cast<long>(&target), 1}});
}

// As the host MPI of a sender does it: in the middle it is refused, since it would be lost.
TEST_F(MemoryImageCallsTest, ACopyByAnotherProcessIsNotLost) {
  if (!can_hold_writes()) GTEST_SKIP() << "a thread of the sanitizer's blocks faults";
  char value = *plain_.page(1);
  if (copy_from_outside(value, plain_.page(1)) != 1) GTEST_SKIP() << "the kernel copies nothing";
  for (const bool in : {true, false}) {
    int copies = 0;
    {
      const Answering answering([&](const Call& call) {
        if (puts_in_place(call)) {
          ++copies;
          const char next = static_cast<char>(value + 1);
          if (copy_from_outside(next, plain_.page(1)) == 1) value = next;
        }
        return pass(call);
      });
      ASSERT_TRUE((in ? image_.move_in(plain_.range(), MemoryImage::Hold::yes, false)
                      : image_.move_out(plain_.range(), MemoryImage::Hold::yes))
                      .ok());
    }
    EXPECT_EQ(copies, 1);
    EXPECT_EQ(*plain_.page(1), value);
  }
  EXPECT_EQ(copy_from_outside(9, plain_.page(1)), 1);
  EXPECT_EQ(*plain_.page(1), 9);
}

// --- Calls that do a part, or fail --------------------------------------------------------------

// Reads and writes at most so many bytes at a time, and not at every call.
template <class F>
void in_small_steps(std::uint64_t bytes, F&& f) {
  int calls = 0;
  const Answering answering([&](Call call) {
    if (call.number != SYS_pwrite64 && call.number != SYS_pread64) return pass(call);
    if (++calls % 2 == 0) return refuse(EINTR);
    call.arguments[2] = std::min(call.arguments[2], static_cast<long>(bytes));
    return pass(call);
  });
  f();
  EXPECT_GT(calls, 4);
}

TEST_F(MemoryImageCallsTest, InterruptedAndShortCallsMoveAllBytes) {
  in_small_steps(1000, [&] { ASSERT_TRUE(image_.move_in(plain_.range(), no_hold, true).ok()); });
  EXPECT_TRUE(is_shared(plain_.at(0)));
  EXPECT_TRUE(is_unchanged());
  in_small_steps(1000, [&] { ASSERT_TRUE(move_out().ok()); });
  EXPECT_TRUE(is_private(plain_.at(0)));
  EXPECT_TRUE(is_unchanged());
}

TEST_F(MemoryImageCallsTest, AnyCallThatFailsLeavesTheContents) {
  constexpr int enough = 100;
  Call last{};  // that failed
  const auto fails_at = [&](int n, const auto& move) {
    int calls = 0;
    const Answering answering([&](const Call& call) {
      const auto& may = {SYS_lseek, SYS_pread64, SYS_pwrite64, SYS_openat, SYS_mmap, SYS_mremap};
      if (std::find(may.begin(), may.end(), call.number) == may.end() || calls++ != n)
        return pass(call);
      last = call;
      return refuse(EIO);
    });
    return move();
  };
  int n = 0;
  for (; n < enough && !fails_at(n, [&] { return move_in(); }).ok(); ++n) {
    ASSERT_TRUE(is_private(plain_.at(0))) << "call " << n;
    ASSERT_TRUE(is_unchanged()) << "call " << n;
    EXPECT_TRUE(last.number != SYS_mmap || bytes_of_file() == 0) << "the copy is forgotten";
  }
  EXPECT_EQ(n, 5) << "which pages there are is opened and read; two writes; the mapping";
  ASSERT_TRUE(is_shared(plain_.at(0)));
  for (n = 0; n < enough && !fails_at(n, [&] { return move_out(); }).ok(); ++n) {
    ASSERT_TRUE(is_shared(plain_.at(0))) << "call " << n;
    ASSERT_TRUE(is_unchanged()) << "call " << n;
  }
  EXPECT_GT(n, 5);
  EXPECT_TRUE(is_private(plain_.at(0)));
  EXPECT_TRUE(is_unchanged());
}

TEST_F(MemoryImageCallsTest, NoCopyIsGivenThatIsNotWhole) {
  ASSERT_TRUE(move_in().ok());
  const Answering answering(
      [](const Call& call) { return call.number == SYS_pread64 ? refuse(EIO) : pass(call); });
  EXPECT_EQ(image_.copied(plain_.range(), plain_.range().low), nullptr);
}

// As some kernels do that run out of memory in between.
TEST_F(MemoryImageCallsTest, PagesThatAKernelUnmapsAndDoesNotReplaceAreBrought) {
  const auto with_unmapping = [](const auto& move) {
    int refused = 0;
    const Answering answering([&](const Call& call) {
      if (!puts_in_place(call) || refused++ > 0) return pass(call);
      const AddressRange place = place_of(call);
      munmap(reinterpret_cast<void*>(place.low), place.bytes());
      return refuse(ENOMEM);
    });
    return move();
  };
  EXPECT_EQ(with_unmapping([&] { return move_in(); }).code(), Code::io);
  EXPECT_TRUE(is_private(plain_.at(0)));
  EXPECT_TRUE(is_unchanged());
  ASSERT_TRUE(move_in().ok());
  EXPECT_EQ(with_unmapping([&] { return move_out(); }).code(), Code::io);
  EXPECT_TRUE(is_shared(plain_.at(0)));
  EXPECT_TRUE(is_unchanged());
}

TEST_F(MemoryImageCallsTest, AnErrorOfOnePartIsNotHiddenByTheNext) {
  ASSERT_TRUE(image_.move_in(plain_.pages(0, 2), no_hold, false).ok());
  ASSERT_TRUE(image_.move_in(plain_.pages(3, 2), no_hold, false).ok());
  int moves = 0;
  const Answering answering([&](const Call& call) {
    return call.number == SYS_mremap && moves++ == 0 ? refuse(ENOMEM) : pass(call);
  });
  EXPECT_EQ(move_out().code(), Code::io);
  EXPECT_EQ(moves, 2);
  EXPECT_TRUE(is_shared(plain_.page(1)));
  EXPECT_TRUE(is_private(plain_.page(3)));
  EXPECT_TRUE(is_unchanged());
}

// --- Which calls are made -----------------------------------------------------------------------

// The calls of `f` that succeeded.
std::vector<Call> calls_of(const std::function<void()>& f) {
  std::vector<Call> calls;
  calls.reserve(1000);  // nothing is allocated while pages move
  const Answering answering([&](const Call& call) {
    const long result = pass(call);
    const int error = errno;
    if (result != -1 && calls.size() < calls.capacity()) calls.push_back(call);
    errno = error;
    return result;
  });
  f();
  return calls;
}

// Another thread may have got memory there.
TEST_F(MemoryImageCallsTest, ThePlaceThatACopyWasMovedFromIsLeftAlone) {
  ASSERT_TRUE(move_in().ok());
  AddressRange left;
  for (const Call& call : calls_of([&] { ASSERT_TRUE(move_out().ok()); })) {
    const auto low = static_cast<std::uint64_t>(call.arguments[0]);
    const AddressRange place{low, low + static_cast<std::uint64_t>(call.arguments[1])};
    if (call.number == SYS_mremap) left = place;
    EXPECT_FALSE(call.number == SYS_munmap && place.overlaps(left));
  }
  EXPECT_FALSE(left.empty());
}

// So that huge pages are moved whole.
TEST_F(MemoryImageCallsTest, PartsEndAtMultiplesAndCopiesLieAlike) {
  constexpr std::uint64_t huge_page = 2 * mebibyte;
  constexpr std::uint64_t chunk = 16 * mebibyte;
  const Plain large(3 * chunk / page);
  int parts = 0;
  for (const Call& call : calls_of([&] {
         ASSERT_TRUE(image_.move_in(large.range(), no_hold, false).ok());
         ASSERT_TRUE(image_.move_out(large.range(), no_hold).ok());
       })) {
    if (!puts_in_place(call)) continue;
    ++parts;
    const AddressRange place = place_of(call);
    EXPECT_EQ(place.low / chunk, (place.high - 1) / chunk);
    if (call.number != SYS_mremap) continue;
    EXPECT_EQ(place.low % huge_page, static_cast<std::uint64_t>(call.arguments[0]) % huge_page);
  }
  EXPECT_GE(parts, 6);
  EXPECT_LE(parts, 8);
}

std::uint64_t mapped_bytes() {
  std::vector<Mapping> all;
  EXPECT_TRUE(read_mappings(all).ok());
  std::uint64_t bytes = 0;
  for (const Mapping& mapping : all) bytes += mapping.range.bytes();
  return bytes;
}

TEST_F(MemoryImageCallsTest, NothingElseIsMappedAfterwards) {
  const auto there_and_back = [&] {
    ASSERT_TRUE(move_in().ok());
    ASSERT_TRUE(move_out().ok());
  };
  there_and_back();
  const std::uint64_t before = mapped_bytes();
  for (int i = 0; i < 20; ++i) there_and_back();
  EXPECT_LT(mapped_bytes(), before + mebibyte);
}

// --- Which pages there are ----------------------------------------------------------------------

TEST_F(MemoryImageCallsTest, PagesThatAllHoldSomethingAreThereAtOnce) {
  for (std::uint64_t i = 0; i < 5; ++i) *plain_.page(i) = 1;
  ASSERT_TRUE(move_in().ok());
  EXPECT_EQ(present_pages(plain_.range()), 5u);
}

TEST_F(MemoryImageCallsTest, TheFileKeepsTheMemoryOfPagesThatMovedOut) {
  ASSERT_TRUE(move_in().ok());
  EXPECT_EQ(bytes_of_file(), 2 * page);
  ASSERT_TRUE(move_out().ok());
  EXPECT_EQ(bytes_of_file(), 2 * page);
}

TEST_F(MemoryImageCallsTest, TheFileKeepsNoneOfPagesThatTheProgramUnmapped) {
  ASSERT_TRUE(move_in().ok());
  munmap(plain_.page(3), page);
  ASSERT_TRUE(move_out().ok());
  EXPECT_EQ(bytes_of_file(), page);
}

TEST_F(MemoryImageCallsTest, PagesThatTheProgramEmptiedComeEmpty) {
  ASSERT_TRUE(move_in().ok());
  ASSERT_TRUE(move_out().ok());
  ASSERT_EQ(madvise(plain_.page(1), page, MADV_DONTNEED), 0);
  ASSERT_TRUE(move_in().ok());
  EXPECT_TRUE(std::all_of(plain_.page(1), plain_.page(2), [](char c) { return c == 0; }));
  EXPECT_EQ(*plain_.page(3), 3 * 31 % 251 + 1);
}

// --- Which mappings are the image's -------------------------------------------------------------

TEST_F(MemoryImageCallsTest, APageOfTheImageInThePlaceOfAnotherIsLeftAlone) {
  const Plain other(1);
  *other.at(0) = 9;
  ASSERT_TRUE(move_in().ok());
  ASSERT_TRUE(image_.move_in(other.range(), no_hold, false).ok());
  ASSERT_EQ(
      pass({SYS_mremap,
            {reinterpret_cast<long>(other.at(0)), static_cast<long>(page), static_cast<long>(page),
             MREMAP_MAYMOVE | MREMAP_FIXED, reinterpret_cast<long>(plain_.page(2))}}),
      reinterpret_cast<long>(plain_.page(2)));
  ASSERT_TRUE(move_out().ok());
  EXPECT_EQ(*plain_.page(2), 9);
  EXPECT_TRUE(is_shared(plain_.page(2)));
  EXPECT_TRUE(is_private(plain_.page(1)));
  EXPECT_TRUE(is_private(plain_.page(3)));
}

TEST_F(MemoryImageCallsTest, OnlyASharedMappingOfItsFileAtTheSameOffsetIsAtHome) {
  ASSERT_TRUE(move_in().ok());
  const Mapping mapping = *testing::mapping_of(plain_.at(0));
  EXPECT_TRUE(image_.is_at_home(mapping));
  Mapping other = mapping;
  other.access = "rw-p";
  EXPECT_FALSE(image_.is_at_home(other));
  other = mapping;
  other.offset += page;
  EXPECT_FALSE(image_.is_at_home(other));
  EXPECT_TRUE(image_.is_of_image(other));
  for (std::uint64_t Mapping::*part : {&Mapping::device, &Mapping::inode}) {
    other = mapping;
    ++(other.*part);
    EXPECT_FALSE(image_.is_of_image(other));
  }
  EXPECT_FALSE(MemoryImage().is_of_image(*testing::mapping_of(Plain(1).at(0))));
}

TEST_F(MemoryImageCallsTest, AnotherFileUnderItsDescriptorIsNotTheImage) {
  MemoryImage another;
  ASSERT_TRUE(another.open().ok());
  const int number = image_.name().descriptor;
  const int kept = dup(number);
  ASSERT_EQ(dup2(another.name().descriptor, number), number);
  EXPECT_FALSE(image_.is_open());
  ASSERT_EQ(dup2(kept, number), number);
  EXPECT_TRUE(image_.is_open());
  close(kept);
}

TEST_F(MemoryImageCallsTest, MemoryThatCannotBeGivenTakesNoAddresses) {
  const int number = image_.name().descriptor;
  const int kept = dup(number);
  const int nothing = open("/dev/null", O_RDONLY | O_CLOEXEC);
  ASSERT_EQ(dup2(nothing, number), number);
  const std::uint64_t before = mapped_bytes();
  EXPECT_EQ(image_.allocate(64 * mebibyte), nullptr);
  EXPECT_LT(mapped_bytes(), before + mebibyte);
  ASSERT_EQ(dup2(kept, number), number);
  close(kept);
  close(nothing);
}

}  // namespace
}  // namespace tombolo::host
