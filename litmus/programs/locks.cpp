// SPDX-License-Identifier: Apache-2.0
#include "litmus/explorer/sleeper.h"
#include "litmus/programs/registry.h"
#include "litmus/programs/scripts.h"

namespace tombolo::litmus {
namespace {

using Make = Script (*)(machine::Home);

class List {
 public:
  template <template <class> class Locks, class C = Explored>
  void add(const std::string& name, const std::string& about, Make script,
           Writing writing = Writing::cached, Bounds bounds = {}, machine::Home cores = 2) {
    list_.push_back({.name = name,
                     .about = about,
                     .bounds = bounds,
                     .cores = cores,
                     .make = [=](machine::Home n) -> std::unique_ptr<Program> {
                       return std::make_unique<SectionProgram<C, Locks<C>>>(script(n), writing);
                     }});
  }
  template <class Family>
  void add_family() {
    const std::string name(Family::traits.name);
    if constexpr (Family::traits.atomics)
      add_sections<LocksOf<Family>::template On>(name);
    else
      add_few_sections<LocksOf<Family>::template On>(name);
  }
  template <template <class> class Locks>
  void add_mutex(const std::string& name) {
    add<Locks>(name + "/writers", "cores take the mutex, twice if they are two", writers,
               Writing::through);
  }
  std::vector<ExploredProgram> take() { return std::move(list_); }

 private:
  template <template <class> class Locks>
  void add_sections(const std::string& name) {
    add<Locks>(name + "/writers", "cores take the exclusive lock, twice if they are two", writers);
    add<Locks>(name + "/readers-and-writer", "core 1 writes, the others read, core 0 twice",
               readers_and_writer, Writing::through);
    add<Locks>(name + "/lock-all-and-writers", "core 0 locks all, core 1 writes twice at home 1",
               lock_all_and_writers);
    add<Locks>(name + "/nested-and-lock-all", "core 0 writes at home 1 while it writes at home 0",
               nested_and_lock_all);
    add<Locks>(name + "/lock-alls-and-writer", "core 1 writes, the others lock all",
               lock_alls_and_writer);
  }
  // Each section without atomics is four to eight passages through a bakery.
  template <template <class> class Locks>
  void add_few_sections(const std::string& name) {
    add<Locks>(name + "/readers-and-writer", "core 1 writes, core 0 reads", reader_and_writer_once,
               Writing::through, {.evictions = 0, .preemptions = 2});
    add<Locks>(name + "/writers", "cores write once", writers_once, Writing::cached,
               {.evictions = 0, .preemptions = 1});
  }

  std::vector<ExploredProgram> list_;
};

}  // namespace

std::vector<ExploredProgram> lock_programs() {
  List list;
  sync::EveryLockFamily::for_each([&]<class Family>() { list.add_family<Family>(); });
  list.add_mutex<Mcs>("mcs");
  list.add<BakeryMutex>("bakery-mutex/writers", "cores take the mutex once", writers_once);
  list.add_mutex<SpinMutexes>("spin-mutex");
  list.add<SleepingMutexesOf, ExploredSleeper<>>(
      "sleeping-mutex/of-two", "two cores take the mutex twice", writers, Writing::through);
  list.add<SleepingMutexesOf, ExploredSleeper<1>>(
      "sleeping-mutex/early", "the same where the first sleep of each core ends by itself", writers,
      Writing::through);
  list.add<SleepingMutexesOf, ExploredSleeper<>>(
      "sleeping-mutex/of-three", "three cores take the mutex once", writers_once, Writing::through,
      {.evictions = 0, .preemptions = 4}, 3);
  return list.take();
}

}  // namespace tombolo::litmus
