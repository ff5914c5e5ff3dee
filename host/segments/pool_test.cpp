// SPDX-License-Identifier: Apache-2.0
// Purpose: extents of a pool file: no overlap under concurrency, reclaim after a kill, refusal of
// foreign contents.
#include "host/segments/pool.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <setjmp.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <functional>
#include <thread>
#include <utility>
#include <vector>

#include "base/random.h"
#include "host/segments/lost_memory.h"
#include "host/segments/segment.h"

// Done when this process sleeps next.
static std::function<void()> while_asleep;

// In the place of the C library's.
extern "C" int nanosleep(const timespec* wanted, timespec* left) {
  if (while_asleep) std::exchange(while_asleep, nullptr)();
  return static_cast<int>(syscall(SYS_nanosleep, wanted, left));
}

namespace tombolo::host {
namespace {

class PoolFile {
 public:
  explicit PoolFile(std::uint64_t bytes) {
    std::string pattern = "/dev/shm/pool_test_XXXXXX";
    const int descriptor = mkstemp(pattern.data());
    path_ = pattern;
    if (ftruncate(descriptor, static_cast<off_t>(bytes)) != 0) path_.clear();
    close(descriptor);
  }
  ~PoolFile() { remove(); }
  // It stays with those that have it open.
  void remove() const { unlink(path_.c_str()); }
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

TEST(Pool, HandsOutAlignedZeroExtentsThatDoNotOverlap) {
  PoolFile file(1 << 20);
  Pool pool;
  const Status opened = Pool::open(file.path(), pool);
  ASSERT_TRUE(opened.ok()) << opened.message();
  Extent a;
  Extent b;
  ASSERT_TRUE(pool.allocate(1, a).ok());
  ASSERT_TRUE(pool.allocate(5000, b).ok());
  EXPECT_EQ(a.bytes, 4096u);
  EXPECT_EQ(b.bytes, 8192u);
  EXPECT_EQ(a.offset % 4096, 0u);
  EXPECT_EQ(b.offset, a.offset + a.bytes) << "first fit";
  ASSERT_TRUE(pool.free(a).ok());
  Extent c;
  ASSERT_TRUE(pool.allocate(4096, c).ok());
  EXPECT_EQ(c.offset, a.offset);
  EXPECT_NE(c.nonce, a.nonce);
  Extent found;
  EXPECT_FALSE(pool.find(a.offset, a.nonce, found).ok()) << "an earlier extent at the same place";
  EXPECT_TRUE(pool.find(c.offset, c.nonce, found).ok());
}

TEST(Pool, SegmentsAreSharedZeroAndFreed) {
  PoolFile file(1 << 20);
  for (int round = 0; round < 40; ++round) {  // more than fit at once: freed each time
    Segment segment;
    const Status made = Segment::create_in_pool(file.path(), 100000, segment);
    ASSERT_TRUE(made.ok()) << made.message();
    for (std::uint64_t i = 0; i < segment.bytes(); ++i) ASSERT_EQ(segment.data()[i], std::byte{0});
    Segment peer;
    ASSERT_TRUE(Segment::attach(segment.name(), peer).ok());
    std::memset(peer.data(), 0xff, peer.bytes());
    EXPECT_EQ(segment.data()[99999], std::byte{0xff});
    segment.seal();
    Segment late;
    EXPECT_FALSE(Segment::attach(segment.name(), late).ok());
  }
}

TEST(Pool, ThatIsFullIsNoMemoryWithTheLargestPiece) {
  PoolFile file(1 << 20);
  Segment all;
  ASSERT_TRUE(Segment::create_in_pool(file.path(), 1 << 19, all).ok());
  Segment more;
  const Status refused = Segment::create_in_pool(file.path(), 1 << 19, more);
  EXPECT_EQ(refused.code(), Code::no_memory);
  EXPECT_NE(refused.message().find("largest free piece"), std::string::npos);
  EXPECT_EQ(Segment::create_in_pool(file.path(), 1ull << 40, more).code(), Code::no_memory);
}

TEST(Pool, ThatHasNoFreeRecordSaysSo) {
  PoolFile file(1 << 20);
  Pool pool;
  ASSERT_TRUE(Pool::open(file.path(), pool).ok());
  Extent extent;
  for (int i = 0; i < 63; ++i) ASSERT_TRUE(pool.allocate(1, extent).ok());
  EXPECT_EQ(pool.allocate(1, extent).code(), Code::no_memory);
  ASSERT_TRUE(pool.free(extent).ok());
  EXPECT_TRUE(pool.allocate(1, extent).ok());
}

TEST(Pool, WithForeignContentsIsRefusedAndLeftAlone) {
  PoolFile file(1 << 20);
  std::fstream(file.path(), std::ios::in | std::ios::out) << "stranger's data";
  Pool pool;
  const Status refused = Pool::open(file.path(), pool);
  EXPECT_EQ(refused.code(), Code::bad_configuration);
  std::string text;
  std::ifstream(file.path()) >> text;
  EXPECT_EQ(text.substr(0, 8), "stranger") << "PO2";
  // No command that would destroy it.
  EXPECT_EQ(refused.message().find("dd "), std::string::npos) << refused.message();
  EXPECT_EQ(refused.message().find("-s 1G " + file.path()), std::string::npos);
}

TEST(Pool, ThatIsNoneIsNeverToBeTruncated) {
  PoolFile file(0);
  std::ofstream(file.path()) << "root:x:0:0:root:/root:/bin/bash\n";
  Pool pool;
  const Status refused = Pool::open(file.path(), pool);
  EXPECT_EQ(refused.code(), Code::bad_configuration);
  EXPECT_NE(refused.message().find("other data"), std::string::npos) << refused.message();
  EXPECT_EQ(refused.message().find("-s 1G " + file.path()), std::string::npos);
}

TEST(Pool, ThatIsTooSmallSaysHowToEnlargeIt) {
  PoolFile file(4096);
  Pool pool;
  const Status refused = Pool::open(file.path(), pool);
  EXPECT_EQ(refused.code(), Code::bad_configuration);
  EXPECT_NE(refused.message().find("truncate"), std::string::npos);
}

TEST(Pool, ThatChangedItsSizeIsRefused) {
  PoolFile file(1 << 20);
  Pool pool;
  ASSERT_TRUE(Pool::open(file.path(), pool).ok());
  ASSERT_EQ(truncate(file.path().c_str(), 2 << 20), 0);
  EXPECT_EQ(Pool::open(file.path(), pool).code(), Code::bad_configuration);
}

TEST(Pool, OfThisUserIsClosedToOthersWhenItIsFormatted) {
  PoolFile file(1 << 20);
  ASSERT_EQ(chmod(file.path().c_str(), 0666), 0);
  Pool pool;
  ASSERT_TRUE(Pool::open(file.path(), pool).ok());
  struct stat shape = {};
  ASSERT_EQ(stat(file.path().c_str(), &shape), 0);
  EXPECT_EQ(shape.st_mode & 0777, 0600u);
}

TEST(Pool, ExtentsOfAKilledProcessAreReclaimed) {
  PoolFile file(1 << 20);
  const pid_t child = fork();
  if (child == 0) {
    Segment segment;
    if (!Segment::create_in_pool(file.path(), 3 << 18, segment).ok()) _exit(1);
    std::memset(segment.data(), 0xff, segment.bytes());
    kill(getpid(), SIGKILL);
  }
  int state = 0;
  waitpid(child, &state, 0);
  ASSERT_TRUE(WIFSIGNALED(state));
  Segment segment;
  const Status made = Segment::create_in_pool(file.path(), 3 << 18, segment);
  ASSERT_TRUE(made.ok()) << made.message();
  for (std::uint64_t i = 0; i < segment.bytes(); ++i) ASSERT_EQ(segment.data()[i], std::byte{0});
}

// PO4: the creator has ended, but another process may still write to the extent.
TEST(Pool, ExtentsThatAreMappedAreNotReclaimed) {
  PoolFile file(1 << 20);
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  const pid_t child = fork();
  if (child == 0) {
    Segment segment;
    if (!Segment::create_in_pool(file.path(), 3 << 18, segment).ok()) _exit(1);
    const SegmentName name = segment.name();
    if (write(ends[1], &name, sizeof name) != sizeof name) _exit(1);
    pause();
  }
  SegmentName name;
  ASSERT_EQ(read(ends[0], &name, sizeof name), static_cast<ssize_t>(sizeof name));
  Segment more;
  const auto is_kept = [&] {
    return Segment::create_in_pool(file.path(), 3 << 18, more).code() == Code::no_memory;
  };
  {
    Segment first;
    ASSERT_TRUE(Segment::attach(name, first).ok());
    Segment second;
    ASSERT_TRUE(Segment::attach(name, second).ok());
    kill(child, SIGKILL);
    waitpid(child, nullptr, 0);
    EXPECT_TRUE(is_kept());
    { const Segment gone = std::move(first); }
    EXPECT_TRUE(is_kept()) << "EH2";
    // A child of this process has the mapping too; that it ends gives nothing back (EH1).
    const pid_t other = fork();
    if (other == 0) {
      { const Segment mine = std::move(second); }
      _exit(0);
    }
    waitpid(other, nullptr, 0);
    EXPECT_TRUE(is_kept());
  }
  EXPECT_TRUE(Segment::create_in_pool(file.path(), 3 << 18, more).ok());
  close(ends[0]);
  close(ends[1]);
}

// PO6
TEST(Pool, ExtentsBelongToTheirUserWhoeverMayOpenTheFile) {
  if (geteuid() != 0) GTEST_SKIP() << "only root can become another user";
  constexpr uid_t nobody = 65534;
  PoolFile file(1 << 20);
  Segment segment;
  ASSERT_TRUE(Segment::create_in_pool(file.path(), 4096, segment).ok());
  ASSERT_EQ(chmod(file.path().c_str(), 0666), 0);
  const pid_t child = fork();
  if (child == 0) {
    if (setgid(nobody) != 0 || setuid(nobody) != 0) _exit(2);
    Segment stolen;
    if (Segment::attach(segment.name(), stolen).ok()) _exit(3);
    Pool pool;
    if (!Pool::open(file.path(), pool).ok()) _exit(4);
    const Extent extent{segment.name().offset, 4096, segment.name().inode};
    if (pool.seal(extent).ok() || pool.free(extent).ok()) _exit(5);
    Segment own;  // another extent is this user's
    _exit(Segment::create_in_pool(file.path(), 4096, own).ok() ? 0 : 6);
  }
  int state = 0;
  waitpid(child, &state, 0);
  EXPECT_TRUE(WIFEXITED(state) && WEXITSTATUS(state) == 0) << WEXITSTATUS(state);
  Segment peer;
  EXPECT_TRUE(Segment::attach(segment.name(), peer).ok());
}

#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
constexpr bool handlers_are_ours = false;  // but the sanitizer's
#else
constexpr bool handlers_are_ours = true;
#endif

class LostPool : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!handlers_are_ours) GTEST_SKIP() << "sanitizers have a handler of their own";
    GTEST_FLAG_SET(death_test_style, "threadsafe");  // a process without a handler of ours
  }
  // The new process has a file of its own.
  static std::string message() { return "the pool /dev/shm/pool_test_...... has lost"; }
  // The access ends the process, as the pool has lost its end; or there is no such access.
  [[noreturn]] void lose(Segment& segment) const {
    const int file = open(file_.path().c_str(), O_RDWR);
    file_.remove();  // this process destroys no fixture
    if (ftruncate(file, 4096) != 0) std::_Exit(2);
    segment.data()[70000] = std::byte{1};
    std::_Exit(3);
  }
  void create(Segment& segment) const {
    if (!Segment::create_in_pool(file_.path(), 1 << 18, segment).ok()) std::_Exit(1);
  }

  PoolFile file_{1 << 20};
};

TEST_F(LostPool, IsNamedBeforeTheProcessEnds) {
  const auto use = [&] {
    Segment segment;
    create(segment);
    lose(segment);
  };
  EXPECT_EXIT(use(), ::testing::KilledBySignal(SIGBUS), message());
}

TEST_F(LostPool, IsNamedWhereItWasAttached) {
  const auto use = [&] {
    Segment segment;
    create(segment);
    Segment attached;
    if (!Segment::attach(segment.name(), attached).ok()) std::_Exit(1);
    lose(attached);
  };
  EXPECT_EXIT(use(), ::testing::KilledBySignal(SIGBUS), message());
}

TEST_F(LostPool, IsNamedWhereThousandsOfMappingsAreInUse) {
  const auto use = [&] {
    for (std::uintptr_t i = 1; i <= 5000; ++i)
      tell_if_lost(reinterpret_cast<const std::byte*>(i * 4096), 4096, "another");
    Segment segment;
    create(segment);
    lose(segment);
  };
  EXPECT_EXIT(use(), ::testing::KilledBySignal(SIGBUS), message());
}

// A byte past the end of a file of the program's own.
volatile char* lost_byte(void* at = nullptr) {
  const int file = static_cast<int>(memfd_create("a program's", 0));
  void* const mapped =
      mmap(at, 8192, PROT_READ | PROT_WRITE, MAP_SHARED | (at != nullptr ? MAP_FIXED : 0), file, 0);
  return static_cast<volatile char*>(mapped);
}

sigjmp_buf back;
volatile int caught = 0;

TEST_F(LostPool, IsNamedAfterAFaultThatTheProgramHasHandled) {
  const auto use = [&] {
    struct sigaction action {};
    action.sa_handler = [](int) {
      caught = caught + 1;
      if (caught == 3) std::_Exit(40);
      siglongjmp(back, 1);
    };
    sigaction(SIGBUS, &action, nullptr);
    Segment segment;
    create(segment);
    volatile char* const byte = lost_byte();
    while (caught < 2)
      if (sigsetjmp(back, 1) == 0) *byte = 1;
    lose(segment);
  };
  EXPECT_EXIT(use(), ::testing::ExitedWithCode(40), message());
}

TEST_F(LostPool, IsNotBlamedForItsPlaceOnceItIsUnmapped) {
  const auto use = [&] {
    void* place = nullptr;
    {
      Segment segment;
      create(segment);
      place = segment.data();
    }
    file_.remove();
    *lost_byte(place) = 1;
  };
  EXPECT_EXIT(use(), ::testing::KilledBySignal(SIGBUS), "^$");
}

TEST_F(LostPool, ASignalFromAProcessEndsTheProcessAsBefore) {
  const auto use = [&] {
    Segment segment;
    create(segment);
    file_.remove();
    kill(getpid(), SIGBUS);
    std::_Exit(3);
  };
  EXPECT_EXIT(use(), ::testing::KilledBySignal(SIGBUS), "^$");
}

TEST(Pool, ExtentsOfAnotherBootAreKept) {
  PoolFile file(1 << 20);
  Pool pool;
  ASSERT_TRUE(Pool::open(file.path(), pool).ok());
  Extent extent;
  ASSERT_TRUE(pool.allocate(1 << 19, extent).ok());
  // As another host would have written it, by a process number that does not exist here.
  auto* memory = static_cast<std::byte*>(
      mmap(nullptr, 8192, PROT_READ | PROT_WRITE, MAP_SHARED, pool.descriptor(), 0));
  auto* record = reinterpret_cast<ExtentRecord*>(memory + sizeof(PoolHeader));
  record->boot[0] ^= 1;
  record->pid = 999999999;
  Extent other;
  EXPECT_EQ(pool.allocate(1 << 19, other).code(), Code::no_memory) << "PO5";
  record->boot[0] ^= 1;  // and now it is a dead process of this boot
  EXPECT_TRUE(pool.allocate(1 << 19, other).ok()) << "PO4";
  munmap(memory, 8192);
}

// PO5: whose flock would not keep this host out.
TEST(Pool, OneHostHandsOutExtentsAndAnotherOnlyWhenNoneIsInUse) {
  PoolFile file(1 << 20);
  Pool pool;
  ASSERT_TRUE(Pool::open(file.path(), pool).ok());
  Extent extent;
  ASSERT_TRUE(pool.allocate(1 << 16, extent).ok());
  auto* memory = static_cast<std::byte*>(
      mmap(nullptr, 8192, PROT_READ | PROT_WRITE, MAP_SHARED, pool.descriptor(), 0));
  auto* header = reinterpret_cast<PoolHeader*>(memory);
  EXPECT_EQ(header->manager, boot_number());
  header->manager ^= 2;  // another host
  Extent other;
  const Status refused = pool.allocate(1 << 16, other);
  EXPECT_EQ(refused.code(), Code::bad_configuration);
  EXPECT_NE(refused.message().find(file.path()), std::string::npos) << refused.message();
  Extent found;
  EXPECT_TRUE(pool.find(extent.offset, extent.nonce, found).ok()) << "attaching is for all";
  ASSERT_TRUE(pool.free(extent).ok());
  EXPECT_TRUE(pool.allocate(1 << 16, other).ok());
  EXPECT_EQ(header->manager, boot_number());
  munmap(memory, 8192);
}

// PO5: another host's writes while this one waits to become the manager.
TEST(Pool, AHostThatAsksForAnEmptyPoolSeesWhatAnotherDidMeanwhile) {
  for (const bool takes_extent : {false, true}) {
    PoolFile file(1 << 20);
    Pool pool;
    ASSERT_TRUE(Pool::open(file.path(), pool).ok());
    auto* memory = static_cast<std::byte*>(
        mmap(nullptr, 8192, PROT_READ | PROT_WRITE, MAP_SHARED, pool.descriptor(), 0));
    auto* header = reinterpret_cast<PoolHeader*>(memory);
    auto* record = reinterpret_cast<ExtentRecord*>(memory + sizeof(PoolHeader));
    while_asleep = [&] {
      EXPECT_NE(header->manager, 0U);
      if (takes_extent)
        record->bytes = 4096;
      else
        header->manager = boot_number() ^ 2;
    };
    Extent extent;
    EXPECT_EQ(pool.allocate(1 << 16, extent).code(), Code::bad_configuration) << takes_extent;
    EXPECT_FALSE(while_asleep) << "the host waits before it looks again";
    munmap(memory, 8192);
  }
}

// Fills its extents with its own number and looks whether they stay so.
bool allocate_and_check(const std::string& path, std::uint64_t seed, int rounds) {
  Random random(seed);
  std::vector<Segment> held;
  for (int i = 0; i < rounds; ++i) {
    if (held.size() < 6 && !random.one_in(3)) {
      Segment segment;
      const Status made = Segment::create_in_pool(path, 1 + random.below(30000), segment);
      if (made.code() == Code::no_memory) continue;
      if (!made.ok()) return false;
      for (std::uint64_t b = 0; b < segment.bytes(); ++b)
        if (segment.data()[b] != std::byte{0}) return false;
      std::memset(segment.data(), static_cast<int>(seed), segment.bytes());
      held.push_back(std::move(segment));
    } else if (!held.empty()) {
      const Segment segment = std::move(held[random.below(held.size())]);
      std::erase_if(held, [](const Segment& s) { return s.data() == nullptr; });
      for (std::uint64_t b = 0; b < segment.bytes(); ++b)
        if (segment.data()[b] != static_cast<std::byte>(seed)) return false;
    }
  }
  return true;
}

TEST(Pool, IsSafeBetweenProcesses) {
  PoolFile file(2 << 20);
  std::vector<pid_t> children;
  for (std::uint64_t seed = 1; seed <= 6; ++seed) {
    const pid_t child = fork();
    if (child == 0) {
      const bool good = allocate_and_check(file.path(), seed, 150);
      if (seed == 6) kill(getpid(), SIGKILL);  // with all extents it holds
      _exit(good ? 0 : 1);
    }
    children.push_back(child);
  }
  for (const pid_t child : children) {
    int state = 0;
    waitpid(child, &state, 0);
    EXPECT_TRUE((WIFEXITED(state) && WEXITSTATUS(state) == 0) || child == children.back());
  }
  Pool pool;
  ASSERT_TRUE(Pool::open(file.path(), pool).ok());
  Extent extent;
  EXPECT_TRUE(pool.allocate((2 << 20) - 8192, extent).ok()) << "everything was freed or reclaimed";
}

TEST(Pool, IsSafeBetweenThreads) {
  PoolFile file(2 << 20);
  std::atomic<int> good = 0;
  std::vector<std::thread> threads;
  for (std::uint64_t seed = 1; seed <= 4; ++seed)
    threads.emplace_back([&, seed] { good += allocate_and_check(file.path(), seed, 80) ? 1 : 0; });
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(good, 4);
}

TEST(DaxShape, ReadsSizeAndAlignment) {
  std::string folder = "/tmp/dax_shape_XXXXXX";
  ASSERT_NE(mkdtemp(folder.data()), nullptr);
  std::uint64_t bytes = 0;
  std::uint64_t alignment = 0;
  EXPECT_EQ(dax_shape(folder, bytes, alignment).code(), Code::bad_configuration);
  std::ofstream(folder + "/size") << "1073741824\n";
  ASSERT_TRUE(dax_shape(folder, bytes, alignment).ok());
  EXPECT_EQ(bytes, 1u << 30);
  EXPECT_EQ(alignment, 2u << 20) << "the usual one, where the kernel does not tell";
  std::ofstream(folder + "/align") << "4096\n";
  ASSERT_TRUE(dax_shape(folder, bytes, alignment).ok());
  EXPECT_EQ(alignment, 4096u);
  std::filesystem::remove_all(folder);
}

TEST(Pool, OnACharacterDeviceThatIsNotDaxIsRefused) {
  Segment segment;
  EXPECT_EQ(Segment::create_in_pool("/dev/zero", 4096, segment).code(), Code::bad_configuration);
}

}  // namespace
}  // namespace tombolo::host
