// SPDX-License-Identifier: Apache-2.0
// Purpose: the kernel's answers to queries agree with its text, and the text's filters with both.
#include "host/memory/mapping_query.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <string>
#include <string_view>

namespace tombolo::host {
namespace {

constexpr std::uint64_t page = 4096;

// Five pages: private, a hole, shared memory of a file, read-only private, shared without access.
class MappingQuery : public ::testing::Test {
 protected:
  void SetUp() override {
    file_ = memfd_create("mapping_query_test", MFD_CLOEXEC);
    ASSERT_EQ(ftruncate(file_, 3 * page), 0);
    void* const start = mmap(nullptr, 5 * page, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    ASSERT_NE(start, MAP_FAILED);
    start_ = reinterpret_cast<std::uint64_t>(start);
    put(0, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    ASSERT_EQ(munmap(at(1), page), 0);
    put(2, PROT_READ | PROT_WRITE, MAP_SHARED, file_, 2 * page);
    put(3, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    put(4, PROT_NONE, MAP_SHARED, file_, 0);
  }
  void TearDown() override {
    munmap(at(0), 5 * page);
    close(file_);
  }
  void* at(std::uint64_t n) const { return reinterpret_cast<void*>(start_ + n * page); }
  AddressRange pages(std::uint64_t low, std::uint64_t high) const {
    return {start_ + low * page, start_ + high * page};
  }
  void put(std::uint64_t n, int access, int flags, int file, std::uint64_t offset) {
    ASSERT_NE(mmap(at(n), page, access, flags | MAP_FIXED, file, static_cast<off_t>(offset)),
              MAP_FAILED);
  }
  static std::vector<Mapping> text() {
    std::vector<Mapping> all;
    EXPECT_TRUE(read_mappings(all).ok());
    return all;
  }
  static std::vector<Mapping> read(const AddressRange& within) {
    std::vector<Mapping> found;
    EXPECT_TRUE(read_mappings(within, found).ok());
    return found;
  }
  static void expect_same(const std::vector<Mapping>& a, const std::vector<Mapping>& b) {
    ASSERT_EQ(a.size(), b.size());
    for (std::size_t i = 0; i < a.size(); ++i) {
      EXPECT_EQ(a[i].range, b[i].range) << i;
      EXPECT_EQ(a[i].access, b[i].access) << i;
      EXPECT_EQ(a[i].offset, b[i].offset) << i;
      EXPECT_EQ(a[i].device, b[i].device) << i;
      EXPECT_EQ(a[i].inode, b[i].inode) << i;
      EXPECT_EQ(a[i].name, b[i].name) << i;
    }
  }
  int file_ = -1;
  std::uint64_t start_ = 0;
};

TEST_F(MappingQuery, AgreesWithTheText) {
  expect_same(read(pages(2, 5)), overlapping(text(), pages(2, 5)));
  const std::vector<Mapping> found = read(pages(2, 4));
  ASSERT_EQ(found.size(), 2u);
  EXPECT_EQ(found[0].access, "rw-s");
  EXPECT_EQ(found[0].offset, 2 * page);
  EXPECT_NE(found[0].inode, 0u);
  EXPECT_NE(found[0].name.find("mapping_query_test"), std::string::npos);
  EXPECT_EQ(found[1].access, "r--p");
}

TEST_F(MappingQuery, FindsMappingsThatOverlapByOneByte) {
  const std::uint64_t low = pages(2, 5).low;
  EXPECT_EQ(read({low + page - 1, low + page}).size(), 1u);
  EXPECT_EQ(read({low + page - 1, low + page + 1}).size(), 2u);
  EXPECT_EQ(overlapping(text(), {low + page - 1, low + page + 1}).size(), 2u);
}

TEST_F(MappingQuery, FindsNothingInAHoleAndNothingBehindTheRange) {
  EXPECT_TRUE(read(pages(1, 2)).empty());
  EXPECT_TRUE(overlapping(text(), pages(1, 2)).empty());
  EXPECT_TRUE(read({~std::uint64_t{0} - 2 * page, ~std::uint64_t{0} - page}).empty());
}

TEST_F(MappingQuery, FindsSharedFilesWhateverTheirAccess) {
  std::vector<Mapping> found;
  ASSERT_TRUE(read_shared_files(found).ok());
  const auto here = overlapping(found, pages(0, 5));
  ASSERT_EQ(here.size(), 2u);
  EXPECT_EQ(here[0].range, pages(2, 3));
  EXPECT_EQ(here[1].range, pages(4, 5));
  expect_same(here, overlapping(shared_files(text()), pages(0, 5)));
}

// The numbers of the open files that tell of mappings.
std::vector<int> open_maps() {
  std::vector<int> found;
  for (int file = 0; file < 200; ++file) {
    std::array<char, 64> name{};
    const std::string link = "/proc/self/fd/" + std::to_string(file);
    if (readlink(link.c_str(), name.data(), name.size() - 1) > 0 &&
        std::string_view(name.data()).ends_with("/maps"))
      found.push_back(file);
  }
  return found;
}

TEST_F(MappingQuery, KeepsOneFileOpen) {
  EXPECT_EQ(read(pages(2, 4)).size(), 2u);
  const std::vector<int> kept = open_maps();
  for (int i = 0; i < 3; ++i) EXPECT_EQ(read(pages(2, 4)).size(), 2u);
  EXPECT_EQ(open_maps(), kept);
  EXPECT_LE(kept.size(), 1u);
}

// The number may be another file's by then, which is left alone: even one that answers queries.
TEST_F(MappingQuery, GoesOnWhereTheProgramHasClosedTheFile) {
  EXPECT_EQ(read(pages(2, 4)).size(), 2u);
  const std::vector<int> kept = open_maps();
  if (kept.empty()) GTEST_SKIP() << "this kernel answers no queries";
  close(kept.front());
  EXPECT_EQ(read(pages(2, 4)).size(), 2u);
  ASSERT_EQ(open_maps().size(), 1u);
  const int before = open_maps().front();
  const pid_t other = fork();
  if (other == 0) {
    pause();
    _exit(0);
  }
  ASSERT_EQ(munmap(at(4), page), 0) << "the other process still has it";
  const std::string maps = "/proc/" + std::to_string(other) + "/maps";
  const int theirs = open(maps.c_str(), O_RDONLY | O_CLOEXEC);
  ASSERT_EQ(dup2(theirs, before), before);
  EXPECT_TRUE(read(pages(4, 5)).empty());
  EXPECT_EQ(fcntl(before, F_GETFD), 0) << "still the program's";
  close(theirs);
  close(before);
  kill(other, SIGKILL);
  waitpid(other, nullptr, 0);
}

TEST_F(MappingQuery, TellsAChildOfItsOwnMappings) {
  EXPECT_EQ(read(pages(2, 4)).size(), 2u);
  const std::size_t kept = open_maps().size();
  const pid_t child = fork();
  if (child == 0) {
    munmap(at(2), page);
    const bool right = read(pages(2, 4)).size() == 1 && open_maps().size() == kept;
    _exit(right ? 0 : 1);
  }
  int status = 0;
  waitpid(child, &status, 0);
  EXPECT_EQ(status, 0);
  EXPECT_EQ(read(pages(2, 4)).size(), 2u) << "nor is the parent told of the child's";
}

}  // namespace
}  // namespace tombolo::host
