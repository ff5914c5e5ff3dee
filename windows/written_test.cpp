// SPDX-License-Identifier: Apache-2.0
// The program's stores into a large region of its own are in memory, as another host sees it, after
// every call that must bring them there, although only written pages are published (EN5). The
// machine `flushed` on coherent caches would not show missing ones; far_memory.h does.
#include <gtest/gtest.h>

#include <memory>
#include <vector>

#include "backends/flushed/testing/far_memory.h"
#include "base/random.h"
#include "host/memory/page.h"
#include "windows/testing/process_on.h"

namespace tombolo::windows::testing {
namespace {

using flushed::testing::FarCore;
using flushed::testing::FarMemory;

using FarMachines =
    ::testing::Types<FarCore<machine::Atomics::full>, FarCore<machine::Atomics::none>>;

template <class C>
class WrittenTest : public ::testing::Test {};
TYPED_TEST_SUITE(WrittenTest, FarMachines, MachineNames);

constexpr std::size_t large = (1 << 20) + 100;

// Both regions as another host sees them; made before the processes store anything.
class FarRegions {
 public:
  void add(Process& p) {
    if (p.self() == 0)
      for (Home home = 0; home < p.processes(); ++home)
        far_.push_back(std::make_unique<FarMemory>(p.memory(home), large));
    p.barrier();
  }
  void drop(Process& p) {
    p.barrier();
    if (p.self() == 0) far_.clear();
    p.barrier();
  }
  FarMemory& of(Home home) { return *far_[home]; }

 private:
  std::vector<std::unique_ptr<FarMemory>> far_;
};

// Every process stores here and there, calls a function that publishes, and a peer looks whether
// all is there.
template <class C, class Call>
void check(const char* name, const EngineOptions& options, const Call& call) {
  FarRegions far;
  run_once_with_own_engine<C>(
      {.processes = 2, .bytes = large, .options = options}, {}, [&](Process& p) {
        SCOPED_TRACE(name);
        far.add(p);
        Random random(p.self() + 1);
        for (int round = 1; round <= 60; ++round) {
          // Few places, for some rounds many; the ends always.
          for (std::size_t i = round / 20 == 1 ? 2000 : random.below(8); i > 0; --i)
            p.store(random.below(large / 4) * 4, round);
          p.store(0, round);
          p.store(large - 4, round);
          call(p);
          p.barrier();
          EXPECT_EQ(far.of(p.right()).first_difference(), large) << "round " << round;
          p.barrier();
        }
        far.drop(p);
      });
}

TYPED_TEST(WrittenTest, FenceBringsAllStoresToMemory) {
  check<TypeParam>("fence", {}, [](Process& p) { p.fence({.no_succeed = true}); });
}

TYPED_TEST(WrittenTest, PostBringsAllStoresToMemory) {
  check<TypeParam>("post", {}, [](Process& p) {
    p.post({p.right()});
    p.start({p.right()});
    p.complete();
    p.wait();
  });
}

TYPED_TEST(WrittenTest, UnlockBringsAllStoresToMemory) {
  check<TypeParam>("unlock", {}, [](Process& p) {
    p.lock_shared(p.right());
    p.unlock(p.right());
  });
  check<TypeParam>("unlock_all", {}, [](Process& p) {
    p.lock_all();
    p.unlock_all();
  });
}

TYPED_TEST(WrittenTest, SyncBringsAllStoresToMemory) {
  check<TypeParam>("sync", {}, [](Process& p) { p.sync(); });
  check<TypeParam>("sync with threads", {.threads = true}, [](Process& p) { p.sync(); });
}

// Each stores into both regions.
TYPED_TEST(WrittenTest, SyncBringsStoresToPeersRegionsToMemory) {
#if defined(__SANITIZE_THREAD__)
  GTEST_SKIP()
      << "the emulated write-back of a line that another stores to is a race, as in hardware";
#endif
  FarRegions far;
  const EngineOptions options{.program_reads_peers = true};
  run_once_with_own_engine<TypeParam>(
      {.processes = 2, .bytes = large, .options = options}, {}, [&](Process& p) {
        far.add(p);
        Random random(p.self() + 1);
        for (int round = 1; round <= 40; ++round) {
          // Whole lines of its own.
          for (std::size_t i = random.below(8); i > 0; --i)
            p.store_at(static_cast<Home>(random.below(2)),
                       random.below(large / 128) * 128 + 64 * p.self(), round);
          p.sync();
          p.barrier();
          for (Home home = 0; home < 2; ++home) {
            EXPECT_EQ(far.of(home).first_difference(), large) << "round " << round;
          }
          p.barrier();
        }
        far.drop(p);
      });
}

// No more than the written pages: 0 stores one word, 1 nothing.
TYPED_TEST(WrittenTest, UnlockLeavesOutWhatWasNotWritten) {
  if (!host::WriteWatch::available().ok()) GTEST_SKIP() << host::WriteWatch::available().message();
  FarRegions far;
  run_once_with_own_engine<TypeParam>({.processes = 2, .bytes = large}, {}, [&](Process& p) {
    far.add(p);
    const auto epoch = [&] {
      p.lock_shared(p.right());
      p.unlock(p.right());
    };
    for (int round = 0; round < 6; ++round) epoch();
    (void)far.of(p.self()).lines();
    if (p.self() == 0) p.store(large / 2, 1);
    epoch();
    const std::size_t line = TypeParam::properties.line_bytes;
    const std::size_t end = (large % host::page_bytes() + line - 1) / line;
    const std::size_t page = host::page_bytes() / line;
    // The parts of pages at both ends (threads need not have regions at a page's start), and a
    // page.
    EXPECT_LE(far.of(p.self()).lines(), (p.self() == 0 ? page : 0) + page + end);
    far.drop(p);
  });
}

}  // namespace
}  // namespace tombolo::windows::testing
