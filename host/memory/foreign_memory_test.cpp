// SPDX-License-Identifier: Apache-2.0
// Purpose: bytes copied to and from another process, and the fault for each way that can fail.
#include "host/memory/foreign_memory.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <numeric>
#include <optional>
#include <span>
#include <vector>

#include "host/memory/page.h"

namespace tombolo::host {
namespace {

// A forked child has its copy of our memory at the same addresses, and waits until it is ended.
class Child {
 public:
  Child() : pid_(fork()) {
    if (pid_ == 0)
      for (;;) pause();
  }
  ~Child() { end(); }
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;
  void end() {
    if (!lives_) return;
    lives_ = false;
    kill(pid_, SIGKILL);
    waitpid(pid_, nullptr, 0);
  }
  pid_t pid() const { return pid_; }

 private:
  pid_t pid_;
  bool lives_ = true;
};

std::uint64_t at(const void* address) { return reinterpret_cast<std::uint64_t>(address); }

class ForeignMemory : public testing::Test {
 protected:
  void SetUp() override {
    pages_ = static_cast<char*>(mmap(nullptr, 3 * page_bytes(), PROT_READ | PROT_WRITE,
                                     MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    ASSERT_NE(pages_, MAP_FAILED);
    for (std::size_t i = 0; i < 3 * page_bytes(); ++i) pages_[i] = static_cast<char>(i * 7);
    // The child has no third page.
    ASSERT_EQ(madvise(pages_ + 2 * page_bytes(), page_bytes(), MADV_DONTFORK), 0);
    child_.emplace();
    char byte = 0;
    const Status status = read_foreign(child_->pid(), at(pages_), &byte, 1);
    if (!status.ok()) GTEST_SKIP() << status.message();
  }
  void TearDown() override { munmap(pages_, 3 * page_bytes()); }

  char* pages_ = nullptr;
  std::optional<Child> child_;
};

TEST_F(ForeignMemory, IsReadAndWrittenAtItsAddresses) {
  const std::size_t bytes = page_bytes() + 100;
  const std::vector<char> before(pages_, pages_ + 2 * page_bytes());
  std::vector<char> mine(bytes);
  std::iota(mine.begin(), mine.end(), char{1});
  ASSERT_TRUE(write_foreign(child_->pid(), at(pages_ + 50), mine.data(), bytes).ok());
  EXPECT_EQ(std::memcmp(pages_, before.data(), before.size()), 0) << "ours is not the child's";
  std::vector<char> seen(2 * page_bytes());
  ASSERT_TRUE(read_foreign(child_->pid(), at(pages_), seen.data(), seen.size()).ok());
  for (std::size_t i = 0; i < seen.size(); ++i)
    ASSERT_EQ(seen[i], i >= 50 && i < 50 + bytes ? mine[i - 50] : before[i]) << i;
}

// More pieces than go into one call, some of no bytes, in no order.
TEST_F(ForeignMemory, IsReadAndWrittenInPieces) {
  const std::vector<char> before(pages_, pages_ + 2 * page_bytes());
  constexpr std::size_t count = 150;
  std::vector<char> mine(3 * count);
  std::iota(mine.begin(), mine.end(), char{1});
  std::vector<char> seen(mine.size());
  std::vector<char> expected = before;
  std::vector<machine::DataPiece> from, to;
  for (std::size_t i = 0; i < count; ++i) {
    const std::size_t at = 5 + (i * 7 % count) * 50;
    const std::size_t bytes = i % 4;
    from.push_back({at, reinterpret_cast<std::byte*>(mine.data() + 3 * i), bytes});
    to.push_back({at, reinterpret_cast<std::byte*>(seen.data() + 3 * i), bytes});
    std::copy_n(mine.begin() + static_cast<std::ptrdiff_t>(3 * i), bytes,
                expected.begin() + static_cast<std::ptrdiff_t>(at));
  }
  ASSERT_TRUE(write_foreign(child_->pid(), at(pages_), from).ok());
  EXPECT_EQ(std::memcmp(pages_, before.data(), before.size()), 0) << "ours is not the child's";
  std::vector<char> all(before.size());
  ASSERT_TRUE(read_foreign(child_->pid(), at(pages_), all.data(), all.size()).ok());
  EXPECT_EQ(all, expected);
  ASSERT_TRUE(read_foreign(child_->pid(), at(pages_), to).ok());
  for (std::size_t i = 0; i < count; ++i)
    for (std::size_t k = 0; k < 3; ++k)
      ASSERT_EQ(seen[3 * i + k], k < i % 4 ? mine[3 * i + k] : 0) << "piece " << i;
}

// The kernel stops there; the error names the place.
TEST_F(ForeignMemory, APieceThatIsNotMappedIsOutOfRange) {
  std::array<std::byte, 4> bytes{};
  const std::vector<machine::DataPiece> pieces{
      {8, &bytes[0], 1}, {2 * page_bytes() + 3, &bytes[1], 2}, {9, &bytes[3], 1}};
  for (const Status& status : {read_foreign(child_->pid(), at(pages_), pieces),
                               write_foreign(child_->pid(), at(pages_), pieces)}) {
    EXPECT_EQ(status.code(), Code::out_of_range);
    EXPECT_NE(status.message().find("of 2 bytes"), std::string::npos) << status.message();
  }
  EXPECT_TRUE(read_foreign(child_->pid(), at(pages_), std::span(pieces).first(1)).ok());
  child_->end();
  EXPECT_EQ(read_foreign(child_->pid(), at(pages_), pieces).code(), Code::process_failed);
}

TEST_F(ForeignMemory, OfNoBytesAsksNobody) {
  EXPECT_TRUE(read_foreign(child_->pid(), 0, std::span<const machine::DataPiece>{}).ok());
  EXPECT_TRUE(read_foreign(child_->pid(), 0, nullptr, 0).ok());
  child_->end();
  EXPECT_TRUE(write_foreign(child_->pid(), 8, nullptr, 0).ok());
}

TEST_F(ForeignMemory, ThatIsNotMappedIsOutOfRange) {
  std::vector<char> bytes(3 * page_bytes());
  const Status behind = read_foreign(child_->pid(), at(pages_), bytes.data(), bytes.size());
  EXPECT_EQ(behind.code(), Code::out_of_range);
  // The message names the address where the memory ends, not where the copy began.
  EXPECT_NE(behind.message().find(std::to_string(child_->pid())), std::string::npos)
      << behind.message();
  EXPECT_EQ(write_foreign(child_->pid(), at(pages_ + 2 * page_bytes()), bytes.data(), 1).code(),
            Code::out_of_range);
  EXPECT_EQ(read_foreign(child_->pid(), 0, bytes.data(), 1).code(), Code::out_of_range);
}

TEST_F(ForeignMemory, ThatMayOnlyBeReadIsNotWritten) {
  ASSERT_EQ(mprotect(pages_, page_bytes(), PROT_READ), 0);
  const Child another;
  char byte = 0;
  EXPECT_TRUE(read_foreign(another.pid(), at(pages_ + 3), &byte, 1).ok());
  EXPECT_EQ(byte, pages_[3]);
  EXPECT_EQ(write_foreign(another.pid(), at(pages_ + 3), &byte, 1).code(), Code::out_of_range);
}

TEST_F(ForeignMemory, OfAProcessThatHasEndedIsAProcessFault) {
  child_->end();
  char byte = 0;
  for (const Status& status : {read_foreign(child_->pid(), at(pages_), &byte, 1),
                               write_foreign(child_->pid(), at(pages_), &byte, 1)}) {
    EXPECT_EQ(status.code(), Code::process_failed);
    EXPECT_EQ(status.rank(), -1) << "it is known by its number only";
  }
}

}  // namespace
}  // namespace tombolo::host
