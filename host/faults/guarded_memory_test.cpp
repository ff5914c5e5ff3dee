// SPDX-License-Identifier: Apache-2.0
// Purpose: guarded memory by each mechanism, as the kernel sees it for the program: a system call
// fails with EFAULT where an access would fault. And the ways around calls that the kernel refuses.
// Thread safety: -
#include "host/faults/guarded_memory.h"

#include <gtest/gtest.h>
#include <linux/userfaultfd.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <string>
#include <vector>

#include "host/memory/page.h"
#include "host/memory/testing/memory.h"
#include "host/memory/testing/system_calls.h"

namespace {

// The file of the last memory that was made.
int last_file = -1;

}  // namespace

// This replaces the C library's function: the file stays open for the test.
extern "C" int memfd_create(const char* name, unsigned flags) noexcept {
  const auto file = static_cast<int>(syscall(SYS_memfd_create, name, flags));
  if (last_file >= 0) close(last_file);
  last_file = dup(file);
  return file;
}

namespace tombolo::host {
namespace {

using testing::Answering;
using testing::Call;
using testing::in_child;
using testing::pass;
using testing::refuse;

class GuardedMemoryTest : public ::testing::TestWithParam<FaultMechanism> {
 protected:
  static constexpr std::uint64_t number = 16;  // of pages

  void SetUp() override {
    const Status made = GuardedMemory::create(GetParam(), number * page_bytes(), {}, memory);
    if (!made.ok()) GTEST_SKIP() << made.message();
    ASSERT_EQ(pipe(ends_), 0);
  }
  void TearDown() override {
    for (const int end : ends_)
      if (end >= 0) close(end);
  }

  AddressRange pages(std::uint64_t first, std::uint64_t n = 1) const {
    const std::uint64_t low = memory->view().low + first * page_bytes();
    return {low, low + n * page_bytes()};
  }
  void fill(std::uint64_t page, int value) {
    std::memset(memory->alias(pages(page).low), value, page_bytes());
  }
  // The byte, or -1 if the program cannot load it.
  int loaded(std::uint64_t page) {
    unsigned char value = 0;
    if (write(ends_[1], reinterpret_cast<void*>(pages(page).low), 1) != 1)
      return errno == EFAULT ? -1 : -2;
    return read(ends_[0], &value, 1) == 1 ? value : -3;
  }
  bool can_store(std::uint64_t page) {
    unsigned char value = 99;
    EXPECT_EQ(write(ends_[1], &value, 1), 1);
    // The second byte.
    if (read(ends_[0], reinterpret_cast<void*>(pages(page).low + 1), 1) == 1) return true;
    EXPECT_EQ(errno, EFAULT);
    EXPECT_EQ(read(ends_[0], &value, 1), 1);
    return false;
  }
  Access access_of(std::uint64_t page) {
    if (loaded(page) < 0) return Access::closed;
    return can_store(page) ? Access::writable : Access::readable;
  }
  void must(const Status& status) { ASSERT_TRUE(status.ok()) << status.message(); }
  bool resident(std::uint64_t page) {
    unsigned char residency = 0;
    EXPECT_EQ(mincore(reinterpret_cast<void*>(pages(page).low), page_bytes(), &residency), 0);
    return (residency & 1) != 0;
  }

  std::unique_ptr<GuardedMemory> memory;

 private:
  int ends_[2] = {-1, -1};
};

// HGM3
TEST_P(GuardedMemoryTest, IsOfTheUserAlone) {
  struct stat shape = {};
  ASSERT_EQ(fstat(last_file, &shape), 0);
  EXPECT_EQ(shape.st_mode & 07777, 0600u);
}

TEST_P(GuardedMemoryTest, IsClosedAndEmptyAtFirst) {
  EXPECT_EQ(memory->mechanism(), GetParam());
  EXPECT_EQ(memory->view().bytes(), number * page_bytes());
  EXPECT_EQ(memory->aliases().bytes(), number * page_bytes());
  for (std::uint64_t page = 0; page < number; ++page) {
    EXPECT_EQ(access_of(page), Access::closed);
    EXPECT_FALSE(resident(page));
  }
}

TEST_P(GuardedMemoryTest, ClosedPagesStaySoWithMemoryBehindThem) {
  fill(3, 7);
  EXPECT_TRUE(resident(3));
  EXPECT_EQ(access_of(3), Access::closed);
}

TEST_P(GuardedMemoryTest, GoesFromEachAccessToEach) {
  fill(3, 7);
  fill(4, 8);
  const auto page = pages(3);
  must(memory->change(page, Access::closed, Access::readable));
  EXPECT_EQ(loaded(3), 7);
  EXPECT_EQ(access_of(3), Access::readable);
  must(memory->change(page, Access::readable, Access::writable));
  EXPECT_EQ(access_of(3), Access::writable);
  EXPECT_EQ(std::to_integer<int>(memory->alias(page.low)[1]), 99);
  must(memory->change(page, Access::writable, Access::readable));
  EXPECT_EQ(access_of(3), Access::readable);
  must(memory->close({&page, 1}));
  EXPECT_EQ(access_of(3), Access::closed);
  must(memory->change(page, Access::closed, Access::writable));
  EXPECT_EQ(access_of(3), Access::writable);
  EXPECT_EQ(loaded(3), 7);
  must(memory->close({&page, 1}));
  EXPECT_EQ(access_of(3), Access::closed);
  // A page that was protected when it was closed.
  must(memory->change(page, Access::closed, Access::readable));
  must(memory->close({&page, 1}));
  must(memory->change(page, Access::closed, Access::writable));
  EXPECT_EQ(access_of(3), Access::writable);
  EXPECT_EQ(access_of(2), Access::closed);
  EXPECT_EQ(access_of(4), Access::closed);
}

TEST_P(GuardedMemoryTest, WhatIsOpenedAgainHasTheNewAccess) {
  for (std::uint64_t page = 2; page < 6; ++page) fill(page, 7);
  must(memory->change(pages(3, 2), Access::closed, Access::writable));
  must(memory->change(pages(2, 4), Access::closed, Access::readable));
  EXPECT_EQ(access_of(3), Access::readable);
  EXPECT_EQ(access_of(4), Access::readable);
  must(memory->change(pages(3), Access::closed, Access::writable));
  EXPECT_EQ(access_of(3), Access::writable);
}

TEST_P(GuardedMemoryTest, PagesWithoutMemoryAreFilled) {
  const std::vector<std::byte> bytes(2 * page_bytes(), std::byte{6});
  Access access = Access::readable;
  must(memory->fill(pages(3, 2), bytes, access));
  EXPECT_NE(access, Access::writable);
  for (const std::uint64_t page : {3, 4}) EXPECT_EQ(access_of(page), access);
  if (access == Access::closed) must(memory->change(pages(3, 2), access, Access::readable));
  for (const std::uint64_t page : {3, 4}) EXPECT_EQ(access_of(page), Access::readable);
  EXPECT_EQ(loaded(3), 6);
  EXPECT_EQ(memory->alias(pages(4).low)[page_bytes() - 1], std::byte{6});
  must(memory->change(pages(3, 2), Access::readable, Access::writable));
  EXPECT_EQ(access_of(4), Access::writable);
  for (const std::uint64_t page : {2, 5}) EXPECT_FALSE(resident(page));
  // One of them has memory.
  const auto page = pages(3);
  must(memory->close({&page, 1}));
  must(memory->discard(pages(4)));
  fill(3, 1);
  access = Access::readable;
  must(memory->fill(pages(3, 2), bytes, access));
  must(memory->change(pages(3, 2), access, Access::readable));
  for (const std::uint64_t each : {3, 4}) {
    EXPECT_EQ(loaded(each), 6);
    EXPECT_EQ(access_of(each), Access::readable);
  }
}

TEST_P(GuardedMemoryTest, PagesAreFilledForStores) {
  const std::vector<std::byte> bytes(3 * page_bytes(), std::byte{6});
  Access access = Access::writable;
  must(memory->fill(pages(3, 3), bytes, access));
  EXPECT_NE(access, Access::readable);
  for (const std::uint64_t page : {3, 5}) EXPECT_EQ(access_of(page), access);
  if (access == Access::closed) must(memory->change(pages(3, 3), access, Access::writable));
  EXPECT_EQ(access_of(4), Access::writable);
  EXPECT_EQ(loaded(5), 6);
  for (const std::uint64_t page : {2, 6}) EXPECT_FALSE(resident(page));
  must(memory->change(pages(4), Access::writable, Access::readable));
  EXPECT_EQ(access_of(4), Access::readable);
}

TEST_P(GuardedMemoryTest, ManyPagesChangeByOneCall) {
  for (std::uint64_t page = 0; page < number; ++page) fill(page, 1 + static_cast<int>(page));
  must(memory->change(pages(1, 14), Access::closed, Access::readable));
  for (std::uint64_t page = 1; page < 15; ++page) EXPECT_EQ(access_of(page), Access::readable);
  EXPECT_EQ(loaded(14), 15);
  EXPECT_EQ(access_of(0), Access::closed);
  EXPECT_EQ(access_of(15), Access::closed);
  must(memory->change(pages(4, 4), Access::readable, Access::writable));
  for (std::uint64_t page = 1; page < 15; ++page)
    EXPECT_EQ(access_of(page), page / 4 == 1 ? Access::writable : Access::readable);
  const std::vector<AddressRange> ranges{pages(1), pages(3, 2), pages(14)};
  must(memory->close(ranges));
  for (const std::uint64_t page : {1, 3, 4, 14}) EXPECT_EQ(access_of(page), Access::closed);
  for (const std::uint64_t page : {2, 13}) EXPECT_EQ(access_of(page), Access::readable);
  EXPECT_EQ(access_of(5), Access::writable);
}

TEST_P(GuardedMemoryTest, DiscardedPagesAreClosedAndHaveNoMemory) {
  for (std::uint64_t page = 2; page < 6; ++page) fill(page, 7);
  must(memory->change(pages(2, 4), Access::closed, Access::writable));
  must(memory->discard(pages(3, 2)));
  for (const std::uint64_t page : {3, 4}) {
    EXPECT_FALSE(resident(page));
    EXPECT_EQ(access_of(page), Access::closed);
  }
  EXPECT_EQ(access_of(2), Access::writable);
  EXPECT_EQ(access_of(5), Access::writable);
  fill(3, 9);
  EXPECT_EQ(access_of(3), Access::closed);
  must(memory->change(pages(3), Access::closed, Access::readable));
  EXPECT_EQ(loaded(3), 9);
}

TEST_P(GuardedMemoryTest, AChildHasNeitherViewNorAlias) {
  fill(3, 7);
  must(memory->change(pages(3), Access::closed, Access::writable));
  EXPECT_EQ(in_child([&] {
              unsigned char none = 0;
              if (mincore(reinterpret_cast<void*>(memory->view().low), page_bytes(), &none) == 0)
                return 1;
              if (mincore(memory->alias(memory->view().low), page_bytes(), &none) == 0) return 2;
              // Something of the child's own at the address outlives the inherited object.
              void* const at = mmap(reinterpret_cast<void*>(memory->view().low), page_bytes(),
                                    PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
              memory.reset();
              return mincore(at, page_bytes(), &none) == 0 ? 0 : 3;
            }),
            0);
  EXPECT_EQ(loaded(3), 7);
}

TEST_P(GuardedMemoryTest, PlacesAreTakenOrReplaced) {
  auto* const mine = reinterpret_cast<void*>(memory->view().low);
  std::unique_ptr<GuardedMemory> second;
  const auto make = [&](void* at, bool replace) {
    return GuardedMemory::create(GetParam(), page_bytes(), {.address = at, .replace = replace},
                                 second);
  };
  EXPECT_EQ(make(mine, false).code(), Code::bad_configuration);
  void* const reserved = mmap(nullptr, page_bytes(), PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  must(make(reserved, true));
  EXPECT_EQ(second->view().low, reinterpret_cast<std::uint64_t>(reserved));
  second.reset();
  must(make(reserved, false));
  EXPECT_EQ(second->view().low, reinterpret_cast<std::uint64_t>(reserved));
}

// A kernel that takes the address for a hint gives another one.
TEST_P(GuardedMemoryTest, AnAddressThatIsNotGivenIsAnError) {
  auto* const wanted = reinterpret_cast<void*>(memory->view().low);
  std::unique_ptr<GuardedMemory> second;
  Answering answering([&](const Call& call) {
    Call other = call;
    if (call.number == SYS_mmap) {
      other.arguments[0] = 0;
      other.arguments[3] = MAP_SHARED;
    }
    return pass(other);
  });
  EXPECT_EQ(GuardedMemory::create(GetParam(), page_bytes(), {.address = wanted}, second).code(),
            Code::bad_configuration);
}

TEST_P(GuardedMemoryTest, RefusedCallsAreErrorsThatNameThem) {
  fill(3, 7);
  Status status;
  {
    Answering answering([&](const Call&) { return refuse(ENOMEM); });
    status = memory->change(pages(3), Access::closed, Access::readable);
    EXPECT_EQ(status.code(), Code::no_memory);
    EXPECT_EQ(memory->discard(pages(3)).code(), Code::no_memory);
    Access access = Access::closed;
    const std::vector<std::byte> bytes(page_bytes());
    EXPECT_EQ(memory->fill(pages(5), bytes, access).ok(), GetParam() == FaultMechanism::protection);
    const auto page = pages(3);
    EXPECT_EQ(memory->close({&page, 1}).code(), Code::no_memory);
  }
  EXPECT_NE(status.message().find(GetParam() == FaultMechanism::userfault ? "UFFDIO_CONTINUE"
                                                                          : "vm.max_map_count"),
            std::string::npos);
  Answering answering([&](const Call&) { return refuse(EPERM); });
  EXPECT_EQ(memory->change(pages(3), Access::closed, Access::readable).code(), Code::io);
  EXPECT_EQ(memory->change(pages(3), Access::readable, Access::writable).code(), Code::io);
}

INSTANTIATE_TEST_SUITE_P(Mechanisms, GuardedMemoryTest,
                         ::testing::Values(FaultMechanism::userfault, FaultMechanism::protection),
                         [](const auto& of) { return std::string(name_of(of.param)); });

// ---- Kernels that lack a call -------------------------------------------------------------------

class UserfaultMemoryTest : public GuardedMemoryTest {};

// Before 6.4 a page cannot be opened and protected at once.
TEST_P(UserfaultMemoryTest, OpensReadablePagesInTwoSteps) {
  for (std::uint64_t page = 2; page < 6; ++page) fill(page, 7);
  int refused = 0;
  Answering answering([&](const Call& call) {
    if (call.number == SYS_ioctl &&
        static_cast<unsigned long>(call.arguments[1]) == UFFDIO_CONTINUE &&
        reinterpret_cast<const uffdio_continue*>(call.arguments[2])->mode != 0)
      return ++refused, refuse(EINVAL);
    return pass(call);
  });
  must(memory->change(pages(2, 2), Access::closed, Access::readable));
  must(memory->change(pages(5), Access::closed, Access::writable));
  must(memory->change(pages(4), Access::closed, Access::readable));
  EXPECT_EQ(refused, 1);
  for (const std::uint64_t page : {2, 3, 4}) EXPECT_EQ(access_of(page), Access::readable);
  EXPECT_EQ(access_of(5), Access::writable);
}

// The kernel may do a part, and ask to be asked again.
TEST_P(UserfaultMemoryTest, GoesOnWhereTheKernelHasStopped) {
  for (std::uint64_t page = 2; page < 6; ++page) fill(page, 7);
  int asked = 0;
  Answering answering([&](const Call& call) {
    if (call.number != SYS_ioctl || ++asked % 2 == 0) return pass(call);
    if (static_cast<unsigned long>(call.arguments[1]) == UFFDIO_COPY) {
      auto& all = *reinterpret_cast<uffdio_copy*>(call.arguments[2]);
      uffdio_copy one = all;
      one.len = page_bytes();
      Call part = call;
      part.arguments[2] = reinterpret_cast<long>(&one);
      EXPECT_EQ(pass(part), 0);
      all.copy = one.copy;
      return refuse(EAGAIN);
    }
    if (static_cast<unsigned long>(call.arguments[1]) != UFFDIO_CONTINUE) return refuse(EAGAIN);
    auto& all = *reinterpret_cast<uffdio_continue*>(call.arguments[2]);
    uffdio_continue one = all;
    one.range.len = page_bytes();
    Call part = call;
    part.arguments[2] = reinterpret_cast<long>(&one);
    EXPECT_EQ(pass(part), 0);
    all.mapped = one.mapped;
    return refuse(EAGAIN);
  });
  must(memory->change(pages(2, 4), Access::closed, Access::readable));
  for (std::uint64_t page = 2; page < 6; ++page) EXPECT_EQ(access_of(page), Access::readable);
  asked = 0;
  must(memory->change(pages(2, 4), Access::readable, Access::writable));
  EXPECT_EQ(access_of(5), Access::writable);
  asked = 0;
  std::vector<std::byte> bytes(2 * page_bytes(), std::byte{5});
  bytes.back() = std::byte{4};
  Access access = Access::readable;
  must(memory->fill(pages(8, 2), bytes, access));
  EXPECT_EQ(access_of(9), Access::readable);
  EXPECT_EQ(memory->alias(pages(9).low)[page_bytes() - 1], std::byte{4});
}

// Before 6.13 ranges are closed one by one.
TEST_P(UserfaultMemoryTest, ClosesOneByOneWhereItMust) {
  for (std::uint64_t page = 2; page < 8; ++page) fill(page, 7);
  const std::vector<AddressRange> ranges{pages(2), pages(4), pages(6)};
  int refused = 0;
  int together = 0;
  Answering answering([&](const Call& call) {
    if (call.number != SYS_process_madvise) return pass(call);
    if (++together == 2) return ++refused, refuse(EINVAL);
    if (together > 2) return ++refused, refuse(EINVAL);
    return pass({call.number, {call.arguments[0], call.arguments[1], 1, call.arguments[3], 0}});
  });
  for (int round = 0; round < 3; ++round) {
    must(memory->change(pages(2, 6), Access::closed, Access::readable));
    must(memory->close(ranges));
    for (const std::uint64_t page : {2, 4, 6}) EXPECT_EQ(access_of(page), Access::closed);
    for (const std::uint64_t page : {3, 5, 7}) EXPECT_EQ(access_of(page), Access::readable);
  }
  EXPECT_EQ(refused, 1);
}

// More ranges than one call takes.
TEST_P(UserfaultMemoryTest, ClosesAnyNumberOfRanges) {
  constexpr std::uint64_t many = 1300;
  must(GuardedMemory::create(GetParam(), 2 * many * page_bytes(), {}, memory));
  std::vector<AddressRange> ranges;
  for (std::uint64_t page = 0; page < 2 * many; ++page) fill(page, 7);
  must(memory->change(pages(0, 2 * many), Access::closed, Access::readable));
  for (std::uint64_t page = 0; page < many; ++page) ranges.push_back(pages(2 * page));
  must(memory->close(ranges));
  for (std::uint64_t page = 0; page < 2 * many; ++page)
    ASSERT_EQ(loaded(page), page % 2 == 0 ? -1 : 7) << page;
}

INSTANTIATE_TEST_SUITE_P(Mechanisms, UserfaultMemoryTest,
                         ::testing::Values(FaultMechanism::userfault),
                         [](const auto& of) { return std::string(name_of(of.param)); });

class ProtectedMemoryTest : public GuardedMemoryTest {};

// The kernel's limit is simulated: a part of the view cannot be changed, the whole can.
TEST_P(ProtectedMemoryTest, ClosesAllWhereTheMappingsAreUsedUp) {
  for (std::uint64_t page = 0; page < number; ++page) fill(page, 7);
  must(memory->change(pages(2), Access::closed, Access::readable));
  must(memory->change(pages(4), Access::closed, Access::writable));
  bool used_up = true;
  Answering answering([&](const Call& call) {
    if (call.number != SYS_mprotect) return pass(call);
    const bool whole = static_cast<std::uint64_t>(call.arguments[1]) == memory->view().bytes();
    if (whole) used_up = false;
    return used_up ? refuse(ENOMEM) : pass(call);
  });
  must(memory->change(pages(6), Access::closed, Access::readable));
  EXPECT_EQ(access_of(6), Access::readable);
  for (const std::uint64_t page : {2, 4}) EXPECT_EQ(access_of(page), Access::closed);
  must(memory->change(pages(4), Access::closed, Access::writable));
  EXPECT_EQ(access_of(4), Access::writable);
}

INSTANTIATE_TEST_SUITE_P(Mechanisms, ProtectedMemoryTest,
                         ::testing::Values(FaultMechanism::protection),
                         [](const auto& of) { return std::string(name_of(of.param)); });

// ---- Availability -------------------------------------------------------------------------------

// In children, since the answer is kept.
Status available_where(FaultMechanism mechanism, int error, long number) {
  Status status;
  Answering answering(
      [&](const Call& call) { return call.number == number ? refuse(error) : pass(call); });
  return available(mechanism);
}

TEST(FaultMechanism, AvailableOnesCanBeUsed) {
  EXPECT_EQ(in_child([] {
              if (!available(FaultMechanism::protection).ok()) return 1;
              if (!available(FaultMechanism::automatic).ok()) return 2;
              const bool userfault = available(FaultMechanism::userfault).ok();
              return (chosen(FaultMechanism::automatic) == FaultMechanism::userfault) == userfault
                         ? 0
                         : 3;
            }),
            0);
}

TEST(FaultMechanism, ARefusedCallIsTheReason) {
  for (const int error : {EPERM, ENOSYS})
    EXPECT_EQ(in_child([&] {
                const Status status =
                    available_where(FaultMechanism::userfault, error, SYS_userfaultfd);
                if (status.code() != Code::unsupported) return 1;
                if (status.message().find(std::strerror(error)) == std::string::npos) return 2;
                if ((status.message().find("sandbox") != std::string::npos) != (error == EPERM))
                  return 3;
                if (!available(FaultMechanism::automatic).ok()) return 4;
                return chosen(FaultMechanism::automatic) == FaultMechanism::protection ? 0 : 5;
              }),
              0);
}

TEST(FaultMechanism, AKernelBeforeSharedMemoryIsTheReason) {
  EXPECT_EQ(in_child([] {
              const Status status = available_where(FaultMechanism::userfault, EINVAL, SYS_ioctl);
              if (status.code() != Code::unsupported) return 1;
              return status.message().find("Linux 5.19") != std::string::npos ? 0 : 2;
            }),
            0);
}

TEST(FaultMechanism, HaveNames) {
  EXPECT_STREQ(name_of(FaultMechanism::automatic), "automatic");
  EXPECT_STREQ(name_of(FaultMechanism::userfault), "userfault");
  EXPECT_STREQ(name_of(FaultMechanism::protection), "protection");
}

}  // namespace
}  // namespace tombolo::host
