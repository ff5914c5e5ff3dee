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

#include "sync/testing/any_lock.h"
#include "sync/testing/lock_cases.h"

namespace tombolo::sync {
namespace {

using machine::Home;
using machine::testing::Ensemble;
using std::chrono::milliseconds;
using std::chrono::seconds;
using testing::Deadline;
using testing::lock_cases;
using testing::LockUser;
using testing::Obituary;

class Locks : public testing::LocksTest {};
INSTANTIATE_TEST_SUITE_P(
    On, Locks, ::testing::ValuesIn(lock_cases(testing::EveryCase::On<testing::AnyMachines>())),
    testing::name_of_case);

// Tests that need cores to be threads.
class ThreadedLocks : public testing::LocksTest {};
INSTANTIATE_TEST_SUITE_P(On, ThreadedLocks,
                         ::testing::ValuesIn(lock_cases(testing::EveryCase::On<AllMachines>())),
                         testing::name_of_case);

TEST_P(Locks, ExcludeOnOneTargetEach) {
  run(2, 1, {.steps = steps()});
  run(3, 2, {.steps = steps() / 2});
}

TEST_P(Locks, ExcludeWithManyCoresAndNoBackoff) {
  run(8, 3, {.steps = steps() / 10, .backoff = false});
  run(8, 4, {.steps = steps() / 10});
}

TEST_P(ThreadedLocks, ThreadsOfOneCoreDoNotWaitForEachOther) {
  if (!GetParam().traits.threads || !GetParam().full_atomics) GTEST_SKIP() << "for one thread only";
  const int rounds = steps() / 10;
  run_each({.cores = 3, .seed = 5, .options = {.threads = true}}, [&](LockUser& user) {
    use_by_threads(user, 7, rounds);  // no lock-all yet, but of cores that are ahead
    if (user.self() != 0) return use_by_threads(user, 8, rounds);
    for (int i = 0; i < rounds; ++i) count_all(user);
  });
}

// A thread that waits, in the queue or in the gate, keeps no other from a lock that is free.
TEST_P(ThreadedLocks, AThreadGetsAFreeLockWhileAnotherOfItsCoreWaits) {
  if (!GetParam().traits.threads || !GetParam().full_atomics) GTEST_SKIP() << "for one thread only";
  std::atomic<bool> held{false};
  std::atomic<bool> done{false};
  run_each({.cores = 2, .seed = 6, .options = {.threads = true}}, [&](LockUser& user) {
    if (user.self() == 0) {
      EXPECT_TRUE(user.lock(Access::exclusive, 0).ok());
      held = true;
      while (!done && !::testing::Test::HasFailure()) EXPECT_TRUE(user.pause(5000).ok());
      return user.unlock(Access::exclusive, 0);
    }
    while (!held) EXPECT_TRUE(user.pause(5000).ok());
    std::thread waiter([&] {
      EXPECT_TRUE(user.lock(Access::exclusive, 0).ok());
      user.unlock(Access::exclusive, 0);
    });
    std::this_thread::sleep_for(milliseconds(20));
    for (const Access access : {Access::exclusive, Access::shared}) {
      EXPECT_TRUE(user.lock(access, 1).ok());
      user.unlock(access, 1);
    }
    done = true;
    waiter.join();
  });
}

TEST_P(Locks, SeveralTargetsAtOnce) {
  for (const bool ascending : {true, false}) {
    run(3, 5, {.steps = steps() / 6, .several_one_in = 2, .ascending = ascending});
    run(6, 6, {.steps = steps() / 40, .several_one_in = 2, .ascending = ascending});
  }
}

// Also late, when exclusive locks have long been taken without a look at lock-all.
TEST_P(Locks, LockAllExcludesExclusive) {
  run(2, 7, {.steps = steps() / 2, .lock_all_one_in = 5});
  for (std::uint64_t seed = 10; seed < 16; ++seed)
    run(3, seed, {.steps = steps() / 20, .lock_all_one_in = 60});
}

TEST_P(Locks, Everything) {
  for (std::uint64_t seed = 20; seed < 24; ++seed)
    run(5, seed,
        {.steps = steps() / 10,
         .lock_all_one_in = 8,
         .several_one_in = 4,
         .ascending = seed % 2 == 0});
}

// Nothing but the locks themselves, so that their own steps meet: two cores lock two targets of
// their own, two cores all targets.
TEST_P(Locks, ExclusiveAndLockAllInQuickTurn) {
  Deadline deadline(seconds(60));
  std::atomic<int> exclusive{0};
  run_each({.cores = 4, .idle = &deadline}, [&](LockUser& user) {
    const Home self = user.self();
    for (int step = 0; step < steps() * 4 && !::testing::Test::HasFailure(); ++step) {
      if (self >= 2) {
        ASSERT_TRUE(user.lock_all().ok());
        EXPECT_EQ(exclusive, 0);
        user.unlock_all();
        continue;
      }
      ASSERT_TRUE(user.lock(Access::exclusive, self).ok());
      ++exclusive;
      const bool both = step % 4 == 0;
      if (both) {
        ASSERT_TRUE(user.lock(Access::exclusive, self + 2).ok());
        user.unlock(Access::exclusive, self + 2);
      }
      --exclusive;
      user.unlock(Access::exclusive, self);
    }
  });
}

// Readers that waited for the same writer share the lock after it.
TEST_P(ThreadedLocks, WaitingReadersEnterTogether) {
  Deadline deadline(seconds(60));
  std::atomic<int> asking{0};
  std::atomic<int> inside{0};
  run_each({.cores = 4, .idle = &deadline}, [&](LockUser& user) {
    const auto pause_until = [&](auto&& ready) {
      while (!ready()) ASSERT_TRUE(user.pause(5000).ok());
    };
    for (int round = 1; round <= 5; ++round) {
      if (user.self() == 0) {
        ASSERT_TRUE(user.lock(Access::exclusive, 1).ok());
        ++asking;
        pause_until([&] { return asking == 4 * round; });
        std::this_thread::sleep_for(milliseconds(5));  // time to join the queue
        user.unlock(Access::exclusive, 1);
      } else {
        pause_until([&] { return asking > 4 * (round - 1); });
        ++asking;
        ASSERT_TRUE(user.lock(Access::shared, 1).ok());
        ++inside;
        pause_until([&] { return inside >= 3 * round; });
        user.unlock(Access::shared, 1);
      }
      pause_until([&] { return inside == 3 * round; });
    }
  });
}

// GL4: readers that hold one target and ask for another, with writers waiting for both.
TEST_P(Locks, CrossingReadersPassWaitingWriters) {
  run_each({.cores = 4}, [&](LockUser& user) {
    const bool reader = user.self() < 2;
    const Home first = user.self() % 2;
    for (int step = 0; step < steps() / 4; ++step) {
      for (const Home target :
           reader ? std::vector<Home>{first, 1 - first} : std::vector<Home>{first})
        ASSERT_TRUE(user.lock(reader ? Access::shared : Access::exclusive, target).ok());
      user.unlock(reader ? Access::shared : Access::exclusive, first);
      if (reader) user.unlock(Access::shared, 1 - first);
    }
  });
}

// Shared locks are shared, also with lock-all, and exclusive locks of different targets coexist.
TEST_P(Locks, AdmitWhatDoesNotConflict) {
  run_each({.cores = 3}, [&](LockUser& user) {
    const auto meet = [&] { ASSERT_TRUE(user.arrive_and_wait().ok()); };
    ASSERT_TRUE(user.lock(Access::shared, 1).ok());
    meet();
    user.unlock(Access::shared, 1);
    meet();
    for (int round = 0; round < 2; ++round) {
      ASSERT_TRUE(user.lock(Access::exclusive, user.self()).ok());
      meet();
      user.unlock(Access::exclusive, user.self());
      meet();
      ASSERT_TRUE(user.self() == 0 ? user.lock(Access::shared, 2).ok() : user.lock_all().ok());
      meet();
      if (user.self() == 0)
        user.unlock(Access::shared, 2);
      else
        user.unlock_all();
      meet();
    }
  });
}

// A core dies with an exclusive lock; every waiting core gets the hook's error.
TEST_P(ThreadedLocks, FaultOfTheHookEndsEveryWait) {
  for (const bool lock_all_used : {false, true}) {
    Obituary obituary(seconds(20));
    std::atomic<int> asking{0};
    run_each({.cores = 4, .idle = &obituary}, [&](LockUser& user) {
      if (lock_all_used) {
        ASSERT_TRUE(user.lock_all().ok());
        user.unlock_all();
      }
      ASSERT_TRUE(user.arrive_and_wait().ok());
      if (user.self() == 1) {
        ASSERT_TRUE(user.lock(Access::exclusive, 2).ok());
      }
      ASSERT_TRUE(user.arrive_and_wait().ok());
      ++asking;
      if (user.self() == 1) {
        while (asking < 4) std::this_thread::yield();
        std::this_thread::sleep_for(milliseconds(20));
        obituary.announce(1);
        return;
      }
      Status s;
      if (user.self() == 0) s = user.lock(Access::shared, 2);
      if (user.self() == 2) s = user.lock(Access::exclusive, 2);
      if (user.self() == 3) s = user.lock_all();
      EXPECT_EQ(s.code(), Code::process_failed) << "core " << user.self();
      EXPECT_EQ(s.rank(), 1);
    });
  }
}

TEST_P(Locks, MemoryPerCore) {
  const auto bytes = GetParam().sync_bytes;
  // Exclusion by loads and stores alone takes n words (Burns and Lynch, 1993).
  if (!GetParam().traits.atomics)
    EXPECT_LE(bytes(1000), 1000 * 16 + 64 * 4);
  else
    EXPECT_EQ(bytes(2), bytes(1000));
}

// Families with one promise each

template <class Case>
constexpr int steps = testing::scaled<typename Case::Machine>(4000);

template <class Case>
class BestEffortOnly : public testing::Locks<Case> {};
template <class Case>
class GatedOnly : public testing::Locks<Case> {};
template <class Case>
class WriterPreferenceOnly : public testing::Locks<Case> {};
template <class Case>
class FifoOnly : public testing::Locks<Case> {};
using BestEffortCases =
    testing::CasesOf<BestEffortFamily, testing::EagerlyBiased<BestEffortFamily>>::On<AllMachines>;
using GatedCases = testing::CasesOf<WriterPreferenceFamily, FifoFamily>::On<AllMachines>;
using WriterPreferenceCases = testing::CasesOf<WriterPreferenceFamily>::On<AllMachines>;
using FifoCases = testing::CasesOf<FifoFamily>::On<AllMachines>;
TYPED_TEST_SUITE(BestEffortOnly, BestEffortCases, testing::CaseNames);
TYPED_TEST_SUITE(GatedOnly, GatedCases, testing::CaseNames);
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

// GL1: a core that frees one of its exclusive locks keeps lock-all waiting by the others.
TYPED_TEST(GatedOnly, ALockInsideAnotherLeavesTheGateTaken) {
  using L = typename TestFixture::Family;
  Obituary obituary(seconds(20));
  obituary.announce(1);
  this->make(2, &obituary);
  L nested(this->ensemble_->core(0), this->at_, {});
  L other(this->ensemble_->core(1), this->at_, {});
  // From now on exclusive locks enter the gate.
  ASSERT_TRUE(other.lock_all().ok());
  other.unlock_all();
  ASSERT_TRUE(nested.lock(Access::exclusive, 0).ok());
  ASSERT_TRUE(nested.lock(Access::exclusive, 1).ok());
  nested.unlock(Access::exclusive, 1);
  EXPECT_FALSE(other.lock_all().ok());
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
