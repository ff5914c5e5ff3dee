// SPDX-License-Identifier: Apache-2.0
// Purpose: segments: creation, attach from another process, refusal, full memory, nothing left.
#include "host/segments/segment.h"

#include <dirent.h>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sched.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <set>
#include <type_traits>

#include "host/memory/memory_room.h"
#include "host/segments/pool_directory.h"

namespace tombolo::host {
namespace {

static_assert(std::is_trivially_copyable_v<SegmentName>);

constexpr int skipped = 77;

// Runs body() in a child process and returns its value (or 200 + signal).
int in_child(const std::function<int()>& body) {
  const pid_t pid = fork();
  if (pid == 0) _exit(body());
  int state = 0;
  waitpid(pid, &state, 0);
  return WIFEXITED(state) ? WEXITSTATUS(state) : 200 + WTERMSIG(state);
}

std::set<std::string> entries(const std::string& directory) {
  std::set<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(directory))
    names.insert(entry.path().filename());
  return names;
}

// The files of this process in /dev/shm: those of others come and go beside it.
std::set<std::string> leftovers() {
  std::set<std::string> own;
  for (const std::string& name : entries("/dev/shm")) {
    unsigned pid = 0;
    if (std::sscanf(name.c_str(), "tombolo-%*x-%*x-%x-", &pid) == 1 && pid == unsigned(getpid()))
      own.insert(name);
  }
  return own;
}

class Folder {
 public:
  explicit Folder(const std::string& parent = "/dev/shm") {
    std::string pattern = parent + "/segment_test_XXXXXX";
    path_ = mkdtemp(pattern.data());
  }
  ~Folder() { std::filesystem::remove_all(path_); }
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

// Each way to get anonymous memory.
class AnonymousSegment : public testing::TestWithParam<const char*> {
 protected:
  void SetUp() override { setenv("TOMBOLO_SEGMENT", GetParam(), 1); }
  void TearDown() override { unsetenv("TOMBOLO_SEGMENT"); }
};
INSTANTIATE_TEST_SUITE_P(Ways, AnonymousSegment, testing::Values("", "memfd", "nameless", "named"),
                         [](const auto& way) {
                           return way.param[0] == '\0' ? std::string("first") : way.param;
                         });

TEST_P(AnonymousSegment, IsSharedWithAnotherProcess) {
  if (GetParam()[0] == '\0') unsetenv("TOMBOLO_SEGMENT");
  Segment segment;
  const Status made = Segment::create_anonymous(10000, "test", segment);
  ASSERT_TRUE(made.ok()) << made.message();
  EXPECT_EQ(segment.bytes(), 10000u);
  for (std::size_t i = 0; i < 10000; ++i) ASSERT_EQ(segment.data()[i], std::byte{0});
  const SegmentName name = segment.name();
  EXPECT_EQ(in_child([&] {
              Segment peer;
              if (!Segment::attach(name, peer).ok()) return 1;
              if (peer.data() == segment.data()) return 2;
              std::memcpy(peer.data() + 5000, "hello", 5);
              return 0;
            }),
            0);
  EXPECT_EQ(std::memcmp(segment.data() + 5000, "hello", 5), 0);
}

TEST_P(AnonymousSegment, CannotBeAttachedOnceSealed) {
  const auto before = leftovers();
  Segment segment;
  ASSERT_TRUE(Segment::create_anonymous(4096, "test", segment).ok());
  segment.seal();
  EXPECT_EQ(leftovers(), before) << "SG1: nothing is left in a file system";
  Segment peer;
  const Status refused = Segment::attach(segment.name(), peer);
  EXPECT_FALSE(refused.ok());
  segment.data()[4095] = std::byte{1};  // the memory stays
  segment.seal();                       // again: no effect
}

TEST(Segment, WithANameIsFoundUntilItIsSealed) {
  setenv("TOMBOLO_SEGMENT", "named", 1);
  Segment segment;
  ASSERT_TRUE(Segment::create_anonymous(4096, "test", segment).ok());
  EXPECT_EQ(leftovers().size(), 1u);
  segment.seal();
  EXPECT_TRUE(leftovers().empty());
  unsetenv("TOMBOLO_SEGMENT");
}

TEST_P(AnonymousSegment, LeavesNothingWithoutSeal) {
  const auto before = leftovers();
  {
    Segment segment;
    ASSERT_TRUE(Segment::create_anonymous(4096, "test", segment).ok());
  }
  EXPECT_EQ(leftovers(), before);
}

TEST_P(AnonymousSegment, IsClosedToOtherUsers) {
  Segment segment;
  ASSERT_TRUE(Segment::create_anonymous(4096, "test", segment).ok());
  const SegmentName name = segment.name();
  const int result = in_child([&] {
    if (setgid(65534) != 0 || setuid(65534) != 0) return skipped;
    Segment peer;
    const Status refused = Segment::attach(name, peer);
    return refused.ok() ? 1 : refused.message().empty() ? 2 : 0;
  });
  if (result == skipped) GTEST_SKIP() << "this user may not become another";
  EXPECT_EQ(result, 0) << "SG3";
}

TEST(Segment, AForkedChildDoesNotFreeIt) {
  Folder folder;
  Segment segment;
  ASSERT_TRUE(Segment::create_in_pool(folder.path(), 4096, segment).ok());
  EXPECT_EQ(in_child([&] {
              Segment inherited = std::move(segment);
              inherited.seal();
              inherited = Segment();
              return 0;
            }),
            0);
  Segment peer;
  EXPECT_TRUE(Segment::attach(segment.name(), peer).ok());
}

TEST(Segment, OfEightGibibytesTakesMilliseconds) {
  constexpr std::uint64_t bytes = 8ull << 30;
  if (memory_room().bytes < bytes) GTEST_SKIP() << "this host has not so much memory";
  const auto start = std::chrono::steady_clock::now();
  Segment segment;
  const Status made = Segment::create_anonymous(bytes, "large", segment);
  ASSERT_TRUE(made.ok()) << made.message();
  const auto spent = std::chrono::steady_clock::now() - start;
  EXPECT_LT(spent, std::chrono::milliseconds(100));
  segment.data()[0] = std::byte{1};
  segment.data()[bytes - 1] = std::byte{2};
  EXPECT_EQ(segment.data()[bytes / 2], std::byte{0});
}

TEST(Segment, LargerThanMemoryIsRefusedWithBothSizes) {
  Segment segment;
  const Status refused = Segment::create_anonymous(1ull << 50, "huge", segment);
  EXPECT_EQ(refused.code(), Code::no_memory);
  EXPECT_NE(refused.message().find(std::to_string(1ull << 50)), std::string::npos);
  EXPECT_NE(refused.message().find("bytes are left"), std::string::npos);
  EXPECT_EQ(segment.data(), nullptr);
}

TEST(Segment, UntouchedMemoryIsNotPromisedTwice) {
  const std::uint64_t most = memory_room().bytes / 10 * 6;
  Segment first;
  ASSERT_TRUE(Segment::create_anonymous(most, "first", first).ok());
  Segment second;
  EXPECT_EQ(Segment::create_anonymous(most, "second", second).code(), Code::no_memory);
  first = Segment();
  EXPECT_TRUE(Segment::create_anonymous(most, "third", second).ok());
}

TEST(Segment, AThousandFitBesideFewDescriptors) {
  std::vector<Segment> segments(1000);
  for (Segment& segment : segments) {
    ASSERT_TRUE(Segment::create_anonymous(4096, "one of many", segment).ok());
    segment.seal();
  }
  EXPECT_LT(entries("/proc/self/fd").size(), 50u);
}

TEST(Segment, ItsNameShowsInTheMaps) {
  Segment segment;
  ASSERT_TRUE(Segment::create_anonymous(4096, "window-7", segment).ok());
  std::ifstream maps("/proc/self/maps");
  const std::string all((std::istreambuf_iterator<char>(maps)), {});
  EXPECT_NE(all.find("memfd:tombolo:window-7"), std::string::npos);
}

TEST(Segment, AnotherFileUnderItsNameIsRefused) {
  Segment segment;
  ASSERT_TRUE(Segment::create_anonymous(4096, "test", segment).ok());
  SegmentName name = segment.name();
  name.inode += 1;
  Segment peer;
  const Status refused = Segment::attach(name, peer);
  EXPECT_EQ(refused.code(), Code::io);
  EXPECT_NE(refused.message().find("not the segment"), std::string::npos);
}

TEST(Segment, OfADeadCreatorIsAProcessFailure) {
  int channel[2];
  ASSERT_EQ(pipe(channel), 0);
  in_child([&] {
    Segment segment;
    if (!Segment::create_anonymous(4096, "test", segment).ok()) return 1;
    return write(channel[1], &segment.name(), sizeof(SegmentName)) == sizeof(SegmentName) ? 0 : 1;
  });
  SegmentName name;
  ASSERT_EQ(read(channel[0], &name, sizeof name), static_cast<ssize_t>(sizeof name));
  close(channel[0]);
  close(channel[1]);
  Segment peer;
  EXPECT_EQ(Segment::attach(name, peer).code(), Code::process_failed);
}

TEST(Segment, AnUnknownSettingIsRefused) {
  setenv("TOMBOLO_SEGMENT", "floppy", 1);
  Segment segment;
  EXPECT_EQ(Segment::create_anonymous(4096, "test", segment).code(), Code::bad_configuration);
  unsetenv("TOMBOLO_SEGMENT");
}

TEST(Segment, InADirectoryIsSharedAndUnlinkedBySeal) {
  Folder folder;
  Segment segment;
  const Status made = Segment::create_in_pool(folder.path(), 5000, segment);
  ASSERT_TRUE(made.ok()) << made.message();
  const auto names = entries(folder.path());
  ASSERT_EQ(names.size(), 1u);
  struct stat shape = {};
  ASSERT_EQ(stat((folder.path() + "/" + *names.begin()).c_str(), &shape), 0);
  EXPECT_EQ(shape.st_mode & 07777, 0600u) << "SG3";
  EXPECT_EQ(in_child([&] {
              Segment peer;
              if (!Segment::attach(segment.name(), peer).ok()) return 1;
              peer.data()[4999] = std::byte{7};
              return 0;
            }),
            0);
  EXPECT_EQ(segment.data()[4999], std::byte{7});
  segment.seal();
  EXPECT_TRUE(entries(folder.path()).empty());
  segment.data()[0] = std::byte{1};
}

TEST(Segment, LeftByAKilledCreatorIsRemovedAtTheNextCreation) {
  Folder folder;
  EXPECT_EQ(in_child([&] {
              Segment segment;
              if (!Segment::create_in_pool(folder.path(), 4096, segment).ok()) return 1;
              kill(getpid(), SIGKILL);
              return 2;
            }),
            200 + SIGKILL);
  std::ofstream(folder.path() + "/tombolo-notes.txt") << "not ours";
  EXPECT_EQ(entries(folder.path()).size(), 2u);
  Segment segment;
  ASSERT_TRUE(Segment::create_in_pool(folder.path(), 4096, segment).ok());
  const auto after = entries(folder.path());
  EXPECT_EQ(after.size(), 2u) << "ours and the file that is none of ours";
  EXPECT_EQ(after.count("tombolo-notes.txt"), 1u);
  EXPECT_EQ(remove_leftovers(folder.path()), 0) << "the living creator's file stays";
}

TEST(Segment, OfAPoolThatIsNotThereIsABadConfiguration) {
  Segment segment;
  const Status refused = Segment::create_in_pool("/nowhere/pool", 4096, segment);
  EXPECT_EQ(refused.code(), Code::bad_configuration);
  EXPECT_NE(refused.message().find("truncate"), std::string::npos);
}

// In a mount namespace of its own, so that nothing of it is seen or left outside.
TEST(Segment, OnAFullTmpfsIsNoMemoryAndNeverASignal) {
  Folder folder;
  const int result = in_child([&] {
    if (unshare(CLONE_NEWNS) != 0 || mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0)
      return skipped;
    if (mount("tombolo", folder.path().c_str(), "tmpfs", 0, "size=1m") != 0) return skipped;
    Segment fits;
    if (!Segment::create_in_pool(folder.path(), 768 << 10, fits).ok()) return 1;
    std::memset(fits.data(), 1, fits.bytes());
    Segment too_much;
    const Status refused = Segment::create_in_pool(folder.path(), 512 << 10, too_much);
    if (refused.code() != Code::no_memory) return 2;
    if (refused.message().find("524288 bytes (262144 bytes are free)") == std::string::npos)
      return 3;
    if (entries(folder.path()).size() != 1) return 4;
    fits = Segment();
    return entries(folder.path()).empty() ? 0 : 5;
  });
  if (result == skipped) GTEST_SKIP() << "this user may not mount a file system";
  EXPECT_EQ(result, 0);
}

TEST(Segment, OnAFullSharedMemoryMountFallsBackToNoMemory) {
  const int result = in_child([&] {
    if (unshare(CLONE_NEWNS) != 0 || mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0)
      return skipped;
    if (mount("tombolo", "/dev/shm", "tmpfs", 0, "size=1m") != 0) return skipped;
    for (const char* way : {"nameless", "named"}) {
      setenv("TOMBOLO_SEGMENT", way, 1);
      Segment segment;
      if (Segment::create_anonymous(2 << 20, "test", segment).code() != Code::no_memory) return 1;
      if (!leftovers().empty()) return 2;
    }
    return 0;
  });
  if (result == skipped) GTEST_SKIP() << "this user may not mount a file system";
  EXPECT_EQ(result, 0);
}

}  // namespace
}  // namespace tombolo::host
