// SPDX-License-Identifier: Apache-2.0
// Purpose: the common parts of the tests of readers-writer locks: the families as cases, and a
// fixture that knows the cores inside.
// Thread safety: -
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <memory>
#include <string_view>
#include <thread>
#include <vector>

#include "base/random.h"
#include "machine/testing/ensemble.h"
#include "sync/barriers/dissemination_barrier.h"
#include "sync/locks/families.h"
#include "sync/testing/cases.h"

namespace tombolo::sync::testing {

using machine::Home;
using machine::testing::Ensemble;

// A family on a machine.
template <class M, class F>
struct Case {
  using Machine = M;
  using Locks = typename F::template Locks<M>;
  static constexpr LockFamilyTraits traits = F::traits;
  static constexpr std::string_view name = traits.name;
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
template <class Family>
struct EagerlyBiased : BiasedFamily<Family> {
  template <machine::Core C>
  using Locks = Eager<typename BiasedFamily<Family>::template Locks<C>>;
};

// Product<Machines, ...> of these families.
template <class... Families>
struct CasesOf {
  template <class Family>
  struct Of {
    template <class M>
    using On = Case<M, Family>;
  };
  template <class Machines>
  using On = Product<Machines, Of<Families>::template On...>;
};
// Of all that are listed, also with the bias.
using EveryCase = WithBias<EagerlyBiased>::type::apply<CasesOf>;

// The locks of a window, and the test's own record of the cores inside.
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

  // Locks one target and uses its data; false after an error.
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

  // The actions of a core in a random schedule.
  struct Mix {
    int steps = 0;
    std::uint64_t lock_all_one_in = 0;  // 0: never
    std::uint64_t several_one_in = 0;
    bool ascending = true;  // the several
    bool backoff = true;
  };
  void run(Home cores, std::uint64_t seed, const Mix& mix) {
    Deadline deadline(std::chrono::seconds(20));
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

}  // namespace tombolo::sync::testing
