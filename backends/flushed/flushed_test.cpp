// SPDX-License-Identifier: Apache-2.0
// Purpose: the machine `flushed` on this host: messages through published data, both kinds of
// atomics, waiting without futex.
#include "backends/flushed/flushed.h"

#include <gtest/gtest.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/uio.h>
#include <sys/wait.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <string>
#include <vector>

#include "backends/flushed/testing/far_memory.h"
#include "base/random.h"
#include "host/segments/segment.h"
#include "machine/testing/ensemble.h"

namespace tombolo::flushed {
namespace {

using machine::Atomics;
using machine::Home;

struct alignas(64) Line {
  std::byte bytes[64];
};

template <class C>
class Flushed : public ::testing::Test {};
using Machines = ::testing::Types<Core<Atomics::full>, Core<Atomics::none>>;
TYPED_TEST_SUITE(Flushed, Machines);

TYPED_TEST(Flushed, SaysWhatItIs) {
  EXPECT_FALSE(TypeParam::properties.coherent);
  EXPECT_EQ(TypeParam::properties.line_bytes, 64u);
  const bool full = TypeParam::properties.native_atomics == Atomics::full;
  EXPECT_EQ(TypeParam::properties.name, full ? "flushed" : "flushed-none");
  EXPECT_EQ(TypeParam::reserved_sync_bytes(4), full ? 64u : 128u);
}

// Core 0 hands blocks of data to core 1 and gets an answer, in every way to write and to read.
TYPED_TEST(Flushed, PassesMessages) {
  machine::SyncLayout layout(TypeParam::reserved_sync_bytes(2));
  const auto flag = layout.take_lines(1);
  machine::testing::Ensemble<TypeParam> ensemble(
      {.cores = 2, .sync_bytes = layout.bytes(), .data_bytes = 65536});
  constexpr int rounds = 600;
  std::atomic<int> wrong = 0;
  ensemble.run([&](auto& core) {
    Random random(11);  // the same in both cores
    std::vector<std::uint8_t> bytes(20000);
    const Home other = 1 - core.self();
    for (std::uint64_t i = 1; i <= rounds; ++i) {
      const std::size_t offset = random.below(300);
      const std::size_t length = 1 + random.below(random.one_in(5) ? 20000 : 200);
      const bool through = random.one_in(2);
      const bool writer = core.self() == i % 2;
      const machine::DataPlace place{1, offset};
      if (writer) {
        std::memset(bytes.data(), static_cast<int>(i), length);
        if (through) {
          ASSERT_TRUE(core.write_through(place, bytes.data(), length).ok());
          core.drain();
        } else {
          ASSERT_TRUE(core.write(place, bytes.data(), length).ok());
          core.publish(place, length);
        }
        core.store(core.word({other, flag}), i);
        core.notify(other);
      } else {
        ASSERT_TRUE(
            core.wait_until(core.word({core.self(), flag}), [&](std::uint64_t v) { return v == i; })
                .ok());
        core.refresh(place, length);
        ASSERT_TRUE(core.read(place, bytes.data(), length).ok());
        for (std::size_t k = 0; k < length; ++k) wrong += bytes[k] != (i & 0xff) ? 1 : 0;
      }
    }
  });
  EXPECT_EQ(wrong, 0);
}

TYPED_TEST(Flushed, HasAtomicsThatLoseNothing) {
  constexpr Home cores = 3;
  machine::SyncLayout layout(TypeParam::reserved_sync_bytes(cores));
  const auto counter = layout.take_lines(2);
  machine::testing::Ensemble<TypeParam> ensemble({.cores = cores, .sync_bytes = layout.bytes()});
  constexpr int rounds = 1000;
  std::uint64_t plain = 0;
  ensemble.run([&](auto& core) {
    const auto word = core.word({1, counter});
    const auto lock = core.word({2, counter + 8});
    for (int i = 0; i < rounds; ++i) {
      core.fetch_add(word, 3);
      while (core.exchange(lock, 1) != 0) ASSERT_TRUE(core.pause(200).ok());
      ++plain;
      core.store(lock, 0);
    }
  });
  auto& core = ensemble.core(0);
  EXPECT_EQ(core.load(core.word({1, counter})), 3u * rounds * cores);
  EXPECT_EQ(plain, std::uint64_t{rounds} * cores);
  EXPECT_EQ(core.compare_exchange(core.word({2, counter + 8}), 1, 2), 0u);
}

// Dekker's pattern with plain stores and the fence.
TYPED_TEST(Flushed, FenceKeepsLoadsBehindStores) {
  machine::SyncLayout layout(TypeParam::reserved_sync_bytes(2));
  const auto flags = layout.take_lines(1);
  const auto meeting = layout.take_lines(1);
  machine::testing::Ensemble<TypeParam> ensemble({.cores = 2, .sync_bytes = layout.bytes()});
  constexpr int rounds = 2000;
  std::vector<std::vector<std::uint64_t>> seen(2, std::vector<std::uint64_t>(rounds));
  ensemble.run([&](auto& core) {
    const auto mine = core.word({core.self(), flags});
    const auto theirs = core.word({1 - core.self(), flags});
    const auto meet = core.word({0, meeting});
    for (int i = 0; i < rounds; ++i) {
      core.store(mine, i + 1);
      core.fence();
      seen[core.self()][i] = core.load(theirs);
      core.fetch_add(meet, 1);
      while (core.load(meet) < 2u * (i + 1)) std::this_thread::yield();
    }
  });
  for (int i = 0; i < rounds; ++i)
    EXPECT_FALSE(seen[0][i] == static_cast<std::uint64_t>(i) &&
                 seen[1][i] == static_cast<std::uint64_t>(i));
}

TYPED_TEST(Flushed, ViewIsTheMemoryThatReadsAndWritesUse) {
  machine::testing::Ensemble<TypeParam> ensemble({.cores = 1});
  auto& core = ensemble.core(0);
  *core.view({0, 100}) = std::byte{42};
  std::byte out{};
  ASSERT_TRUE(core.read({0, 100}, &out, 1).ok());
  EXPECT_EQ(out, std::byte{42});
  EXPECT_EQ(core.data_bytes(0), 4096u);
}

TYPED_TEST(Flushed, ReachesUnmappedMemoryOfThisHost) {
  if (process_vm_readv(getpid(), nullptr, 0, nullptr, 0, 0) != 0)
    GTEST_SKIP() << "no process_vm_readv here";
  std::vector<std::byte> region(4096, std::byte{1});
  std::vector<Line> sync(16);
  machine::Attachment at;
  at.cores = 2;
  at.sync = sync[0].bytes;
  at.sync_bytes_per_home = 512;
  machine::DataRegion unmapped;
  unmapped.bytes = region.size();
  unmapped.pid = getpid();
  unmapped.foreign_address = reinterpret_cast<std::uint64_t>(region.data());
  at.data = {unmapped, unmapped};
  TypeParam core(at);
  const std::byte in{9};
  std::byte out{};
  for (const Home home : {0u, 1u}) {
    ASSERT_TRUE(core.write_through({home, 7}, &in, 1).ok());
    core.publish({home, 7}, 1);
    core.refresh({home, 7}, 1);
    ASSERT_TRUE(core.read({home, 7}, &out, 1).ok());
    EXPECT_EQ(out, in);
  }
  EXPECT_EQ(core.view({0, 7}), region.data() + 7);
  EXPECT_EQ(core.view({1, 7}), nullptr);
  for (const Home home : {0u, 1u}) {
    std::array<std::byte, 3> bytes{std::byte{1}, std::byte{2}, static_cast<std::byte>(home)};
    const std::array<machine::DataPiece, 2> pieces{{{20, bytes.data(), 2}, {9, &bytes[2], 1}}};
    ASSERT_TRUE(core.write_pieces_through(home, pieces).ok());
    EXPECT_EQ(region[20], bytes[0]);
    EXPECT_EQ(region[21], bytes[1]);
    EXPECT_EQ(region[9], bytes[2]);
    region[21] = std::byte{7};
    core.renew_pieces(home, pieces);
    ASSERT_TRUE(core.read_pieces(home, pieces).ok());
    EXPECT_EQ(bytes[1], std::byte{7});
  }
}

// The block of home h starts at h * block, its data behind both sync blocks.
machine::Attachment attachment_to(const host::Segment& segment, Home self) {
  constexpr std::size_t block = 4096;
  machine::Attachment at;
  at.self = self;
  at.cores = 2;
  at.sync = segment.data();
  at.sync_bytes_per_home = block;
  for (std::size_t home = 0; home < 2; ++home) {
    machine::DataRegion region;
    region.memory = segment.data() + (2 + home) * block;
    region.bytes = block;
    at.data.push_back(region);
  }
  at.waiting = machine::WaitPolicy::for_host(2, 2);
  return at;
}

// Returns the data of the other side plus one, `rounds` times. False at the first wrong byte.
template <class C>
bool play(C& core, int rounds) {
  const Home other = 1 - core.self();
  const auto mine = core.word({core.self(), 2048});
  std::vector<std::uint8_t> bytes(1000);
  for (int i = 1; i <= rounds; ++i) {
    if (core.self() == 1 || i > 1) {
      const auto turn = static_cast<std::uint64_t>(core.self() == 1 ? i : i - 1);
      if (!core.wait_until(mine, [&](std::uint64_t v) { return v == turn; }).ok()) return false;
      core.refresh({core.self(), 3}, bytes.size());
      if (!core.read({core.self(), 3}, bytes.data(), bytes.size()).ok()) return false;
      for (const auto byte : bytes)
        if (byte != bytes[0]) return false;
    }
    std::memset(bytes.data(), bytes[0] + 1, bytes.size());
    if (!core.write_through({other, 3}, bytes.data(), bytes.size()).ok()) return false;
    core.drain();
    core.store(core.word({other, 2048}), static_cast<std::uint64_t>(i));
    core.notify(other);
  }
  return true;
}

TYPED_TEST(Flushed, PassesMessagesBetweenProcessesThroughAPool) {
  std::string path = "/dev/shm/flushed_test_XXXXXX";
  const int file = mkstemp(path.data());
  ASSERT_EQ(ftruncate(file, 1 << 20), 0);
  close(file);
  host::Segment segment;
  const Status made = host::Segment::create_in_pool(path, std::uint64_t{4} * 4096, segment);
  ASSERT_TRUE(made.ok()) << made.message();
  constexpr int rounds = 300;
  const pid_t child = fork();
  if (child == 0) {
    host::Segment peer;
    if (!host::Segment::attach(segment.name(), peer).ok()) _exit(2);
    TypeParam core(attachment_to(peer, 1));
    _exit(play(core, rounds) ? 0 : 1);
  }
  TypeParam core(attachment_to(segment, 0));
  EXPECT_TRUE(play(core, rounds));
  int state = 0;
  waitpid(child, &state, 0);
  EXPECT_TRUE(WIFEXITED(state) && WEXITSTATUS(state) == 0);
  unlink(path.c_str());
}

// ---- Which lines --------------------------------------------------------------------------------

// Ranges that begin and end at, before and behind the ends of lines, in each class of sizes.
template <class Body>
void each_range(std::size_t room, Body&& body) {
  for (const std::size_t begin : {0u, 1u, 63u, 64u, 70u})
    for (const std::size_t bytes : {1u, 2u, 63u, 64u, 65u, 128u, 129u, 1024u, 1025u, 40'000u})
      if (begin + bytes <= room) body(begin, bytes);
}

// This host's memory and that of another, which differ in every byte until something is published
// or refreshed.
template <class C>
class TwoHosts : public ::testing::Test {
 protected:
  static constexpr std::size_t room = 40'960;
  using Core = testing::DroppingCore<C::properties.native_atomics>;
  static constexpr std::byte here{0x11};
  static constexpr std::byte there{0x22};

  TwoHosts() : ensemble_({.cores = 1, .data_bytes = room}) {}
  Core& core() { return ensemble_.core(0); }
  testing::FarMemory& far() { return far_; }

  // The lines of [begin, begin + bytes) are alike on both sides, with the bytes of `from`.
  void expect_alike(std::size_t begin, std::size_t bytes, std::byte from) {
    for (std::size_t i = 0; i < room; ++i) {
      const bool inside = i / 64 >= begin / 64 && i / 64 <= (begin + bytes - 1) / 64;
      ASSERT_EQ(far_.get(i), inside ? from : there) << "byte " << i << " of the other host";
      ASSERT_EQ(*core().view({0, i}), inside ? from : here) << "byte " << i;
    }
  }
  void set_apart() {
    std::memset(core().view({0, 0}), static_cast<int>(here), room);
    for (std::size_t i = 0; i < room; ++i) far_.set(i, there);
  }

 private:
  machine::testing::Ensemble<Core> ensemble_;
  testing::FarMemory far_{core().view({0, 0}), room};
};
TYPED_TEST_SUITE(TwoHosts, Machines);

TYPED_TEST(TwoHosts, PublishBringsEveryLineOfTheRangeToMemory) {
  each_range(this->room, [&](std::size_t begin, std::size_t bytes) {
    SCOPED_TRACE(::testing::Message() << bytes << " bytes from " << begin);
    this->set_apart();
    this->core().publish({0, begin}, bytes);
    this->expect_alike(begin, bytes, this->here);
  });
}

TYPED_TEST(TwoHosts, RefreshShowsEveryLineOfTheRange) {
  each_range(this->room, [&](std::size_t begin, std::size_t bytes) {
    SCOPED_TRACE(::testing::Message() << bytes << " bytes from " << begin);
    this->set_apart();
    this->core().refresh({0, begin}, bytes);
    this->expect_alike(begin, bytes, this->there);
  });
}

TYPED_TEST(TwoHosts, PiecesAreReadAndWrittenEachInItsPlace) {
  this->set_apart();
  std::array<std::byte, 100> bytes{};
  for (std::size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<std::byte>(i);
  const std::vector<machine::DataPiece> pieces{{3, &bytes[0], 1},
                                               {8, &bytes[1], 8},
                                               {1, &bytes[9], 0},
                                               {0, &bytes[9], 2},
                                               {120, &bytes[11], 70}};
  ASSERT_TRUE(this->core().write_pieces_through(0, pieces).ok());
  this->core().drain();
  for (const auto& [at, local, n] : pieces)
    EXPECT_EQ(std::memcmp(this->core().view({0, at}), local, n), 0) << n << " bytes at " << at;
  EXPECT_EQ(*this->core().view({0, 2}), this->here);
  EXPECT_EQ(*this->core().view({0, 190}), this->here);
  const auto written = bytes;
  bytes.fill(std::byte{0});
  ASSERT_TRUE(this->core().read_pieces(0, pieces).ok());
  EXPECT_TRUE(std::equal(bytes.begin(), bytes.begin() + 81, written.begin()));
  EXPECT_EQ(bytes[81], std::byte{0});
}

// By the core that puts: the drain of another thread, which may come later, does not wait for them.
TYPED_TEST(TwoHosts, PutsOfSeveralThreadsAreDrainedAtOnce) {
  std::array<std::byte, 2> bytes{};
  const std::array<machine::DataPiece, 2> pieces{{{3, &bytes[0], 1}, {70, &bytes[1], 1}}};
  for (const std::size_t each : {0u, 1u}) {
    (void)this->far().drains();
    ASSERT_TRUE(this->core().write_through({0, 9}, bytes.data(), bytes.size()).ok());
    EXPECT_EQ(this->far().drains(), each);
    ASSERT_TRUE(this->core().write_pieces_through(0, pieces).ok());
    EXPECT_EQ(this->far().drains(), each);
    this->core().drain();
    EXPECT_EQ(this->far().drains(), 1u);
    this->core().several_threads();
  }
}

// The lines of all pieces and no others, each once: pieces of one line, of neighbouring lines, that
// go back, of no bytes, and far from the others.
TYPED_TEST(TwoHosts, PiecesAreRenewedWithTheirLinesOnly) {
  const std::vector<std::vector<machine::DataPiece>> lists = {
      {},
      {{70, nullptr, 0}},
      {{0, nullptr, 1}},
      {{63, nullptr, 2}},
      {{128, nullptr, 64}, {200, nullptr, 8}, {255, nullptr, 1}, {256, nullptr, 1}},
      {{640, nullptr, 8}, {0, nullptr, 0}, {768, nullptr, 8}, {64, nullptr, 8}, {130, nullptr, 64}},
      {{8, nullptr, 8}, {1000, nullptr, 3000}, {1100, nullptr, 1}, {5000, nullptr, 1}},
  };
  for (const auto& pieces : lists) {
    SCOPED_TRACE(::testing::Message() << "list " << &pieces - lists.data());
    std::vector<bool> touched(this->room / 64);
    for (const auto& [at, local, bytes] : pieces)
      for (std::size_t i = at; i < at + bytes; ++i) touched[i / 64] = true;
    this->set_apart();
    (void)this->far().lines();
    (void)this->far().dropped();
    this->core().renew_pieces(0, pieces);
    const auto lines = static_cast<std::size_t>(std::count(touched.begin(), touched.end(), true));
    EXPECT_EQ(this->far().lines(), lines) << "written back";
    EXPECT_EQ(this->far().dropped(), lines);
    for (std::size_t i = 0; i < this->room; ++i) {
      ASSERT_EQ(this->far().get(i), touched[i / 64] ? this->here : this->there) << "byte " << i;
      ASSERT_EQ(*this->core().view({0, i}), this->here) << "dropped in vain: byte " << i;
    }
  }
}

TYPED_TEST(TwoHosts, PublishWrittenBringsAllThatWasStored) {
  this->set_apart();
  this->core().publish_written(0);
  this->expect_alike(0, this->room, this->here);
}

// Those whose size class is not streamed.
TYPED_TEST(TwoHosts, WholeLinesThatAreCopiedAreWrittenBack) {
  flush::Policy by = testing::FarMemory::policy();
  by.stream_lines = {};
  each_range(this->room, [&](std::size_t begin, std::size_t bytes) {
    SCOPED_TRACE(::testing::Message() << bytes << " bytes at " << begin);
    this->set_apart();
    const std::vector<std::byte> source(bytes, std::byte{0x33});
    flush::write_through(by, this->core().view({0, begin}), source.data(), bytes);
    flush::drain();
    const std::size_t low = (begin + 63) / 64 * 64;
    const std::size_t high = std::max(low, (begin + bytes) / 64 * 64);
    for (std::size_t i = 0; i < this->room; ++i)
      ASSERT_EQ(this->far().get(i), i >= low && i < high ? source[0] : this->there) << "byte " << i;
    EXPECT_EQ(std::memcmp(this->core().view({0, begin}), source.data(), bytes), 0);
  });
}

TYPED_TEST(TwoHosts, AWordIsLoadedFromMemory) {
  this->set_apart();
  const auto* word = reinterpret_cast<const std::uint64_t*>(this->core().view({0, 72}));
  EXPECT_EQ(flush::load_word(testing::FarMemory::policy_that_drops(), word), 0x2222'2222'2222'2222);
}

// Lets the futex call fail as it does on memory that the kernel cannot sleep on.
bool forbid_futex() {
  sock_filter rules[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_futex, 0, 1),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EFAULT),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  };
  const sock_fprog program{sizeof rules / sizeof rules[0], rules};
  return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
         prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0;
}

TYPED_TEST(Flushed, WaitsByTimeWhereTheKernelCannotSleepOnTheMemory) {
  constexpr std::size_t block = 4096;
  void* memory =
      mmap(nullptr, 2 * block, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(memory, MAP_FAILED);
  machine::Attachment at;
  at.cores = 2;
  at.sync = static_cast<std::byte*>(memory);
  at.sync_bytes_per_home = block;
  at.waiting = {.polls = 10, .yields = 10, .yields_per_idle = 8, .sleep_us_max = 1000};
  const pid_t child = fork();
  if (child == 0) {
    if (!forbid_futex()) _exit(77);
    at.self = 1;
    TypeParam core(at);
    const bool good =
        core.wait_until(core.word({1, 2048}), [](std::uint64_t v) { return v == 5; }).ok();
    _exit(good ? 0 : 1);
  }
  TypeParam core(at);
  std::this_thread::sleep_for(std::chrono::milliseconds(30));
  core.store(core.word({1, 2048}), 5);
  core.notify(1);
  int state = 0;
  waitpid(child, &state, 0);
  munmap(memory, 2 * block);
  ASSERT_TRUE(WIFEXITED(state));
  if (WEXITSTATUS(state) == 77) GTEST_SKIP() << "no system call filter here";
  EXPECT_EQ(WEXITSTATUS(state), 0);
}

}  // namespace
}  // namespace tombolo::flushed
