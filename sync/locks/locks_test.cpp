// SPDX-License-Identifier: Apache-2.0
// Purpose: one validator for all readers-writer lock families on all machines: exclusion seen
// through protected data and through counters, lock-all, several targets at once, no deadlock,
// errors; and the bounds of those families that promise one.
// Thread safety: -
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <thread>
#include <vector>

#include "sync/barriers/dissemination_barrier.h"
#include "sync/testing/lock_cases.h"

namespace tombolo::sync {
namespace {

using machine::Home;
using machine::testing::Ensemble;
using std::chrono::milliseconds;
using std::chrono::seconds;
using testing::Deadline;
using testing::Locks;
using testing::Obituary;
using testing::Record;
using Cases = testing::EveryCase::On<testing::AnyMachines>;
TYPED_TEST_SUITE(Locks, Cases, testing::CaseNames);

// Tests that need cores to be threads.
template <class Case>
class ThreadedLocks : public Locks<Case> {};
using ThreadedCases = testing::EveryCase::On<AllMachines>;
TYPED_TEST_SUITE(ThreadedLocks, ThreadedCases, testing::CaseNames);

template <class Case>
constexpr int steps = testing::scaled<typename Case::Machine>(4000);

TYPED_TEST(Locks, ExcludeOnOneTargetEach) {
  this->run(2, 1, {.steps = steps<TypeParam>});
  this->run(3, 2, {.steps = steps<TypeParam> / 2});
}

TYPED_TEST(Locks, ExcludeWithManyCoresAndNoBackoff) {
  this->run(8, 3, {.steps = steps<TypeParam> / 10, .backoff = false});
  this->run(8, 4, {.steps = steps<TypeParam> / 10});
}

TYPED_TEST(ThreadedLocks, ThreadsOfOneCoreDoNotWaitForEachOther) {
  using Core = typename TestFixture::Machine;
  if constexpr (!TypeParam::traits.threads ||
                Core::properties.native_atomics != machine::Atomics::full) {
    GTEST_SKIP() << "for one thread only";
  } else {
    constexpr int rounds = steps<TypeParam> / 10;
    Deadline deadline(seconds(20));
    this->make(3, &deadline, 5);
    this->ensemble_->run([&](Core& core) {
      typename TestFixture::Family locks(core, this->at_, LockOptions{.threads = true});
      this->use_by_threads(core, locks, 7, rounds);  // no lock-all yet, but of cores that are ahead
      if (core.self() != 0) return this->use_by_threads(core, locks, 8, rounds);
      for (int i = 0; i < rounds; ++i) this->count_all(locks);
    });
  }
}

// A thread that waits, in the queue or in the gate, keeps no other from a lock that is free.
TYPED_TEST(ThreadedLocks, AThreadGetsAFreeLockWhileAnotherOfItsCoreWaits) {
  using Core = typename TestFixture::Machine;
  if constexpr (!TypeParam::traits.threads ||
                Core::properties.native_atomics != machine::Atomics::full) {
    GTEST_SKIP() << "for one thread only";
  } else {
    Deadline deadline(seconds(20));
    this->make(2, &deadline, 6);
    std::atomic<bool> held{false};
    std::atomic<bool> done{false};
    this->ensemble_->run([&](Core& core) {
      typename TestFixture::Family locks(core, this->at_, LockOptions{.threads = true});
      if (core.self() == 0) {
        EXPECT_TRUE(locks.lock(Access::exclusive, 0).ok());
        held = true;
        while (!done && !::testing::Test::HasFailure()) EXPECT_TRUE(core.pause(5000).ok());
        return locks.unlock(Access::exclusive, 0);
      }
      while (!held) EXPECT_TRUE(core.pause(5000).ok());
      std::thread waiter([&] {
        EXPECT_TRUE(locks.lock(Access::exclusive, 0).ok());
        locks.unlock(Access::exclusive, 0);
      });
      std::this_thread::sleep_for(milliseconds(20));
      for (const Access access : {Access::exclusive, Access::shared}) {
        EXPECT_TRUE(locks.lock(access, 1).ok());
        locks.unlock(access, 1);
      }
      done = true;
      waiter.join();
    });
  }
}

TYPED_TEST(Locks, SeveralTargetsAtOnce) {
  for (const bool ascending : {true, false}) {
    this->run(3, 5, {.steps = steps<TypeParam> / 6, .several_one_in = 2, .ascending = ascending});
    this->run(6, 6, {.steps = steps<TypeParam> / 40, .several_one_in = 2, .ascending = ascending});
  }
}

// Also late, when exclusive locks have long been taken without a look at lock-all.
TYPED_TEST(Locks, LockAllExcludesExclusive) {
  this->run(2, 7, {.steps = steps<TypeParam> / 2, .lock_all_one_in = 5});
  for (std::uint64_t seed = 10; seed < 16; ++seed)
    this->run(3, seed, {.steps = steps<TypeParam> / 20, .lock_all_one_in = 60});
}

TYPED_TEST(Locks, Everything) {
  for (std::uint64_t seed = 20; seed < 24; ++seed)
    this->run(5, seed,
              {.steps = steps<TypeParam> / 10,
               .lock_all_one_in = 8,
               .several_one_in = 4,
               .ascending = seed % 2 == 0});
}

// Nothing but the locks themselves, so that their own steps meet: two cores lock two targets of
// their own, two cores all targets.
TYPED_TEST(Locks, ExclusiveAndLockAllInQuickTurn) {
  using C = typename TestFixture::Machine;
  using L = typename TestFixture::Family;
  Deadline deadline(seconds(60));
  this->make(4, &deadline);
  std::atomic<int> exclusive{0};
  this->ensemble_->run([&](C& core) {
    L locks(core, this->at_, {});
    const Home self = core.self();
    for (int step = 0; step < steps<TypeParam> * 4 && !::testing::Test::HasFailure(); ++step) {
      if (self >= 2) {
        ASSERT_TRUE(locks.lock_all().ok());
        EXPECT_EQ(exclusive, 0);
        locks.unlock_all();
        continue;
      }
      ASSERT_TRUE(locks.lock(Access::exclusive, self).ok());
      ++exclusive;
      const bool both = step % 4 == 0;
      if (both) {
        ASSERT_TRUE(locks.lock(Access::exclusive, self + 2).ok());
        locks.unlock(Access::exclusive, self + 2);
      }
      --exclusive;
      locks.unlock(Access::exclusive, self);
    }
  });
}

// Readers that waited for the same writer share the lock after it.
TYPED_TEST(ThreadedLocks, WaitingReadersEnterTogether) {
  using C = typename TestFixture::Machine;
  using L = typename TestFixture::Family;
  Deadline deadline(seconds(60));
  this->make(4, &deadline);
  std::atomic<int> asking{0};
  std::atomic<int> inside{0};
  this->ensemble_->run([&](C& core) {
    L locks(core, this->at_, {});
    const auto pause_until = [&](auto&& ready) {
      while (!ready()) ASSERT_TRUE(core.pause(5000).ok());
    };
    for (int round = 1; round <= 5; ++round) {
      if (core.self() == 0) {
        ASSERT_TRUE(locks.lock(Access::exclusive, 1).ok());
        ++asking;
        pause_until([&] { return asking == 4 * round; });
        std::this_thread::sleep_for(milliseconds(5));  // time to join the queue
        locks.unlock(Access::exclusive, 1);
      } else {
        pause_until([&] { return asking > 4 * (round - 1); });
        ++asking;
        ASSERT_TRUE(locks.lock(Access::shared, 1).ok());
        ++inside;
        pause_until([&] { return inside >= 3 * round; });
        locks.unlock(Access::shared, 1);
      }
      pause_until([&] { return inside == 3 * round; });
    }
  });
}

// GL4: readers that hold one target and ask for another, with writers waiting for both.
TYPED_TEST(Locks, CrossingReadersPassWaitingWriters) {
  using C = typename TestFixture::Machine;
  using L = typename TestFixture::Family;
  Deadline deadline(seconds(20));
  this->make(4, &deadline);
  this->ensemble_->run([&](C& core) {
    L locks(core, this->at_, {});
    const bool reader = core.self() < 2;
    const Home first = core.self() % 2;
    for (int step = 0; step < steps<TypeParam> / 4; ++step) {
      for (const Home target :
           reader ? std::vector<Home>{first, 1 - first} : std::vector<Home>{first})
        ASSERT_TRUE(locks.lock(reader ? Access::shared : Access::exclusive, target).ok());
      locks.unlock(reader ? Access::shared : Access::exclusive, first);
      if (reader) locks.unlock(Access::shared, 1 - first);
    }
  });
}

// Shared locks are shared, also with lock-all, and exclusive locks of different targets coexist.
TYPED_TEST(Locks, AdmitWhatDoesNotConflict) {
  using C = typename TestFixture::Machine;
  using L = typename TestFixture::Family;
  Deadline deadline(seconds(20));
  this->make(3, &deadline);
  this->ensemble_->run([&](C& core) {
    L locks(core, this->at_, {});
    DisseminationBarrier<C> barrier(core, this->barrier_at_);
    const auto meet = [&] { ASSERT_TRUE(barrier.arrive_and_wait().ok()); };
    ASSERT_TRUE(locks.lock(Access::shared, 1).ok());
    meet();
    locks.unlock(Access::shared, 1);
    meet();
    for (int round = 0; round < 2; ++round) {
      ASSERT_TRUE(locks.lock(Access::exclusive, core.self()).ok());
      meet();
      locks.unlock(Access::exclusive, core.self());
      meet();
      ASSERT_TRUE(core.self() == 0 ? locks.lock(Access::shared, 2).ok() : locks.lock_all().ok());
      meet();
      if (core.self() == 0)
        locks.unlock(Access::shared, 2);
      else
        locks.unlock_all();
      meet();
    }
  });
}

// A core dies with an exclusive lock; every waiting core gets the hook's error.
TYPED_TEST(ThreadedLocks, FaultOfTheHookEndsEveryWait) {
  using C = typename TestFixture::Machine;
  using L = typename TestFixture::Family;
  for (const bool lock_all_used : {false, true}) {
    Obituary obituary(seconds(20));
    std::atomic<int> asking{0};
    this->make(4, &obituary);
    this->ensemble_->run([&](C& core) {
      L locks(core, this->at_, {});
      DisseminationBarrier<C> barrier(core, this->barrier_at_);
      if (lock_all_used) {
        ASSERT_TRUE(locks.lock_all().ok());
        locks.unlock_all();
      }
      ASSERT_TRUE(barrier.arrive_and_wait().ok());
      if (core.self() == 1) {
        ASSERT_TRUE(locks.lock(Access::exclusive, 2).ok());
      }
      ASSERT_TRUE(barrier.arrive_and_wait().ok());
      ++asking;
      if (core.self() == 1) {
        while (asking < 4) std::this_thread::yield();
        std::this_thread::sleep_for(milliseconds(20));
        obituary.announce(1);
        return;
      }
      Status s;
      if (core.self() == 0) s = locks.lock(Access::shared, 2);
      if (core.self() == 2) s = locks.lock(Access::exclusive, 2);
      if (core.self() == 3) s = locks.lock_all();
      EXPECT_EQ(s.code(), Code::process_failed) << "core " << core.self();
      EXPECT_EQ(s.rank(), 1);
    });
  }
}

TYPED_TEST(Locks, MemoryPerCore) {
  using L = typename TestFixture::Family;
  const auto bytes = [](Home cores) {
    machine::SyncLayout layout(0);
    L::take(layout, cores);
    return layout.bytes();
  };
  // Exclusion by loads and stores alone takes n words (Burns and Lynch, 1993).
  if constexpr (!TypeParam::traits.atomics)
    EXPECT_LE(bytes(1000), 1000 * 16 + 64 * 4);
  else
    EXPECT_EQ(bytes(2), bytes(1000));
}

// Families with one promise each

template <class Case>
class BestEffortOnly : public Locks<Case> {};
template <class Case>
class WriterPreferenceOnly : public Locks<Case> {};
template <class Case>
class FifoOnly : public Locks<Case> {};
using BestEffortCases =
    testing::CasesOf<BestEffortFamily, testing::EagerlyBiased<BestEffortFamily>>::On<AllMachines>;
using WriterPreferenceCases = testing::CasesOf<WriterPreferenceFamily>::On<AllMachines>;
using FifoCases = testing::CasesOf<FifoFamily>::On<AllMachines>;
TYPED_TEST_SUITE(BestEffortOnly, BestEffortCases, testing::CaseNames);
TYPED_TEST_SUITE(WriterPreferenceOnly, WriterPreferenceCases, testing::CaseNames);
TYPED_TEST_SUITE(FifoOnly, FifoCases, testing::CaseNames);

// BT4: the locks are usable after an error. Pauses long enough for every machine to run the hook.
TYPED_TEST(BestEffortOnly, FaultLeavesNothingBehind) {
  using L = typename TestFixture::Family;
  Obituary obituary(seconds(20));
  obituary.announce(1);
  this->make(2, &obituary);
  L holder(this->ensemble_->core(1), this->at_, {});
  L other(this->ensemble_->core(0), this->at_, {});
  for (int round = 0; round < 2; ++round) {
    ASSERT_TRUE(holder.lock(Access::exclusive, 0).ok());
    EXPECT_FALSE(other.lock(Access::shared, 0).ok());
    EXPECT_FALSE(other.lock(Access::exclusive, 0).ok());
    EXPECT_FALSE(other.lock_all().ok());
    holder.unlock(Access::exclusive, 0);
    ASSERT_TRUE(other.lock(Access::exclusive, 0).ok());
    other.unlock(Access::exclusive, 0);
    ASSERT_TRUE(other.lock_all().ok());
    EXPECT_FALSE(holder.lock(Access::exclusive, 0).ok());
    other.unlock_all();
  }
}

// BT3: the core stays registered for as long as it has any exclusive lock, whatever becomes of
// others that it takes meanwhile.
TYPED_TEST(BestEffortOnly, ALockInsideAnotherLeavesThatHeld) {
  using L = typename TestFixture::Family;
  Obituary obituary(seconds(20));
  obituary.announce(1);
  this->make(2, &obituary);
  L nested(this->ensemble_->core(0), this->at_, {});
  L other(this->ensemble_->core(1), this->at_, {});
  // From now on exclusive locks register.
  ASSERT_TRUE(other.lock_all().ok());
  other.unlock_all();
  for (const Home outer : {0u, 1u, 0u}) {
    const Home inner = 1 - outer;
    ASSERT_TRUE(nested.lock(Access::exclusive, outer).ok());
    ASSERT_TRUE(nested.lock(Access::exclusive, inner).ok());
    nested.unlock(Access::exclusive, inner);
    EXPECT_FALSE(other.lock_all().ok()) << "after the inner one is free";
    ASSERT_TRUE(other.lock(Access::shared, inner).ok());
    EXPECT_FALSE(nested.lock(Access::exclusive, inner).ok());
    other.unlock(Access::shared, inner);
    EXPECT_FALSE(other.lock_all().ok()) << "after the inner one was not to be had";
    nested.unlock(Access::exclusive, outer);
    ASSERT_TRUE(other.lock_all().ok());
    EXPECT_FALSE(nested.lock(Access::exclusive, outer).ok());
    other.unlock_all();
  }
}

// WP5: a reader that asks while a writer is next does not enter before it.
TYPED_TEST(WriterPreferenceOnly, NoReaderOvertakesAWaitingWriter) {
  using C = typename TestFixture::Machine;
  using L = typename TestFixture::Family;
  Deadline deadline(seconds(20));
  this->make(8, &deadline);
  std::atomic<std::uint64_t> asked{0}, entered{0}, entries{0}, overtaken{0};
  std::atomic<bool> over{false};
  std::vector<std::uint64_t> passed;
  this->ensemble_->run([&](C& core) {
    L locks(core, this->at_, {});
    if (core.self() == 0) {
      for (int trial = 0; trial < std::max(10, steps<TypeParam> / 20); ++trial) {
        std::this_thread::sleep_for(std::chrono::microseconds(200));
        ++asked;
        const std::uint64_t before = entries;
        if (!locks.lock(Access::exclusive, 3).ok()) break;
        passed.push_back(entries - before);
        ++entered;
        locks.unlock(Access::exclusive, 3);
      }
      over = true;
      return;
    }
    const auto state = core.word({3, this->at_.target.words});
    while (!over) {
      const std::uint64_t asking = asked;
      const bool waits = WriterPreferenceTargets<C>::writer_waits(core.load(state));
      ASSERT_TRUE(locks.lock(Access::shared, 3).ok());
      ++entries;
      // The writer counts its entry before it leaves: a reader that enters after it has let it
      // pass.
      if (waits && asking == asked && entered < asking) ++overtaken;
      std::this_thread::yield();
      locks.unlock(Access::shared, 3);
    }
  });
  EXPECT_EQ(overtaken, 0u);
  ASSERT_FALSE(passed.empty());
  std::sort(passed.begin(), passed.end());
  ::testing::Test::RecordProperty("median_entries_while_writer_asks",
                                  std::to_string(passed[passed.size() / 2]));
  ::testing::Test::RecordProperty("most_entries_while_writer_asks", std::to_string(passed.back()));
}

// FQ2: cores enter in the order in which they joined.
TYPED_TEST(FifoOnly, EntersInOrderOfArrival) {
  using C = typename TestFixture::Machine;
  using L = typename TestFixture::Family;
  constexpr Home cores = 6;
  Deadline deadline(seconds(20));
  for (std::uint64_t seed = 0; seed < 8; ++seed) {
    this->make(cores, &deadline, seed);
    std::atomic<Home> turn{0};
    std::atomic<int> entries{0};
    std::vector<int> order(cores);
    std::vector<Access> access(cores, Access::exclusive);
    Random random(seed);
    // Core 1 waits in any case, so that the others find a core to overtake.
    access[0] = seed % 2 == 0 ? Access::shared : Access::exclusive;
    for (Home core = 2; core < cores; ++core)
      access[core] = random.one_in(2) ? Access::shared : Access::exclusive;
    this->ensemble_->run([&](C& core) {
      const Home self = core.self();
      L locks(core, this->at_, {});
      const auto word = core.word({2, this->at_.target.word});
      const auto pause_until = [&](auto&& ready) {
        while (!ready()) ASSERT_TRUE(core.pause(5000).ok());
      };
      pause_until([&] { return turn == self; });
      ASSERT_TRUE(locks.lock(access[self], 2).ok());
      order[self] = entries++;
      // Core 0 holds the lock until it has seen all others join, one after the other.
      for (Home next = 1; self == 0 && next < cores; ++next) {
        turn = next;
        pause_until([&] { return FifoGroupLock<C>::last_of(core.load(word)) == next; });
      }
      locks.unlock(access[self], 2);
    });
    for (Home a = 0; a < cores; ++a)
      for (Home b = a + 1; b < cores; ++b)
        if (access[a] == Access::exclusive || access[b] == Access::exclusive) {
          EXPECT_LT(order[a], order[b]) << "cores " << a << " and " << b << ", seed " << seed;
        }
  }
}

}  // namespace
}  // namespace tombolo::sync
