// SPDX-License-Identifier: Apache-2.0
// Purpose: tests of ReaderBias alone; the tests of all families (locks_test.cpp) run it as well.
// Thread safety: -
#include "sync/locks/reader_bias.h"

#include <gtest/gtest.h>

#include <atomic>
#include <functional>
#include <thread>

#include "base/random.h"
#include "machine/testing/forwarding.h"
#include "sync/locks/broken/hasty_reader_bias.h"
#include "sync/testing/lock_cases.h"

namespace tombolo::sync {
namespace {

using machine::Home;
using std::chrono::seconds;
using testing::Case;
using testing::Deadline;
using testing::Eager;
using testing::EagerlyBiased;
using testing::Locks;
using testing::Obituary;

// A core that is interrupted between its steps now and then, so that others come between a look and
// the steps that follow from it.
template <class M>
class Restless : public machine::testing::Forwarding<M> {
  using Base = machine::testing::Forwarding<M>;

 public:
  explicit Restless(const machine::AttachmentOf<M>& at)
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
struct RestlessBestEffort : Case<Restless<M>, EagerlyBiased<BestEffortFamily>> {
  static constexpr const char* name = "restless_best_effort";
};
struct HastyFamily : BestEffortFamily {
  template <machine::Core C>
  using Locks = Eager<broken::HastyReaderBias<C, BestEffortLocks<C>>>;
};
template <class M>
struct SteppedBestEffort : Case<Stepped<M>, EagerlyBiased<BestEffortFamily>> {
  static constexpr const char* name = "stepped_best_effort";
};
template <class M>
struct HastyBestEffort : Case<Stepped<M>, HastyFamily> {
  static constexpr const char* name = "hasty_best_effort";
};
template <class Case>
class Biased : public Locks<Case> {};
using BiasedCases = testing::CasesOf<EagerlyBiased<BestEffortFamily>>::On<AllMachines>;
TYPED_TEST_SUITE(Biased, BiasedCases, testing::CaseNames);

// While no core writes, the target's own words are left alone, and a core may announce more locks
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

// RB3: a writer that gave up has not made the announced reader invisible to the next one.
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
        ASSERT_TRUE(locks.lock(access, 2).ok());
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
