// SPDX-License-Identifier: Apache-2.0
// Purpose: any readers-writer lock family on any machine, chosen at run time: a test of the locks
// alone is compiled once, and not for each of some fifty combinations. And a fixture that knows the
// cores inside.
//
//   class Locks : public LocksTest {};
//   INSTANTIATE_TEST_SUITE_P(On, Locks,
//                            ::testing::ValuesIn(lock_cases(EveryCase::On<AnyMachines>())),
//                            name_of_case);
//   TEST_P(Locks, Admit) {
//     run_each({.cores = 2}, [](LockUser& user) { EXPECT_TRUE(user.lock_all().ok()); ... });
//   }
//
// Thread safety: a LockUser is used by the thread of its core; the locks of one that was made with
// LockOptions::threads by several.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <functional>
#include <ostream>
#include <string>
#include <thread>
#include <type_traits>
#include <vector>

#include "base/random.h"
#include "sync/barriers/dissemination_barrier.h"
#include "sync/testing/lock_cases.h"

namespace tombolo::sync::testing {

// A core and its locks, its record at each home, and a barrier with the other cores.
class LockUser {
 public:
  virtual ~LockUser() = default;
  virtual Home self() const = 0;
  virtual Home cores() const = 0;
  virtual Status pause(std::uint64_t ns) = 0;
  virtual Status lock(Access access, Home target) = 0;
  virtual void unlock(Access access, Home target) = 0;
  virtual Status lock_all() = 0;
  virtual void unlock_all() = 0;
  virtual Status arrive_and_wait() = 0;
  virtual std::uint64_t read_record(Home home) = 0;
  virtual void write_record(Home home, std::uint64_t number, bool cached) = 0;
};
using UserBody = std::function<void(LockUser&)>;

struct LockWorld {
  Home cores = 2;
  machine::IdleHook* idle = nullptr;
  std::uint64_t seed = 1;
  LockOptions options = {};  // of each core's locks
};

// A family on a machine.
struct LockCase {
  std::string name;
  LockFamilyTraits traits;
  bool full_atomics;  // the machine's
  int steps;          // of a test that takes about as long on every machine
  // Calls the body for each core, on a thread for each or as the machine runs them.
  void (*run_each)(const LockWorld&, const UserBody&);
  machine::Offset (*sync_bytes)(Home cores);  // per core
};
inline void PrintTo(const LockCase& lock_case, std::ostream* out) { *out << lock_case.name; }
inline std::string name_of_case(const ::testing::TestParamInfo<LockCase>& info) {
  return info.param.name;
}

template <class Case>
class UserOf final : public LockUser {
  using Machine = typename Case::Machine;
  using Family = typename Case::Locks;

 public:
  struct Layout {
    typename Family::Layout locks;
    typename DisseminationBarrier<Machine>::Layout barrier;
  };
  static Layout take(machine::SyncLayout& layout, Home cores) {
    return {Family::take(layout, cores), DisseminationBarrier<Machine>::take(layout, cores)};
  }

  UserOf(Machine& core, Layout at, LockOptions options)
      : core_(core), locks_(core, at.locks, options), barrier_(core, at.barrier) {}
  Home self() const override { return core_.self(); }
  Home cores() const override { return core_.cores(); }
  Status pause(std::uint64_t ns) override { return core_.pause(ns); }
  Status lock(Access access, Home target) override { return locks_.lock(access, target); }
  void unlock(Access access, Home target) override { locks_.unlock(access, target); }
  Status lock_all() override { return locks_.lock_all(); }
  void unlock_all() override { locks_.unlock_all(); }
  Status arrive_and_wait() override { return barrier_.arrive_and_wait(); }
  std::uint64_t read_record(Home home) override { return Record<Machine>(core_, home).read(); }
  void write_record(Home home, std::uint64_t number, bool cached) override {
    Record<Machine>(core_, home).write(number, cached);
  }

 private:
  Machine& core_;
  Family locks_;
  DisseminationBarrier<Machine> barrier_;
};

template <class Case>
LockCase lock_case() {
  using Machine = typename Case::Machine;
  return {.name = CaseNames::GetName<Case>(0),
          .traits = Case::traits,
          .full_atomics = Machine::properties.native_atomics == machine::Atomics::full,
          .steps = scaled<Machine>(4000),
          .run_each =
              [](const LockWorld& world, const UserBody& body) {
                machine::SyncLayout layout(Machine::reserved_sync_bytes(world.cores));
                const auto at = UserOf<Case>::take(layout, world.cores);
                Ensemble<Machine>({.cores = world.cores,
                                   .sync_bytes = layout.bytes(),
                                   .data_bytes = Record<Machine>::bytes,
                                   .seed = world.seed,
                                   .idle = world.idle})
                    .run([&](Machine& core) {
                      UserOf<Case> user(core, at, world.options);
                      body(user);
                    });
              },
          .sync_bytes =
              [](Home cores) {
                machine::SyncLayout layout(0);
                Case::Locks::take(layout, cores);
                return layout.bytes();
              }};
}

// Of a list of cases as `CasesOf<...>::On<Machines>` makes it.
template <class... Cases>
std::vector<LockCase> lock_cases(::testing::Types<Cases...>) {
  return {lock_case<Cases>()...};
}

// The test's own record of the cores inside.
class LocksTest : public ::testing::TestWithParam<LockCase> {
 protected:
  struct Inside {
    std::atomic<int> readers{0};
    std::atomic<int> writers{0};
    std::atomic<std::uint64_t> written{0};
  };

  void read_one(LockUser& user, Home target) {
    Inside& inside = inside_[target];
    ++inside.readers;
    EXPECT_EQ(inside.writers, 0) << "target " << target;
    EXPECT_EQ(user.read_record(target), inside.written) << "target " << target;
    EXPECT_EQ(inside.writers, 0) << "target " << target;
    --inside.readers;
  }
  void write_one(LockUser& user, Home target, bool cached) {
    Inside& inside = inside_[target];
    EXPECT_EQ(inside.writers++, 0) << "target " << target;
    EXPECT_EQ(inside.readers, 0) << "target " << target;
    const std::uint64_t number = user.read_record(target);
    EXPECT_EQ(number, inside.written) << "target " << target;
    user.write_record(target, number + 1, cached);
    ++inside.written;
    EXPECT_EQ(inside.readers, 0) << "target " << target;
    --inside.writers;
  }

  // Locks one target and uses its data; false after an error.
  bool use_one(LockUser& user, Random& random, Home target) {
    const Access access = random.one_in(3) ? Access::exclusive : Access::shared;
    if (Status s = user.lock(access, target); !s.ok()) return fail(s);
    if (access == Access::shared)
      read_one(user, target);
    else
      write_one(user, target, random.one_in(2));
    user.unlock(access, target);
    return true;
  }

  // Several targets at once: all shared in any order, or any access in ascending order. Mixed, the
  // two could wait for each other whatever the locks do.
  bool use_several(LockUser& user, Random& random, bool ascending) {
    std::vector<Home> targets(user.cores());
    for (Home h = 0; h < user.cores(); ++h) targets[h] = h;
    for (std::size_t i = targets.size(); i-- > 1;)
      std::swap(targets[i], targets[random.below(i + 1)]);
    targets.resize(1 + random.below(targets.size()));
    if (ascending) std::sort(targets.begin(), targets.end());
    std::vector<Access> access;
    for (const Home target : targets) {
      access.push_back(ascending && random.one_in(2) ? Access::exclusive : Access::shared);
      if (Status s = user.lock(access.back(), target); !s.ok()) return fail(s);
    }
    for (std::size_t i = 0; i < targets.size(); ++i) {
      if (access[i] == Access::shared)
        read_one(user, targets[i]);
      else
        write_one(user, targets[i], random.one_in(2));
      user.unlock(access[i], targets[i]);
    }
    return true;
  }

  bool use_all(LockUser& user) {
    if (Status s = user.lock_all(); !s.ok()) return fail(s);
    for (Home target = 0; target < user.cores(); ++target) read_one(user, target);
    user.unlock_all();
    return true;
  }

  bool fail(const Status& s) {
    ADD_FAILURE() << s.message();
    return false;
  }

  // Several threads of a core, each with targets of its own; exclusion by counters only.
  void use_by_threads(LockUser& user, std::uint64_t seed, int rounds) {
    std::vector<std::thread> threads;
    for (Home target = 0; target < user.cores(); ++target)
      threads.emplace_back([&, target] {
        Random random = Random::stream(seed + target, user.self());
        Inside& inside = inside_[target];
        for (int i = 0; i < rounds; ++i) {
          const Access access = random.one_in(2) ? Access::exclusive : Access::shared;
          if (Status s = user.lock(access, target); !s.ok()) return (void)fail(s);
          auto& mine = access == Access::shared ? inside.readers : inside.writers;
          const int before = mine++;
          EXPECT_TRUE(access == Access::shared || before == 0) << "target " << target;
          EXPECT_EQ(access == Access::shared ? inside.writers : inside.readers, 0) << target;
          if (random.one_in(8)) std::this_thread::yield();
          --mine;
          user.unlock(access, target);
        }
      });
    for (std::thread& thread : threads) thread.join();
  }

  void count_all(LockUser& user) {
    if (Status s = user.lock_all(); !s.ok()) return (void)fail(s);
    for (Inside& inside : inside_) ++inside.readers;
    for (Inside& inside : inside_) EXPECT_EQ(inside.writers, 0);
    for (Inside& inside : inside_) --inside.readers;
    user.unlock_all();
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
    run_each({.cores = cores, .seed = seed, .options = {.backoff = mix.backoff}},
             [&](LockUser& user) {
               Random random = Random::stream(seed, user.self());
               for (int step = 0; step < mix.steps && !HasFailure(); ++step) {
                 bool ok = true;
                 if (random.one_in(mix.lock_all_one_in))
                   ok = use_all(user);
                 else if (random.one_in(mix.several_one_in))
                   ok = use_several(user, random, mix.ascending);
                 else
                   ok = use_one(user, random, static_cast<Home>(random.below(user.cores())));
                 if (!ok) return;
               }
             });
  }

  // Calls the body for each core; a deadlock ends in an error, of a Deadline if the world has no
  // hook of its own.
  void run_each(LockWorld world, const UserBody& body) {
    inside_ = std::vector<Inside>(world.cores);
    Deadline deadline(std::chrono::seconds(20));
    if (world.idle == nullptr) world.idle = &deadline;
    GetParam().run_each(world, body);
  }

  int steps() const { return GetParam().steps; }

 private:
  std::vector<Inside> inside_;
};

}  // namespace tombolo::sync::testing
