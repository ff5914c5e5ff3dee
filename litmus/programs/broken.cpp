// SPDX-License-Identifier: Apache-2.0
#include "litmus/explorer/sleeper.h"
#include "litmus/programs/barrier_program.h"
#include "litmus/programs/counter_program.h"
#include "litmus/programs/omitting.h"
#include "litmus/programs/protocols.h"
#include "litmus/programs/registry.h"
#include "litmus/programs/scripts.h"
#include "litmus/programs/watched_program.h"
#include "sync/barriers/centralized_barrier.h"
#include "sync/barriers/dissemination_barrier.h"
#include "sync/broken/hasty_watched_word.h"
#include "sync/broken/uncounted_watched_word.h"
#include "sync/locks/broken/forgetful_sleeping_mutex.h"
#include "sync/locks/broken/hasty_reader_bias.h"
#include "sync/locks/broken/unmarked_sleeping_mutex.h"

namespace tombolo::litmus {
namespace {

using NoPublish = Omitting<Explored, Omit::publish>;
using NoRefresh = Omitting<Explored, Omit::refresh>;
using NoDrain = Omitting<Explored, Omit::drain>;
using NoWait = Omitting<Explored, Omit::wait>;
// The bakery's doorway has two fences.
using NoFirstFence = Omitting<Explored, Omit::fence, 2, 0>;
using NoSecondFence = Omitting<Explored, Omit::fence, 2, 1>;
using NoAtomics = Divided<Explored>;
using NoNotify = Omitting<Explored, Omit::notify>;
using NoWakeUp = Omitting<ExploredSleeper<>, Omit::wake_sleepers>;
using DividedSleeper = Divided<ExploredSleeper<>>;

// For ExploredLoadsStores, whose bakery calls the fences of its base.
template <unsigned Which>
class BaseWithoutFence : public ExploredBase {
 public:
  using ExploredBase::ExploredBase;
  void fence() {
    if (count_++ % 3 != Which) ExploredBase::fence();
  }

 private:
  unsigned count_ = 0;
};
template <unsigned Which>
using BakeryWithoutFence = machine::AtomicsByBakery<BaseWithoutFence<Which>>;

template <class C>
using Hasty = FamilyLocks<C, sync::broken::HastyReaderBias<C, sync::BestEffortLocks<C>>>;

class List {
 public:
  void add(const std::string& name, const std::string& about, machine::Home cores,
           std::function<std::unique_ptr<Program>(machine::Home)> make) {
    list_.push_back({.name = "broken/" + name,
                     .about = about,
                     .broken = true,
                     .cores = cores,
                     .make = std::move(make)});
  }
  template <class C, template <class> class Locks>
  void lock(const std::string& name, const std::string& about, Script (*script)(machine::Home),
            Writing writing = Writing::cached, machine::Home cores = 2) {
    add(name, about, cores, [=](machine::Home n) -> std::unique_ptr<Program> {
      return std::make_unique<SectionProgram<C, Locks<C>>>(script(n), writing);
    });
  }
  // Twins that break every lock that uses atomics, and every user of a lock.
  template <template <class> class Locks>
  void twins_of_lock(const std::string& name) {
    lock<NoAtomics, Locks>(name + "/divided-atomics", "atomics are a load and a store", writers);
    lock<NoPublish, Locks>(name + "/no-publish", "the section does not publish", writers);
    lock<NoRefresh, Locks>(name + "/no-refresh", "the section does not refresh", writers);
    lock<NoDrain, Locks>(name + "/no-drain", "the section does not drain", writers,
                         Writing::through);
  }
  template <class C, class Barrier>
  void barrier(const std::string& name, const std::string& about) {
    add(name, about, 2, [](machine::Home n) -> std::unique_ptr<Program> {
      return std::make_unique<BarrierProgram<C, Barrier>>(n, 2);
    });
  }
  template <class C, class Protocol>
  void epochs(const std::string& name, const std::string& about, machine::Home cores,
              std::vector<Epoch> (*among)(machine::Home)) {
    add(name, about, cores, [among](machine::Home n) -> std::unique_ptr<Program> {
      return std::make_unique<EpochProgram<C, Protocol>>(n, among(n));
    });
  }
  template <class C>
  void counter(const std::string& name, const std::string& about, bool with_flag) {
    add(name, about, 2, [=](machine::Home n) -> std::unique_ptr<Program> {
      return std::make_unique<CounterProgram<C>>(n, 1, with_flag);
    });
  }
  template <class C, class Watched = sync::WatchedWord<C>>
  void watched(const std::string& name, const std::string& about) {
    add("watched-word/" + name, about, 2, [](machine::Home n) -> std::unique_ptr<Program> {
      return std::make_unique<WatchedProgram<C, Watched>>(n);
    });
  }
  std::vector<ExploredProgram> take() { return std::move(list_); }

 private:
  std::vector<ExploredProgram> list_;
};

void add_locks(List& list) {
  sync::EveryLockFamily::for_each([&]<class Family>() {
    if constexpr (Family::traits.atomics)
      list.twins_of_lock<LocksOf<Family>::template On>(std::string(Family::traits.name));
  });
  list.twins_of_lock<Mcs>("mcs");
  list.twins_of_lock<SpinMutexes>("spin-mutex");
  list.lock<NoWait, LocksOf<sync::WriterPreferenceFamily>::On>("writer-preference/no-wait",
                                                               "waits end at once", writers);
  list.lock<NoNotify, LocksOf<sync::WriterPreferenceFamily>::On>(
      "writer-preference/no-notify", "wakes no core that it gives the lock to (R6)", writers);
  list.lock<NoNotify, Mcs>("mcs/no-notify", "wakes no core that it gives the lock to (R6)", writers,
                           Writing::through);
  list.lock<NoFirstFence, BakeryMutex>("bakery-mutex/no-first-fence",
                                       "looks at the numbers before it is seen choosing", writers);
  list.lock<NoSecondFence, BakeryMutex>("bakery-mutex/no-second-fence",
                                        "looks whether others wait before its number is seen",
                                        writers);
  list.lock<Explored, Hasty>("biased-best-effort/hasty",
                             "the reader does not look again at the bias",
                             [](machine::Home cores) -> Script {
                               Script script = readers_and_writer(cores);
                               script[0].push_back(shared0);
                               return script;
                             });
}

template <class C>
using Forgetful = SleepingMutexes<C, sync::broken::ForgetfulSleepingMutex<C>>;
template <class C>
using Unmarked = SleepingMutexes<C, sync::broken::UnmarkedSleepingMutex<C>>;

void add_sleeps(List& list) {
  using Sleeper = ExploredSleeper<>;
  list.lock<DividedSleeper, SleepingMutexesOf>("sleeping-mutex/divided-atomics",
                                               "atomics are a load and a store", writers);
  list.lock<NoWakeUp, SleepingMutexesOf>("sleeping-mutex/no-wake-up",
                                         "a release wakes no core that sleeps", writers);
  list.lock<Sleeper, Unmarked>("sleeping-mutex/unmarked", "cores sleep without a mark", writers);
  list.lock<Sleeper, Forgetful>("sleeping-mutex/forgetful",
                                "a woken core forgets that others sleep", writers_once,
                                Writing::through, 3);
  list.watched<NoWakeUp>("no-wake-up", "a change wakes no core that sleeps");
  list.watched<Sleeper, sync::broken::HastyWatchedWord<Sleeper>>(
      "hasty", "a change looks for sleepers before it is made");
  list.watched<Sleeper, sync::broken::UncountedWatchedWord<Sleeper>>(
      "uncounted", "sleepers count themselves after their last look");
}

void add_epochs(List& list) {
  list.epochs<Explored, CounterOnly<Explored>>(
      "counter-only-target", "Open MPI 1.7.5 to 1.8 (000 figure 3.6): posts are counted", 3,
      one_origin_two_targets);
  list.epochs<NoWait, TriggerOnly<NoWait>>("active-target/no-wait", "waits end at once", 2, ring);
  list.epochs<NoDrain, TriggerOnly<NoDrain>>("active-target/no-drain", "complete without drain", 2,
                                             ring);
  list.epochs<NoNotify, TriggerOnly<NoNotify>>("active-target/no-notify",
                                               "wakes neither origin nor target (R6)", 2, ring);
  list.epochs<NoRefresh, TriggerOnly<NoRefresh>>("active-target/no-refresh",
                                                 "the target does not refresh after wait", 2, ring);
  list.epochs<NoAtomics, TriggerOnly<NoAtomics>>("active-target/divided-atomics",
                                                 "posts are a load and a store", 3, many_targets);
}

void add_others(List& list) {
  list.barrier<NoWait, sync::DisseminationBarrier<NoWait>>("dissemination-barrier/no-wait",
                                                           "waits end at once");
  list.barrier<NoNotify, sync::DisseminationBarrier<NoNotify>>("dissemination-barrier/no-notify",
                                                               "wakes no core (R6)");
  list.barrier<NoPublish, sync::DisseminationBarrier<NoPublish>>(
      "dissemination-barrier/no-publish", "arrives without having published");
  list.barrier<NoRefresh, sync::DisseminationBarrier<NoRefresh>>("dissemination-barrier/no-refresh",
                                                                 "does not refresh afterwards");
  list.barrier<NoAtomics, sync::CentralizedBarrier<NoAtomics>>(
      "centralized-barrier/divided-atomics", "arrivals are a load and a store");
  list.counter<BakeryWithoutFence<0>>("atomics-by-bakery/no-first-fence", "of the doorway", false);
  list.counter<BakeryWithoutFence<1>>("atomics-by-bakery/no-second-fence", "of the doorway", false);
  list.counter<NoAtomics>("divided-atomics/store", "atomics are a load and a store", true);
}

}  // namespace

std::vector<ExploredProgram> broken_programs() {
  List list;
  add_locks(list);
  add_sleeps(list);
  add_epochs(list);
  add_others(list);
  return list.take();
}

}  // namespace tombolo::litmus
