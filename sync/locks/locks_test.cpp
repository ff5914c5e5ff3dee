// SPDX-License-Identifier: Apache-2.0
// Purpose: one validator for all readers-writer lock families on all machines: exclusion seen
// through protected data and through counters, lock-all, several targets at once, no deadlock,
// faults; and the bounds of those families that promise one.
// Thread safety: -
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <functional>
#include <thread>
#include <vector>

#include "base/random.h"
#include "machine/testing/ensemble.h"
#include "machine/testing/forwarding.h"
#include "sync/barriers/dissemination_barrier.h"
#include "sync/locks/bakery_lock.h"
#include "sync/locks/best_effort_lock.h"
#include "sync/locks/broken/hasty_reader_bias.h"
#include "sync/locks/fifo_lock.h"
#include "sync/locks/lock_kind.h"
#include "sync/locks/reader_bias.h"
#include "sync/locks/writer_preference_lock.h"
#include "sync/testing/cases.h"

namespace tombolo::sync {
namespace {

using machine::Home;
using machine::testing::Ensemble;
using std::chrono::milliseconds;
using std::chrono::seconds;
using testing::Deadline;
using testing::Obituary;
using testing::Record;

template <class M, template <class> class L>
struct Case {
  using Machine = M;
  using Locks = L<M>;
};
template <class M>
struct BestEffort : Case<M, BestEffortLocks> {
  static constexpr const char* name = "best_effort";
  static constexpr bool for_threads = true;
};
// Its bias comes back after a few reads, so that readers, writers and the bias meet often.
template <class Bias>
class Eager : public Bias {
 public:
  template <class C, class Layout>
  Eager(C& core, Layout layout, LockOptions options) : Bias(core, layout, soon(options)) {}

 private:
  static LockOptions soon(LockOptions options) {
    options.bias_after = 1;
    return options;
  }
};
// A core that is interrupted between its steps now and then, so that others come between a look and
// what follows from it.
template <class M>
class Restless : public machine::testing::Forwarding<M> {
  using Base = machine::testing::Forwarding<M>;

 public:
  explicit Restless(const machine::Attachment& at)
      : Base(at), random_(Random::stream(at.seed, at.self)) {}
  std::uint64_t load(typename M::Word word) {
    const std::uint64_t value = Base::load(word);
    if (random_.one_in(64)) std::this_thread::sleep_for(std::chrono::microseconds(20));
    return value;
  }

 private:
  Random random_;
};
// A core that calls a function before one of its steps, so that others come between these two.
template <class M>
class Stepped : public machine::testing::Forwarding<M> {
  using Base = machine::testing::Forwarding<M>;

 public:
  using Word = typename M::Word;
  using Base::Base;
  // The next step is the first.
  void before(int step, std::function<void()> others) {
    steps_left_ = step;
    others_ = std::move(others);
  }
  std::uint64_t load(Word word) { return next(), Base::load(word); }
  void store(Word word, std::uint64_t v) { next(), Base::store(word, v); }
  std::uint64_t fetch_add(Word word, std::uint64_t v) { return next(), Base::fetch_add(word, v); }
  std::uint64_t exchange(Word word, std::uint64_t v) { return next(), Base::exchange(word, v); }
  std::uint64_t compare_exchange(Word word, std::uint64_t expected, std::uint64_t desired) {
    return next(), Base::compare_exchange(word, expected, desired);
  }

 private:
  void next() {
    if (steps_left_ > 0 && --steps_left_ == 0) others_();
  }
  int steps_left_ = 0;
  std::function<void()> others_;
};
template <class M>
using EagerBias = Eager<ReaderBias<M, BestEffortLocks<M>>>;
template <class M>
struct BiasedBestEffort : Case<M, EagerBias> {
  static constexpr const char* name = "biased_best_effort";
  static constexpr bool for_threads = true;
};
template <class M>
struct RestlessBestEffort : Case<Restless<M>, EagerBias> {
  static constexpr const char* name = "restless_best_effort";
};
template <class M>
using HastyBias = Eager<broken::HastyReaderBias<M, BestEffortLocks<M>>>;
template <class M>
struct SteppedBestEffort : Case<Stepped<M>, EagerBias> {
  static constexpr const char* name = "stepped_best_effort";
};
template <class M>
struct HastyBestEffort : Case<Stepped<M>, HastyBias> {
  static constexpr const char* name = "hasty_best_effort";
};
template <class M>
struct WriterPreference : Case<M, WriterPreferenceLocks> {
  static constexpr const char* name = "writer_preference";
  static constexpr bool for_threads = true;
};
template <class M>
struct Fifo : Case<M, FifoLocks> {
  static constexpr const char* name = "fifo";
  static constexpr bool for_threads = true;
};
template <class M>
struct Bakery : Case<M, BakeryLocks> {
  static constexpr const char* name = "bakery";
  static constexpr bool for_threads = false;
};

// The locks of a window, and what the test itself knows about who is inside.
template <class Case>
class Locks : public ::testing::Test {
 protected:
  using Machine = typename Case::Machine;
  using Family = typename Case::Locks;

  void make(Home cores, machine::IdleHook* idle, std::uint64_t seed = 1) {
    machine::SyncLayout layout(Machine::reserved_sync_bytes(cores));
    at_ = Family::take(layout, cores);
    barrier_at_ = DisseminationBarrier<Machine>::take(layout, cores);
    inside_ = std::vector<Inside>(cores);
    ensemble_ = std::make_unique<Ensemble<Machine>>(
        machine::testing::EnsembleShape{.cores = cores,
                                        .sync_bytes = layout.bytes(),
                                        .data_bytes = Record<Machine>::bytes,
                                        .seed = seed,
                                        .idle = idle});
  }

  struct Inside {
    std::atomic<int> readers{0};
    std::atomic<int> writers{0};
    std::atomic<std::uint64_t> written{0};
  };

  void read_one(Machine& core, Home target) {
    Inside& inside = inside_[target];
    ++inside.readers;
    EXPECT_EQ(inside.writers, 0) << "target " << target;
    EXPECT_EQ(Record<Machine>(core, target).read(), inside.written) << "target " << target;
    EXPECT_EQ(inside.writers, 0) << "target " << target;
    --inside.readers;
  }
  void write_one(Machine& core, Home target, bool cached) {
    Inside& inside = inside_[target];
    EXPECT_EQ(inside.writers++, 0) << "target " << target;
    EXPECT_EQ(inside.readers, 0) << "target " << target;
    Record<Machine> record(core, target);
    const std::uint64_t number = record.read();
    EXPECT_EQ(number, inside.written) << "target " << target;
    record.write(number + 1, cached);
    ++inside.written;
    EXPECT_EQ(inside.readers, 0) << "target " << target;
    --inside.writers;
  }

  // Locks one target and uses its data; false after a fault.
  bool use_one(Machine& core, Family& locks, Random& random, Home target) {
    const Access access = random.one_in(3) ? Access::exclusive : Access::shared;
    if (Status s = locks.lock(access, target); !s.ok()) return fail(s);
    if (access == Access::shared)
      read_one(core, target);
    else
      write_one(core, target, random.one_in(2));
    locks.unlock(access, target);
    return true;
  }

  // Several targets at once: all shared in any order, or any access in ascending order. Mixed, the
  // two could wait for each other whatever the locks do.
  bool use_several(Machine& core, Family& locks, Random& random, bool ascending) {
    std::vector<Home> targets(core.cores());
    for (Home h = 0; h < core.cores(); ++h) targets[h] = h;
    for (std::size_t i = targets.size(); i-- > 1;)
      std::swap(targets[i], targets[random.below(i + 1)]);
    targets.resize(1 + random.below(targets.size()));
    if (ascending) std::sort(targets.begin(), targets.end());
    std::vector<Access> access;
    for (const Home target : targets) {
      access.push_back(ascending && random.one_in(2) ? Access::exclusive : Access::shared);
      if (Status s = locks.lock(access.back(), target); !s.ok()) return fail(s);
    }
    for (std::size_t i = 0; i < targets.size(); ++i) {
      if (access[i] == Access::shared)
        read_one(core, targets[i]);
      else
        write_one(core, targets[i], random.one_in(2));
      locks.unlock(access[i], targets[i]);
    }
    return true;
  }

  bool use_all(Machine& core, Family& locks) {
    if (Status s = locks.lock_all(); !s.ok()) return fail(s);
    for (Home target = 0; target < core.cores(); ++target) read_one(core, target);
    locks.unlock_all();
    return true;
  }

  bool fail(const Status& s) {
    ADD_FAILURE() << s.message();
    return false;
  }

  // Several threads of a core, each with targets of its own; exclusion by counters only.
  void use_by_threads(Machine& core, Family& locks, std::uint64_t seed, int rounds) {
    std::vector<std::thread> threads;
    for (Home target = 0; target < core.cores(); ++target)
      threads.emplace_back([&, target] {
        Random random = Random::stream(seed + target, core.self());
        Inside& inside = inside_[target];
        for (int i = 0; i < rounds; ++i) {
          const Access access = random.one_in(2) ? Access::exclusive : Access::shared;
          if (Status s = locks.lock(access, target); !s.ok()) return (void)fail(s);
          auto& mine = access == Access::shared ? inside.readers : inside.writers;
          const int before = mine++;
          EXPECT_TRUE(access == Access::shared || before == 0) << "target " << target;
          EXPECT_EQ(access == Access::shared ? inside.writers : inside.readers, 0) << target;
          if (random.one_in(8)) std::this_thread::yield();
          --mine;
          locks.unlock(access, target);
        }
      });
    for (std::thread& thread : threads) thread.join();
  }

  void count_all(Family& locks) {
    if (Status s = locks.lock_all(); !s.ok()) return (void)fail(s);
    for (Inside& inside : inside_) ++inside.readers;
    for (Inside& inside : inside_) EXPECT_EQ(inside.writers, 0);
    for (Inside& inside : inside_) --inside.readers;
    locks.unlock_all();
  }

  // What a core does in a random schedule.
  struct Mix {
    int steps = 0;
    std::uint64_t lock_all_one_in = 0;  // 0: never
    std::uint64_t several_one_in = 0;
    bool ascending = true;  // the several
    bool backoff = true;
  };
  void run(Home cores, std::uint64_t seed, const Mix& mix) {
    Deadline deadline(seconds(20));
    make(cores, &deadline, seed);
    ensemble_->run([&](Machine& core) {
      Family locks(core, at_, LockOptions{.backoff = mix.backoff});
      Random random = Random::stream(seed, core.self());
      for (int step = 0; step < mix.steps && !::testing::Test::HasFailure(); ++step) {
        bool ok = true;
        if (random.one_in(mix.lock_all_one_in))
          ok = use_all(core, locks);
        else if (random.one_in(mix.several_one_in))
          ok = use_several(core, locks, random, mix.ascending);
        else
          ok = use_one(core, locks, random, static_cast<Home>(random.below(core.cores())));
        if (!ok) return;
      }
    });
  }

  typename Family::Layout at_;
  typename DisseminationBarrier<Machine>::Layout barrier_at_;
  std::vector<Inside> inside_;
  std::unique_ptr<Ensemble<Machine>> ensemble_;
};

using Cases =
    testing::Product<AllMachines, BestEffort, BiasedBestEffort, WriterPreference, Fifo, Bakery>;
TYPED_TEST_SUITE(Locks, Cases, testing::CaseNames);

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

TYPED_TEST(Locks, ThreadsOfOneCoreDoNotWaitForEachOther) {
  using Core = typename TestFixture::Machine;
  if constexpr (!TypeParam::for_threads ||
                Core::properties.native_atomics != machine::Atomics::full) {
    GTEST_SKIP() << "for one thread only";
  } else {
    constexpr int rounds = steps<TypeParam> / 10;
    Deadline deadline(seconds(20));
    this->make(3, &deadline, 5);
    this->ensemble_->run([&](Core& core) {
      typename TestFixture::Family locks(core, this->at_, LockOptions{.threads = true});
      this->use_by_threads(core, locks, 7, rounds);  // no lock-all yet, but for who is ahead
      if (core.self() != 0) return this->use_by_threads(core, locks, 8, rounds);
      for (int i = 0; i < rounds; ++i) this->count_all(locks);
    });
  }
}

// A thread that waits, in the queue or in the gate, keeps no other from a lock that is free.
TYPED_TEST(Locks, AThreadGetsAFreeLockWhileAnotherOfItsCoreWaits) {
  using Core = typename TestFixture::Machine;
  if constexpr (!TypeParam::for_threads ||
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
TYPED_TEST(Locks, WaitingReadersEnterTogether) {
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

// G4: readers that hold one target and ask for another, with writers waiting for both.
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

// A core dies with an exclusive lock; everybody who waits gets the hook's fault.
TYPED_TEST(Locks, FaultOfTheHookEndsEveryWait) {
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
  if (std::string(TypeParam::name) == "bakery")
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
using BestEffortCases = testing::Product<AllMachines, BestEffort, BiasedBestEffort>;
using WriterPreferenceCases = testing::Product<AllMachines, WriterPreference>;
using FifoCases = testing::Product<AllMachines, Fifo>;
TYPED_TEST_SUITE(BestEffortOnly, BestEffortCases, testing::CaseNames);
TYPED_TEST_SUITE(WriterPreferenceOnly, WriterPreferenceCases, testing::CaseNames);
TYPED_TEST_SUITE(FifoOnly, FifoCases, testing::CaseNames);

// E4: the locks are usable after a fault. Pauses long enough for every machine to run the hook.
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

// W5: a reader that asks while a writer is next does not enter before it.
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
      // The writer counts its entry before it leaves: who enters after it has let it pass.
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

// O2: cores enter in the order in which they joined.
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
    // Core 1 waits in any case, so that the others find somebody to overtake.
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

// The bias

template <class Case>
class Biased : public Locks<Case> {};
using BiasedCases = testing::Product<AllMachines, BiasedBestEffort>;
TYPED_TEST_SUITE(Biased, BiasedCases, testing::CaseNames);

// While nobody writes, the target's own words are left alone, and a core may announce more locks
// than it has room for.
TYPED_TEST(Biased, ReadersAnnounceThemselvesUntilSomebodyWrites) {
  using C = typename TestFixture::Machine;
  using L = typename TestFixture::Family;
  Deadline deadline(seconds(20));
  this->make(8, &deadline);
  L reader(this->ensemble_->core(0), this->at_, {});
  L writer(this->ensemble_->core(1), this->at_, {.backoff = false});
  C& core = this->ensemble_->core(1);
  const auto counted = [&](Home target) {
    return core.load(core.word({target, this->at_.locks.target}));
  };
  for (int round = 0; round < 2; ++round) {
    for (int read = 0; read < 8; ++read) {  // `bias_after` times the number of cores
      ASSERT_TRUE(reader.lock(Access::shared, 3).ok());
      EXPECT_EQ(counted(3), 1u);
      reader.unlock(Access::shared, 3);
    }
    ASSERT_TRUE(reader.lock(Access::shared, 3).ok());
    EXPECT_EQ(counted(3), 0u);
    reader.unlock(Access::shared, 3);
    ASSERT_TRUE(writer.lock(Access::exclusive, 3).ok());
    writer.unlock(Access::exclusive, 3);
  }
  for (Home target = 0; target < 8; ++target)
    for (int read = 0; read < 8; ++read) {
      ASSERT_TRUE(reader.lock(Access::shared, target).ok());
      reader.unlock(Access::shared, target);
    }
  for (Home target = 0; target < 8; ++target) ASSERT_TRUE(reader.lock(Access::shared, target).ok());
  std::uint64_t at_targets = 0;
  for (Home target = 0; target < 8; ++target) at_targets += counted(target);
  EXPECT_EQ(at_targets, 4u);
  for (Home target = 0; target < 8; ++target) reader.unlock(Access::shared, target);
  for (Home target = 0; target < 8; ++target) {
    ASSERT_TRUE(writer.lock(Access::exclusive, target).ok());
    writer.unlock(Access::exclusive, target);
  }
}

// B3: a writer that gave up has not made the announced reader invisible to the next one.
TYPED_TEST(Biased, AReaderStaysInAfterAWriterGaveUp) {
  using L = typename TestFixture::Family;
  Obituary obituary(seconds(20));
  obituary.announce(1);
  this->make(2, &obituary);
  L reader(this->ensemble_->core(0), this->at_, {});
  L writer(this->ensemble_->core(1), this->at_, {});
  for (int read = 0; read < 2; ++read) {
    ASSERT_TRUE(reader.lock(Access::shared, 0).ok());
    reader.unlock(Access::shared, 0);
  }
  ASSERT_TRUE(reader.lock(Access::shared, 0).ok());
  for (int round = 0; round < 2; ++round)
    EXPECT_FALSE(writer.lock(Access::exclusive, 0).ok()) << round;
  reader.unlock(Access::shared, 0);
  this->ensemble_->core(0).fence();  // the withdrawn announcement is in memory
  EXPECT_TRUE(writer.lock(Access::exclusive, 0).ok());
  writer.unlock(Access::exclusive, 0);
}

// One writer, two readers, whose steps meet in many ways.
template <class Case>
class RestlessBias : public Locks<Case> {
 protected:
  using C = typename Case::Machine;

  // How often a reader and the writer were in at once.
  int violations(std::uint64_t seed) {
    Deadline deadline(seconds(20));
    this->make(3, &deadline, seed);
    std::atomic<int> readers{0}, writers{0}, both{0};
    this->ensemble_->run([&](C& core) {
      typename Case::Locks locks(core, this->at_, {.backoff = false});
      for (int step = 0; step < steps; ++step) {
        const Access access = core.self() == 0 ? Access::exclusive : Access::shared;
        std::atomic<int>& mine = core.self() == 0 ? writers : readers;
        if (Status s = locks.lock(access, 2); !s.ok()) return (void)this->fail(s);
        ++mine;
        if (readers != 0 && writers != 0) ++both;
        --mine;
        locks.unlock(access, 2);
      }
    });
    return both;
  }

  static constexpr int seeds = 10;

 private:
  static constexpr int steps = testing::scaled<C>(4000);
};
using RestlessCases = testing::Product<AllMachines, RestlessBestEffort>;
TYPED_TEST_SUITE(RestlessBias, RestlessCases, testing::CaseNames);

TYPED_TEST(RestlessBias, KeepsReadersAndWriterApart) {
  for (std::uint64_t seed = 0; seed < this->seeds; ++seed)
    EXPECT_EQ(this->violations(seed), 0) << "seed " << seed;
}

// A writer that comes between any two steps of a reader, one after the other: how often both are
// in.
template <class Case>
class SteppedBias : public Locks<Case> {
 protected:
  int violations() {
    int both = 0;
    for (int step = 1; step <= steps; ++step) both += both_are_in(step) ? 1 : 0;
    EXPECT_GT(writers_in_, 0);
    EXPECT_LT(writers_in_, steps) << "a reader takes more steps than the writer comes before";
    return both;
  }

 private:
  bool both_are_in(int step) {
    Obituary obituary(seconds(20));  // neither waits for the other: they are one thread
    obituary.announce(1);
    this->make(2, &obituary);
    typename Case::Locks reader(this->ensemble_->core(0), this->at_, {});
    typename Case::Locks writer(this->ensemble_->core(1), this->at_, {});
    for (int read = 0; read < 2; ++read) {  // the second one sets the bias
      EXPECT_TRUE(reader.lock(Access::shared, 0).ok());
      reader.unlock(Access::shared, 0);
    }
    bool written = false;
    this->ensemble_->core(0).before(step, [&] {
      written = writer.lock(Access::exclusive, 0).ok();
      writers_in_ += written ? 1 : 0;
    });
    return reader.lock(Access::shared, 0).ok() && written;
  }

  static constexpr int steps = 32;
  int writers_in_ = 0;
};
template <class Case>
class BrokenBias : public SteppedBias<Case> {};
using SteppedCases = testing::Product<AllMachines, SteppedBestEffort>;
using BrokenCases = testing::Product<AllMachines, HastyBestEffort>;
TYPED_TEST_SUITE(SteppedBias, SteppedCases, testing::CaseNames);
TYPED_TEST_SUITE(BrokenBias, BrokenCases, testing::CaseNames);

TYPED_TEST(SteppedBias, KeepsReaderAndWriterApart) { EXPECT_EQ(this->violations(), 0); }

TYPED_TEST(BrokenBias, IsFoundByAWriterBetweenTwoSteps) { EXPECT_GT(this->violations(), 0); }

}  // namespace
}  // namespace tombolo::sync
